"""What a checkpoint asks of every structure, native or not: freeze, write, open, validate."""

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["FrozenChunk", "Structure"]


class FrozenChunk(Protocol):
    """One file of a frozen structure. A clean one equals the file of its name in the last checkpoint."""

    @property
    def name(self) -> str: ...
    @property
    def dirty(self) -> bool: ...


class Structure(Protocol):
    """Owns its bytes; `storage` owns files, folders and the manifest.

    `freeze` is called under the commit lock and must be quick; `write` runs in the background while the structure
    goes on changing; `release` ends the freeze and says whether every chunk reached a checkpoint. Opening and
    `validate` are the structure's own.
    """

    def freeze(self, lsn: int) -> Sequence[FrozenChunk]: ...
    def write(self, chunk: Any, path: str) -> tuple[int, str]: ...
    def release(self, written: bool) -> None: ...
    def validate(self) -> list[str]: ...
