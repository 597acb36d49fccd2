"""A signal ends what runs until it is stopped, whatever the code it falls into makes of it."""

import contextlib
import signal
import subprocess
import sys

import pytest

from kektor_server.cli.stopping import Stopping

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@SIGNALS
def test_a_signal_ends_the_block_and_nothing_after_it(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    reached = []
    stopping = Stopping()
    with stopping.until_asked():
        signal.raise_signal(number)
        reached.append("after the signal")
    assert (stopping.asked, reached) == (True, [])
    assert signal.getsignal(number) is before


@SIGNALS
def test_an_import_that_a_signal_falls_into_comes_to_its_end(number: signal.Signals) -> None:
    reached = []
    with (stopping := Stopping()).until_asked():
        with stopping.later():
            signal.raise_signal(number)
            reached.append("the end of the import")
        reached.append("after it")
    assert reached == ["the end of the import"]


def test_a_signal_that_native_code_swallows_is_remembered() -> None:
    with (stopping := Stopping()).until_asked():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stopping.asked


def test_a_signal_that_comes_out_as_another_error_is_still_a_clean_end() -> None:
    with (stopping := Stopping()).until_asked():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as interrupt:
            raise RuntimeError("Error calling __set_name__") from interrupt
    assert stopping.asked


def test_an_error_of_its_own_is_not_taken_for_a_signal() -> None:
    with pytest.raises(RuntimeError, match="broken"), Stopping().until_asked():
        raise RuntimeError("broken")


def test_what_a_start_does_not_need_is_not_imported() -> None:
    code = "import sys, kektor; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "kektor" in loaded
    assert not {"networkx", "onnxruntime", "tokenizers", "starlette", "mcp"} & set(loaded)
