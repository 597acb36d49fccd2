"""Whatever happens to a segment's bytes, what is read back was written, in order, and nothing else."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from kektor_native import CorruptFile, Damage, Frame, Log, Segment, scan_log

payloads = st.lists(st.binary(max_size=300), min_size=1, max_size=12)
groups = st.integers(1, 5)
hits = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=8)


def write(folder: Path, stored: list[bytes], group: int) -> Path:
    """Frames waited for in groups, in a log that is never closed."""
    log = Log(str(folder), next_lsn=1, segment_bytes=16384)
    for lsn, payload in enumerate(stored, 1):
        log.append(lsn, payload, flags=lsn % 7)
        if lsn % group == 0:
            log.wait(lsn)
    log.flush()
    return folder / "00000001.klog"


def frames(items: list[Frame | Damage]) -> list[tuple[int, bytes]]:
    return [(item.lsn, item.payload) for item in items if isinstance(item, Frame)]


@given(stored=payloads, group=groups)
@settings(max_examples=40, deadline=None)
def test_a_cut_at_any_byte_leaves_a_prefix(stored: list[bytes], group: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name), stored, group)
        whole = path.read_bytes()
        written = Segment(str(path)).frames()
        end = Segment(str(path)).end
        for cut in range(max(8192, end - 400), end + 1):
            path.write_bytes(whole[:cut])
            found = Segment(str(path)).frames()
            kept = [f for f in written if isinstance(f, Frame) and f.offset + 32 + len(f.payload) <= cut]
            assert frames(found) == frames(list(kept))
            assert not [item for item in found if isinstance(item, Damage)]


@given(stored=payloads, group=groups, changes=hits)
@settings(max_examples=150, deadline=None)
def test_changed_bytes_cost_the_frames_they_hit_and_no_other(
    stored: list[bytes], group: int, changes: list[tuple[float, int]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name), stored, group)
        written = [f for f in Segment(str(path)).frames() if isinstance(f, Frame)]
        end = Segment(str(path)).end
        bytes_ = bytearray(path.read_bytes())
        before = bytes(bytes_)
        for where, mask in changes:
            bytes_[8192 + int(where * (end - 8192))] ^= mask
        path.write_bytes(bytes_)
        spans = [(f, slice(f.offset, f.offset + 32 + len(f.payload))) for f in written]
        survivors = [f for f, span in spans if bytes_[span] == before[span]]
        found = Segment(str(path)).frames()
        read = frames(found)
        assert read == frames(list(survivors))[: len(read)]
        vouched = max((f.durable_lsn for f in survivors), default=0)
        assert len(read) == len(survivors) or (read[-1][0] if read else 0) >= vouched
        # A segment that follows makes every loss visible and gives up nothing.
        found = Segment(str(path)).frames(next_lsn=len(stored) + 1)
        assert frames(found) == frames(list(survivors))
        if len(survivors) < len(stored):
            assert [item for item in found if isinstance(item, Damage)]


@given(noise=st.binary(max_size=20_000), keep=st.sampled_from([0, 64, 4160, 8192]))
@settings(max_examples=100, deadline=None)
def test_noise_holds_no_frame(noise: bytes, keep: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name), [b"x"], 1)
        path.write_bytes(path.read_bytes()[:keep] + noise)
        for _, items in scan_log(name):
            assert frames(items) == []
        try:
            assert frames(Segment(str(path)).frames()) == []
        except CorruptFile:
            assert keep < 64
