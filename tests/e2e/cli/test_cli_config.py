"""`kektor config` shows what a command would run with, and from where."""

from typing import Any

from kektor_server.settings import Settings
from tests.support.doors import Machine


def shown(machine: Machine, *arguments: str, **others: Any) -> dict[str, tuple[Any, str]]:
    settings = machine.json("config", *arguments, **others)["settings"]
    return {each["name"]: (each["value"], each["from"]) for each in settings}


def test_a_flag_counts_before_a_variable_a_variable_before_a_file_a_file_before_the_default(machine: Machine) -> None:
    own = machine.root / "config" / "kektor" / "kektor.toml"
    own.parent.mkdir(parents=True)
    own.write_text('port = 7001\nlog_level = "info"\n[client]\nuser = "from own"\nproject = "from own"\n')
    (machine.root / "kektor.toml").write_text('port = 7002\n[client]\nuser = "from here"\n')
    found = shown(machine)
    assert found["user"] == ("from here", "./kektor.toml")
    assert found["project"] == ("from own", str(own))
    assert found["port"] == (7002, "kektor.toml")
    assert found["log_level"] == ("info", str(own))
    assert found["host"] == ("127.0.0.1", "default")
    assert found["data"] == (str(machine.data), "KEKTOR_DATA")
    found = shown(machine, env={"KEKTOR_USER": "from env", "KEKTOR_PORT": "7003"})
    assert (found["user"], found["port"]) == (("from env", "KEKTOR_USER"), (7003, "KEKTOR_PORT"))
    found = shown(machine, "--user", "from flag", "--data", "/srv/m", env={"KEKTOR_USER": "from env"})
    assert (found["user"], found["data"]) == (("from flag", "flag"), ("/srv/m", "flag"))


def test_every_setting_is_there_and_a_secret_is_not_told(machine: Machine) -> None:
    found = shown(machine, env={"KEKTOR_TOKEN": "hush"})
    assert set(found) >= {name for name, _ in Settings.names()} | {"url", "index", "user", "agent", "project"}
    assert "hush" not in str(found)
    assert "port" in machine.run("config").stdout


def test_a_setting_that_cannot_be_is_refused_with_its_place(machine: Machine) -> None:
    (machine.root / "kektor.toml").write_text("port = 70000\n")
    assert "kektor.toml" in machine.json("config", code=2)["error"]["message"]
