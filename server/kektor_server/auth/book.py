"""The tokens that were given out: what each may do, and whether it still may. Of the token itself a hash is kept."""

import threading
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kektor import clock
from kektor.errors import Corrupt
from kektor.storage.checked import Damaged, read_checked, write_checked
from kektor_server.auth.requests import ActorOfToken, GrantIn, Role

__all__ = ["TokenBook", "TokenRecord"]

_KEPT_AFTER_EXPIRY: Final = 90 * 86_400_000_000


class TokenRecord(Struct, frozen=True):
    """Times are in microseconds."""

    jti: str
    digest: str
    """SHA-256 of the token, in hexadecimal."""
    kid: str
    roles: list[Role]
    kind: ActorOfToken
    grants: list[GrantIn]
    description: str
    created_at: int
    expires_at: int
    revoked_at: int | None = None


class TokenBook:
    """Kept in one file, replaced whole and durable at every change; `path` None keeps it in memory.

    Looking something up waits for no lock and no disk.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._changing = threading.Lock()
        self._records: dict[str, TokenRecord] = {} if path is None else _read(path)

    def find(self, jti: str) -> TokenRecord | None:
        return self._records.get(jti)

    def records(self) -> list[TokenRecord]:
        """All of them, oldest first."""
        return list(self._records.values())

    def put(self, record: TokenRecord) -> None:
        """Add one, or replace the one of its jti; those long expired are dropped on the way."""
        with self._changing:
            since = clock.now() - _KEPT_AFTER_EXPIRY
            kept = {jti: known for jti, known in self._records.items() if known.expires_at > since}
            kept[record.jti] = record
            if self._path is not None:
                write_checked(self._path, msgspec.json.encode(list(kept.values())))
            self._records = kept


def _read(path: Path) -> dict[str, TokenRecord]:
    try:
        content = read_checked(path)
        records = [] if content is None else msgspec.json.decode(content, type=list[TokenRecord])
    except (Damaged, ValueError) as error:
        raise Corrupt(
            f"{path} is damaged: no token can be told from a revoked one. Restore it from a copy, or remove it and "
            "make new tokens; those given out so far are refused then.",
            details={"path": str(path)},
        ) from error
    return {record.jti: record for record in records}
