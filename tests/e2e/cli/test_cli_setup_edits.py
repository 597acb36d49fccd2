"""Edits of JSON with comments, TOML and YAML: what is meant changes, every other byte stays."""

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kektor_server.setup import blocks, jsonc, tomls, yamls
from kektor_server.setup.edits import Uneditable

ENTRY = {"command": "/opt/kektor/bin/kektor", "args": ["mcp", "--user", "Zoë"]}
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(names, values, max_size=4)


def written(document: Any, indent: int | str | None, newline: str) -> str:
    return json.dumps(document, indent=indent, ensure_ascii=False).replace("\n", newline) + newline


@settings(max_examples=200, deadline=None)
@given(documents, st.sampled_from([None, 2, 4, "\t"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_member_that_is_set_and_taken_out_leaves_the_file_as_it_was(
    document: dict[str, Any], indent: int | str | None, newline: str, beside: bool
) -> None:
    if beside:
        document = (
            {**document, "servers": {**document.get("servers", {}), "other": {"x": 1}}}
            if isinstance(document.get("servers", {}), dict)
            else {}
        )
    elif "servers" in document:
        document = {name: value for name, value in document.items() if name != "servers"}
    text = written(document, indent, newline)
    changed = jsonc.set_member(text, ("servers", "ours"), ENTRY)
    assert jsonc.read(changed) == {**document, "servers": {**document.get("servers", {}), "ours": ENTRY}}
    assert jsonc.set_member(changed, ("servers", "ours"), ENTRY) == changed
    assert jsonc.remove_member(changed, ("servers", "ours")) == text
    hooked = jsonc.append_item(text, ("hooks!", "prompt"), ENTRY)
    assert jsonc.read(hooked) == {**document, "hooks!": {"prompt": [ENTRY]}}
    assert jsonc.remove_items(hooked, ("hooks!", "prompt"), lambda item: item == ENTRY) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1,}',
        '{\n  "a": 1, // one\n}',
        '{\n  "a": 1 // one\n  // the end\n}\n',
        "{ /* nothing yet */ }",
        "{\n  // nothing yet\n}\n",
        '\ufeff{"a": [1, 2,],}',
        '// first\n{\n\t"a": {"b": "}//,"}\n}\n// last\n',
        '{"servers": {}}',
        '{"servers": {"x": {}, /* y */ }}',
    ],
)
def test_comments_and_trailing_commas_survive(text: str) -> None:
    before = jsonc.read(text)
    changed = jsonc.set_member(text, ("servers", "ours"), ENTRY)
    servers = before.get("servers", {})
    assert jsonc.read(changed) == {**before, "servers": {**servers, "ours": ENTRY}}
    for comment in ("// one", "// the end", "/* nothing yet */", "// nothing yet", "// first", "// last", "/* y */"):
        assert (comment in changed) == (comment in text)
    again = jsonc.remove_member(changed, ("servers", "ours"))
    assert jsonc.read(again) == {name: value for name, value in before.items() if value != {}}
    for comment in ("// one", "// the end", "/* nothing yet */", "// nothing yet", "// first", "// last", "/* y */"):
        assert (comment in again) == (comment in text)


def test_an_empty_file_becomes_an_object() -> None:
    for text in ("", "\n", "  \n"):
        assert json.loads(jsonc.set_member(text, ("servers", "ours"), ENTRY)) == {"servers": {"ours": ENTRY}}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"a" 1}',
        '{"a": tru}',
        '{"a": 1 "b": 2}',
        "{'a': 1}",
        '{"a": 1} x',
        '{"a": 1, "a": 2}',
        '{"a": "\n"}',
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Uneditable):
        jsonc.set_member(text, ("servers", "ours"), ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'model = "x" # the default\n',
        "[mcp_servers]\n",
        '[mcp_servers.other]\ncommand = "x"\n\n# the end\n',
        '[mcp_servers]\nother = { command = "x" }\n',
        'mcp_servers.other.command = "x"\n[a]\nb = 1\n',
        'a = 1\r\n\r\n[mcp_servers.other]\r\ncommand = "x"\r\n',
        "a = 1",
    ],
)
def test_a_table_goes_in_and_out_of_toml(text: str) -> None:
    before = tomllib.loads(text)
    changed = tomls.set_table(text, ("mcp_servers", "ours"), ENTRY)
    assert tomllib.loads(changed) == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "ours": ENTRY}}
    assert changed.startswith(text)
    moved = tomls.set_table(changed, ("mcp_servers", "ours"), {**ENTRY, "command": "/elsewhere"})
    assert tomllib.loads(moved)["mcp_servers"]["ours"]["command"] == "/elsewhere"
    assert (
        tomls.remove_table(changed, ("mcp_servers", "ours")).rstrip() == text.replace("[mcp_servers]\n", "").rstrip()
        or tomls.remove_table(changed, ("mcp_servers", "ours")).rstrip() == text.rstrip()
    )


@pytest.mark.parametrize("text", ['mcp_servers = { other = { command = "x" } }\n', "mcp_servers = 3\n", "a = [\n"])
def test_toml_that_cannot_be_added_to_is_refused(text: str) -> None:
    with pytest.raises(Uneditable):
        tomls.set_table(text, ("mcp_servers", "ours"), ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "a: 1\n",
        "a: 1",
        "mcp_servers:\n    other:\n        command: x # here\n# behind\nb: 2\n",
        "mcp_servers:\n  other: {command: x}\n\n\nb: |\n  text\n",
        "b: 1\r\nmcp_servers:\r\n  other:\r\n    args: [1]\r\n",
    ],
)
def test_a_mapping_goes_in_and_out_of_yaml(text: str) -> None:
    before = yaml.safe_load(text) or {}
    changed = yamls.set_member(text, ("mcp_servers", "ours"), ENTRY)
    assert yaml.safe_load(changed) == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "ours": ENTRY}}
    moved = yamls.set_member(changed, ("mcp_servers", "ours"), {"command": "x"})
    assert yaml.safe_load(moved)["mcp_servers"]["ours"] == {"command": "x"}
    assert yamls.remove_member(changed, ("mcp_servers", "ours")).rstrip("\r\n") == text.rstrip("\r\n")


@pytest.mark.parametrize("text", ["{a: 1}\n", "mcp_servers: {}\n", "mcp_servers: 1\n", "- a\n", "a: [\n"])
def test_yaml_that_cannot_be_added_to_is_refused(text: str) -> None:
    with pytest.raises(Uneditable):
        yamls.set_member(text, ("mcp_servers", "ours"), ENTRY)


@pytest.mark.parametrize("text", ["", "# Mine\n", "# Mine\r\n\r\ntext\r\n"])
def test_a_block_goes_in_and_out_of_a_text(text: str) -> None:
    changed = blocks.set_block(text, "first")
    assert blocks.set_block(changed, "first") == changed
    assert "second" in (again := blocks.set_block(changed, "second"))
    assert "first" not in again
    assert blocks.remove_block(again) == text
    assert blocks.remove_block(text) == text
    with pytest.raises(Uneditable):
        blocks.remove_block(changed[: changed.rindex("<!--")])
