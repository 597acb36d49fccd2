"""Settings: flag over environment over file over default, and whatever cannot be meant is named."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kektor_server.settings import Settings, SettingsError, load_settings


def write(folder: Path, text: str) -> Path:
    path = folder / "kektor.toml"
    path.write_text(text)
    return path


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    path = write(tmp_path, 'host = "::1"\nport = 1\nbody_bytes = 2048\nread_threads = 3\n')
    environ = {"KEKTOR_PORT": "2", "KEKTOR_READ_THREADS": "4", "KEKTOR_URL": "another part's"}
    loaded = load_settings({"port": 3, "host": None}, environ=environ, file=path)
    assert (loaded.port, loaded.read_threads, loaded.body_bytes, loaded.host) == (3, 4, 2048, "::1")
    assert loaded.write_threads == Settings().write_threads
    assert dict(loaded.origins) == {
        "host": str(path),
        "body_bytes": str(path),
        "read_threads": "KEKTOR_READ_THREADS",
        "port": "--port",
    }


def test_the_file_is_the_one_named_or_the_one_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(environ={}) == Settings()
    named = tmp_path / "other.toml"
    named.write_text("port = 7")
    assert load_settings(environ={"KEKTOR_CONFIG": str(named)}).port == 7
    write(tmp_path, "port = 8")
    assert load_settings(environ={}).port == 8
    assert load_settings(environ={}, file=named).port == 7
    with pytest.raises(SettingsError, match=r"gone\.toml: there is no such file"):
        load_settings(environ={}, file=tmp_path / "gone.toml")


def test_values_come_as_text_or_as_toml_has_them(tmp_path: Path) -> None:
    path = write(
        tmp_path, 'allowed_hosts = ["a.example", "b.example"]\ninsecure = true\nrequest_seconds = 5\ndata = "~/x"\n'
    )
    loaded = load_settings(environ={"KEKTOR_ALLOWED_ORIGINS": "https://a, https://b"}, file=path)
    assert loaded.allowed_hosts == ("a.example", "b.example")
    assert loaded.allowed_origins == ("https://a", "https://b")
    assert (loaded.insecure, loaded.request_seconds, loaded.data) == (True, 5.0, Path.home() / "x")


@pytest.mark.parametrize(
    ("flags", "environ", "toml", "message"),
    [
        ({}, {}, "prot = 1", r"kektor\.toml: there is no setting 'prot'"),
        ({}, {}, "[server]\nport = 1", r"kektor\.toml: there is no setting 'server'"),
        ({}, {}, "port = ", r"kektor\.toml: Invalid value"),
        ({}, {}, 'port = "x"', r"kektor\.toml: port must be a whole number, not 'x'"),
        ({}, {}, "port = 1.5", "port must be a whole number"),
        ({}, {}, "port = true", "port must be a whole number"),
        ({}, {}, "host = 5", "host must be a text"),
        ({}, {}, "allowed_hosts = [1]", "allowed_hosts must be a list of texts"),
        ({"nope": 1}, {}, "", "--nope: there is no setting 'nope'"),
        ({"port": "many"}, {}, "", "--port: port must be a whole number, not 'many'"),
        ({}, {"KEKTOR_PORT": "70000"}, "", "KEKTOR_PORT: port must be at most 65535"),
        ({}, {"KEKTOR_INSECURE": "perhaps"}, "", "KEKTOR_INSECURE: insecure must be on or off"),
        ({}, {"KEKTOR_REQUEST_SECONDS": "nan"}, "", "request_seconds must be at least"),
        ({}, {"KEKTOR_REQUESTS": "0"}, "", "requests must be at least 1"),
        ({}, {"KEKTOR_BUFFERED_BYTES": "2000"}, "", "buffered_bytes must be at least body_bytes"),
        ({}, {"KEKTOR_LOG_LEVEL": "loud"}, "", "log_level must be debug"),
        ({}, {"KEKTOR_ALLOWED_ORIGINS": "app.example"}, "", "allowed_origins takes scheme"),
        ({}, {"KEKTOR_HOST": " "}, "", "host must be a text"),
    ],
)
def test_what_cannot_be_meant_is_named(
    tmp_path: Path, flags: dict[str, Any], environ: dict[str, str], toml: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(flags, environ=environ, file=write(tmp_path, toml))


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.1.2.3", True), ("0.0.0.0", False), ("db", False)],
)
def test_loopback_is_told_from_the_rest(host: str, alone: bool) -> None:
    assert Settings(host=host).on_loopback is alone


def test_reading_settings_loads_nothing_heavy() -> None:
    program = "import sys, kektor_server.settings; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    for heavy in ("kektor", "numpy", "msgspec", "starlette", "uvicorn", "asyncio"):
        assert heavy not in loaded
