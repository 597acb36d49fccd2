"""The log as Python sees it: what was acknowledged comes back, and nothing else passes for it."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kektor_native import CorruptFile, Damage, Frame, Log, Segment, crc32c, scan_log

SMALL = 16384


def write(folder: Path, payloads: list[bytes], *, next_lsn: int = 1, segment_bytes: int = SMALL) -> None:
    log = Log(str(folder), next_lsn=next_lsn, segment_bytes=segment_bytes)
    for lsn, payload in enumerate(payloads, next_lsn):
        log.append(lsn, payload)
        log.wait(lsn)
    log.close()


def crash(folder: Path, payloads: list[bytes], *, next_lsn: int = 1, segment_bytes: int = SMALL) -> None:
    """Write without closing, as a killed process does."""
    log = Log(str(folder), next_lsn=next_lsn, segment_bytes=segment_bytes)
    for lsn, payload in enumerate(payloads, next_lsn):
        log.append(lsn, payload)
        log.wait(lsn)


def read(folder: Path, after_lsn: int = 0) -> list[Frame | Damage]:
    return [item for _, items in scan_log(str(folder), after_lsn) for item in items]


def payloads_of(items: list[Frame | Damage]) -> list[tuple[int, bytes]]:
    assert not [item for item in items if isinstance(item, Damage)]
    return [(item.lsn, item.payload) for item in items if isinstance(item, Frame)]


def change(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def segment_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_crc32c_is_the_castagnoli_checksum_and_can_be_continued() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert crc32c(b"") == 0


def test_frames_come_back_as_they_were_written(tmp_path: Path) -> None:
    log = Log(str(tmp_path), next_lsn=5)
    log.append(5, b"", type=65534, flags=65535)
    log.append(6, b"\0" * 100)
    log.append(7, "né".encode(), type=2)
    log.wait(7)
    assert (log.last_lsn, log.durable_lsn, log.failed) == (7, 7, None)
    segment = Segment(str(tmp_path / "00000001.klog"))
    frames = segment.frames()
    assert [(f.lsn, f.type, f.flags, f.payload) for f in frames if isinstance(f, Frame)] == [
        (5, 65534, 65535, b""),
        (6, 1, 0, b"\0" * 100),
        (7, 2, 0, "né".encode()),
    ]
    assert [f.durable_lsn for f in frames if isinstance(f, Frame)] == [4, 4, 4]
    assert (segment.first_lsn, segment.torn, segment.sealed) == (5, 0, False)
    assert [f.lsn for f in segment.frames(6) if isinstance(f, Frame)] == [7]
    assert [f.lsn for f in segment if isinstance(f, Frame)] == [5, 6, 7]
    log.close()
    assert len(segment.frames()) == 3
    assert segment.sealed
    assert os.path.getsize(segment.path) == segment.end


def test_a_new_segment_begins_at_every_start_and_at_every_roll(tmp_path: Path) -> None:
    write(tmp_path, [b"a", b"b"])
    write(tmp_path, [b"c" * 20_000, b"d"], next_lsn=3)
    assert segment_files(tmp_path) == ["00000001.klog", "00000002.klog", "00000003.klog"]
    assert payloads_of(read(tmp_path)) == [(1, b"a"), (2, b"b"), (3, b"c" * 20_000), (4, b"d")]
    assert payloads_of(read(tmp_path, 2)) == [(3, b"c" * 20_000), (4, b"d")]
    scan = scan_log(str(tmp_path), 4)
    assert list(scan) == []
    assert scan.last_lsn == 4


def test_an_empty_folder_holds_no_log(tmp_path: Path) -> None:
    scan = scan_log(str(tmp_path))
    assert list(scan) == []
    assert (scan.last_lsn, scan.torn) == (0, 0)


def test_a_batch_of_a_scan_is_bounded(tmp_path: Path) -> None:
    log = Log(str(tmp_path), next_lsn=1)
    for lsn in range(1, 41):
        log.append(lsn, bytes(1 << 20))
    log.close()
    batches = [len(items) for _, items in scan_log(str(tmp_path))]
    assert sum(batches) == 40
    assert max(batches) <= 8


def test_trim_removes_older_segments_also_those_found_at_start(tmp_path: Path) -> None:
    write(tmp_path, [b"a", b"b"])
    write(tmp_path, [b"c"], next_lsn=3)
    log = Log(str(tmp_path), next_lsn=4)
    log.append(4, b"d")
    assert log.stats()["segments"] == 3
    assert log.trim(1) == []
    assert log.trim(2) == ["00000001.klog"]
    assert log.trim(10) == ["00000002.klog"]
    log.roll()
    assert log.trim(4) == ["00000003.klog"]
    log.append(5, b"e")
    log.close()
    assert payloads_of(read(tmp_path)) == [(5, b"e")]


def test_a_torn_tail_ends_the_log_and_the_next_segment_goes_on(tmp_path: Path) -> None:
    crash(tmp_path, [b"a", b"b", b"c"])
    first = Segment(str(tmp_path / "00000001.klog"))
    last = first.frames()[-1]
    assert isinstance(last, Frame)
    change(tmp_path / "00000001.klog", last.offset + 32, b"X")
    scan = scan_log(str(tmp_path))
    assert payloads_of([item for _, items in scan for item in items]) == [(1, b"a"), (2, b"b")]
    assert scan.last_lsn == 2
    assert scan.torn > 0
    write(tmp_path, [b"C", b"D"], next_lsn=3)
    assert payloads_of(read(tmp_path)) == [(1, b"a"), (2, b"b"), (3, b"C"), (4, b"D")]


def test_frames_given_up_by_a_recovery_never_come_back(tmp_path: Path) -> None:
    crash(tmp_path, [b"a", b"b", b"c"])
    write(tmp_path, [b"B"], next_lsn=2)
    assert payloads_of(read(tmp_path)) == [(1, b"a"), (2, b"B")]


def test_a_damaged_frame_that_was_acknowledged_costs_only_itself(tmp_path: Path) -> None:
    crash(tmp_path, [b"a", b"b", b"c"])
    path = tmp_path / "00000001.klog"
    middle = Segment(str(path)).frames()[1]
    assert isinstance(middle, Frame)
    change(path, middle.offset + 32, b"X")
    items = read(tmp_path)
    assert [type(item) for item in items] == [Frame, Damage, Frame]
    damage = items[1]
    assert isinstance(damage, Damage)
    assert (damage.offset, damage.length, damage.after_lsn) == (middle.offset, 40, 1)


def test_a_lost_end_is_damage_once_the_next_segment_says_so(tmp_path: Path) -> None:
    crash(tmp_path, [b"a", b"b", b"c"])
    write(tmp_path, [b"d"], next_lsn=4)
    path = tmp_path / "00000001.klog"
    last = Segment(str(path)).frames()[2]
    assert isinstance(last, Frame)
    os.truncate(path, last.offset)
    items = read(tmp_path)
    assert [type(item) for item in items] == [Frame, Frame, Damage, Frame]
    assert isinstance(items[2], Damage)
    assert items[2].after_lsn == 2
    assert [type(item) for item in Segment(str(path)).frames()] == [Frame, Frame]


def test_a_payload_full_of_frames_is_still_one_payload(tmp_path: Path) -> None:
    other = tmp_path / "other"
    mine = tmp_path / "mine"
    other.mkdir()
    mine.mkdir()
    write(other, [bytes([65 + i]) * i for i in range(20)])
    stolen = (other / "00000001.klog").read_bytes()
    assert len(payloads_of(read(other))) == 20
    crash(mine, [b"x", stolen[8192:], stolen, b"y"], segment_bytes=1 << 20)
    assert payloads_of(read(mine)) == [(1, b"x"), (2, stolen[8192:]), (3, stolen), (4, b"y")]
    path = mine / "00000001.klog"
    for lsn in (2, 3):  # with its header gone, the search for the next frame runs through the payload
        at = next(f.offset for f in Segment(str(path)).frames() if isinstance(f, Frame) and f.lsn == lsn)
        change(path, at, b"????")
    assert [item.lsn for item in read(mine) if isinstance(item, Frame)] == [1, 4]


def test_a_segment_whose_header_is_lost_is_damage_and_its_neighbours_are_read(tmp_path: Path) -> None:
    for lsn in (1, 2, 3):
        write(tmp_path, [b"x"], next_lsn=lsn)
    path = tmp_path / "00000002.klog"
    change(path, 0, bytes(64))
    assert [type(item) for item in read(tmp_path)] == [Frame, Damage, Frame, Frame]
    change(path, 4096, bytes(64))
    with pytest.raises(CorruptFile, match="00000002"):
        Segment(str(path))
    assert [type(item) for item in read(tmp_path)] == [Frame, Damage, Frame]


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, [b"x"])
    path = tmp_path / "00000001.klog"
    header = bytearray(path.read_bytes()[:64])
    header[8] = 9
    header[60:] = crc32c(bytes(header[:60])).to_bytes(4, "little")
    change(path, 0, bytes(header))
    for refused in (
        lambda: Segment(str(path)),
        lambda: scan_log(str(tmp_path)),
        lambda: Log(str(tmp_path), next_lsn=2),
    ):
        with pytest.raises(CorruptFile, match=r"00000001\.klog.*format 9.*upgrade"):
            refused()


def test_misuse_is_a_value_error_and_changes_nothing(tmp_path: Path) -> None:
    for wrong in ({"next_lsn": 0}, {"next_lsn": 1, "sync": "maybe"}, {"next_lsn": 1, "segment_bytes": 100}):
        with pytest.raises(ValueError, match=next(reversed(wrong))):
            Log(str(tmp_path), **wrong)
    log = Log(str(tmp_path), next_lsn=3)
    for lsn in (2, 0):
        with pytest.raises(ValueError, match="not greater than the last, 2"):
            log.append(lsn, b"")
    with pytest.raises(ValueError, match="65535"):
        log.append(3, b"", type=65535)
    with pytest.raises(ValueError, match="1 GiB"):
        log.append(3, bytes((1 << 30) + 1))
    with pytest.raises(ValueError, match="never appended"):
        log.wait(3)
    log.append(3, b"ok")
    log.close()
    with pytest.raises(ValueError, match="closed"):
        log.append(4, b"")
    assert payloads_of(read(tmp_path)) == [(3, b"ok")]
    with pytest.raises(ValueError, match=r"00000001\.klog"):
        Log(str(tmp_path), next_lsn=2)


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Log(str(tmp_path / "none"), next_lsn=1)
    with pytest.raises(FileNotFoundError):
        scan_log(str(tmp_path / "none"))


def test_what_a_crash_left_unnamed_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "00000001.klog.new").write_bytes(b"half")
    (tmp_path / "notes.txt").write_bytes(b"not ours")
    write(tmp_path, [b"a"])
    assert segment_files(tmp_path) == ["00000001.klog", "notes.txt"]


@pytest.mark.parametrize("sync", ["always", "interval", "off"])
def test_many_threads_wait_while_one_at_a_time_appends(tmp_path: Path, sync: str) -> None:
    log = Log(str(tmp_path), next_lsn=1, sync=sync, interval_ms=1, segment_bytes=1 << 16)  # type: ignore[arg-type]
    lock = threading.Lock()
    last = 0

    def work(name: int) -> None:
        nonlocal last
        for turn in range(50):
            with lock:
                last += 1
                lsn = last
                log.append(lsn, f"{name}/{turn}".encode() * 20)
            log.wait(lsn)
            if sync == "always":
                assert log.durable_lsn >= lsn

    threads = [threading.Thread(target=work, args=(name,)) for name in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.flush()
    assert log.durable_lsn == log.last_lsn == 600
    written = payloads_of(read(tmp_path))
    assert [lsn for lsn, _ in written] == list(range(1, 601))
    assert {payload for _, payload in written} == {
        f"{name}/{turn}".encode() * 20 for name in range(12) for turn in range(50)
    }
    log.close()


def test_the_timer_syncs_what_nobody_flushes(tmp_path: Path) -> None:
    log = Log(str(tmp_path), next_lsn=1, sync="interval", interval_ms=1)
    log.append(1, b"x")
    for _ in range(10_000):
        if log.durable_lsn == 1:
            break
        threading.Event().wait(0.001)
    assert log.durable_lsn == 1


FAILING = """
import resource, signal, sys
from kektor_native import Log
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = Log(sys.argv[1], next_lsn=1, segment_bytes=1 << 20)
resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, resource.RLIM_INFINITY))
errors = set()
for lsn in range(1, 200):
    try:
        log.append(lsn, bytes(1000))
        log.wait(lsn)
    except OSError as error:
        errors.add((error.errno, str(error)))
assert log.failed is not None
log.wait(log.durable_lsn)
log.close()
print(log.durable_lsn, len(errors), errors.pop()[0])
"""


def test_a_failed_write_is_final_and_nothing_unacknowledged_is_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    durable, kinds, number = map(int, done.stdout.split())
    assert 0 < durable < 199
    assert (kinds, number) == (1, errno.EFBIG)
    assert [lsn for lsn, _ in payloads_of(read(tmp_path))] == list(range(1, durable + 1))


def test_a_segment_that_cannot_be_reserved_is_not_begun(tmp_path: Path) -> None:
    script = FAILING.replace("64 << 10, resource.RLIM_INFINITY))", "0, 0))").split("errors =")[0]
    script = script.replace("log = Log", "make = lambda: Log") + "\nmake()"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert f"[Errno {errno.EFBIG}]" in done.stderr
    assert segment_files(tmp_path) == []


WRITING = """
import os, sys, threading
from kektor_native import Log
log = Log(sys.argv[1], next_lsn=int(sys.argv[2]), segment_bytes=1 << 16)
lock = threading.Lock()
last = int(sys.argv[2]) - 1
def work():
    global last
    while True:
        with lock:
            last += 1
            lsn = last
            log.append(lsn, b"%d " % lsn * (lsn % 50))
        log.wait(lsn)
        os.write(1, b"%d\\n" % lsn)
for _ in range(4):
    threading.Thread(target=work).start()
"""


@pytest.mark.faults
def test_an_acknowledged_frame_survives_kill_9(tmp_path: Path) -> None:
    acknowledged: set[int] = set()
    next_lsn = 1
    for turn in range(int(os.environ.get("KEKTOR_FAULT_ROUNDS", "6"))):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITING, str(tmp_path), str(next_lsn)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        for _ in range(50 + turn * 37 % 200):
            acknowledged.add(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
        acknowledged.update(int(line) for line in process.stdout.read().splitlines(keepends=True) if line[-1:] == b"\n")
        process.wait()
        process.stdout.close()
        scan = scan_log(str(tmp_path))
        written = payloads_of([item for _, items in scan for item in items])
        assert written == [(lsn, b"%d " % lsn * (lsn % 50)) for lsn in range(1, scan.last_lsn + 1)]
        assert acknowledged <= {lsn for lsn, _ in written}
        next_lsn = scan.last_lsn + 1
    assert acknowledged
