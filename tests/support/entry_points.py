"""Every way to change something, found in the code itself, so that a new one cannot be forgotten."""

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kektor.ingest
import kektor.memory.commands
import kektor_server
from kektor.api import Database
from kektor.handles import IndexHandle, KvHandle, MemoryHandle
from kektor.memory.commands.base import MemoryCommand
from kektor.operations import Operations
from kektor_server.cli import local
from kektor_server.mcp.profiles import REGISTRY
from kektor_server.rest.routes import all_routes

__all__ = ["EntryPoint", "commands", "entry_points", "mutating_operations", "transaction_openers"]


class EntryPoint(NamedTuple):
    """A name that a caller can use to change something: a method, a route, a tool, a command."""

    door: str
    name: str


def commands() -> dict[str, type[MemoryCommand]]:
    """Every command of the write gate by its operation."""
    for package in (kektor.memory.commands, kektor.ingest):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return {kind.operation: kind for kind in _subclasses(MemoryCommand) if "operation" in vars(kind)}


def mutating_operations() -> set[str]:
    """The operations that submit a command, whichever way."""
    found = _reaching(Operations, lambda call: isinstance(call.func, ast.Attribute) and call.func.attr == "_submit")
    return {name for name in found if not name.startswith("_")}


def entry_points() -> set[EntryPoint]:
    """All of them, of every door."""
    mutating = mutating_operations()

    def mutates(call: ast.Call) -> bool:
        return (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in mutating
            and ast.unparse(call.func.value).endswith("operations")
        )

    found = {
        EntryPoint("library", f"{kind.__name__}.{name}")
        for kind in (MemoryHandle, KvHandle, IndexHandle, Database)
        for name in _reaching(kind, mutates)
        if not name.startswith("_")
    }
    for route in all_routes():
        if any(mutates(call) for call in _calls(_tree(route.run))):
            found.add(EntryPoint("rest", f"{route.method} {route.path}"))
    for tool in REGISTRY.tools.values():
        # A tool that says that it only reads is looked into like any other.
        if any(mutates(call) for function in _with_helpers(tool.run) for call in _calls(_tree(function))):
            found.add(EntryPoint("mcp", tool.name))
    found |= {EntryPoint("cli", name) for name in _commands_of_the_line(mutating)}
    return found


def transaction_openers() -> set[str]:
    """The files that open a transaction of the engine, besides the engines themselves."""
    roots = [Path(inspect.getfile(kektor)).parent, Path(inspect.getfile(kektor_server)).parent]
    return {
        str(path.relative_to(root.parent))
        for root in roots
        for path in root.rglob("*.py")
        for call in _calls(ast.parse(path.read_text()))
        if isinstance(call.func, ast.Attribute) and call.func.attr == "transaction"
    }


def _subclasses(kind: type[MemoryCommand]) -> Iterator[type[MemoryCommand]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def _reaching(kind: type, wanted: Callable[[ast.Call], bool]) -> set[str]:
    """The methods of a class, its bases' included, that make a wanted call themselves or through one another."""
    methods: dict[str, ast.AST] = {}
    for base in reversed(kind.__mro__[:-1]):
        for node in _tree(base).body:
            if isinstance(node, ast.ClassDef):
                methods |= {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    calls = {name: list(_calls(tree)) for name, tree in methods.items()}
    found = {name for name, made in calls.items() if any(map(wanted, made))}
    while True:
        more = {name for name, made in calls.items() if any(_own(call) in found for call in made)}
        if more <= found:
            return found
        found |= more


def _own(call: ast.Call) -> str | None:
    func = call.func
    own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
    return func.attr if own and isinstance(func, ast.Attribute) else None


def _with_helpers(function: Any) -> list[Any]:
    """A function and those of its own module that it calls, directly or not."""
    module = inspect.getmodule(function)
    found = [function]
    for each in found:
        names = {call.func.id for call in _calls(_tree(each)) if isinstance(call.func, ast.Name)}
        helpers = (getattr(module, name, None) for name in sorted(names))
        found += [
            helper
            for helper in helpers
            if inspect.isfunction(helper) and helper.__module__ == function.__module__ and helper not in found
        ]
    return found


def _commands_of_the_line(mutating: set[str]) -> Iterator[str]:
    """The operations of the command line whose implementation names a mutating one."""
    for statement in _tree(local).body:
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == "RUNS":
            assert isinstance(statement.value, ast.Dict)
            for key, value in zip(statement.value.keys, statement.value.values, strict=True):
                assert isinstance(key, ast.Constant)
                named = {node.attr for node in ast.walk(value) if isinstance(node, ast.Attribute)}
                if isinstance(value, ast.Name):
                    function = getattr(local, value.id)
                    named = {node.attr for node in ast.walk(_tree(function)) if isinstance(node, ast.Attribute)}
                if named & mutating:
                    yield key.value


def _tree(thing: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(thing)))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))
