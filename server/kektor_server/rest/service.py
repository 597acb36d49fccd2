"""What all requests of one application share."""

from kektor.api import Database
from kektor_server.rest.body import Intake
from kektor_server.rest.pool import Lane
from kektor_server.rest.principal import Authenticate
from kektor_server.settings import Settings

__all__ = ["Service"]


class Service:
    """A database behind HTTP: its operations, who may call them, and the bounds of what is taken in."""

    def __init__(self, database: Database, settings: Settings, authenticate: Authenticate) -> None:
        self.operations = database.operations
        self.settings = settings
        self.authenticate = authenticate
        self.intake = Intake(body_bytes=settings.body_bytes, buffered_bytes=settings.buffered_bytes)
        self.reads = Lane("read", threads=settings.read_threads, queue=settings.queue)
        self.writes = Lane("write", threads=settings.write_threads, queue=settings.queue)

    def close(self) -> None:
        """Wait for the calls that run."""
        self.reads.close()
        self.writes.close()
