"""What all requests of one application share."""

from functools import cached_property, partial
from typing import TYPE_CHECKING

from kektor.api import Database
from kektor_server.auth.denials import Denials
from kektor_server.metrics.registry import Metrics
from kektor_server.metrics.traces import spans
from kektor_server.rest.body import Intake
from kektor_server.rest.events import EventHub
from kektor_server.rest.pool import Lane
from kektor_server.rest.principal import Authenticate, everyone, holders_of_tokens
from kektor_server.rest.rates import Rates
from kektor_server.settings import Settings

if TYPE_CHECKING:
    from kektor_server.auth.authority import TokenAuthority

__all__ = ["Service"]


class Service:
    """A database behind HTTP: its operations, who may call them, and the bounds of what is taken in."""

    def __init__(self, database: Database, settings: Settings, authenticate: Authenticate | None) -> None:
        self.operations = database.operations
        self.settings = settings
        self._database = database
        self.denials = Denials(database.gateway)
        self.rates = Rates(settings.rate)
        self.spans = spans()
        self.events = EventHub(database.gateway, most=settings.streams)
        self.authenticated = settings.authenticated or authenticate is not None
        """Whether callers have to say who they are."""
        if authenticate is not None:
            self.authenticate = authenticate
        else:
            self.authenticate = holders_of_tokens(self.authority) if settings.authenticated else everyone()
        self.intake = Intake(body_bytes=settings.body_bytes, buffered_bytes=settings.buffered_bytes)
        self.reads = Lane("read", threads=settings.read_threads, queue=settings.queue)
        self.writes = Lane("write", threads=settings.write_threads, queue=settings.queue)

    @cached_property
    def metrics(self) -> Metrics:
        """What is counted."""
        lanes = (("read", self.reads), ("write", self.writes))
        return Metrics(
            self._database.engine,
            [
                *(
                    (f"kektor_{name}_calls", f"Calls that {name} or wait to.", partial(_busy, lane))
                    for name, lane in lanes
                ),
                ("kektor_bodies_held_bytes", "Bodies of unfinished requests.", lambda: self.intake.held),
                ("kektor_event_listeners", "Callers that listen to events.", lambda: self.events.listening),
            ],
        )

    @cached_property
    def authority(self) -> "TokenAuthority":
        """The tokens of the database; where nobody needs one, first read when somebody asks."""
        from kektor_server.auth.authority import TokenAuthority

        return TokenAuthority.of(self._database)

    def stop(self) -> None:
        """End what would go on for as long as a caller likes; on the loop's thread, when the server is to end."""
        self.events.stop()

    def close(self) -> None:
        """Wait for the calls that run."""
        self.reads.close()
        self.writes.close()
        self.denials.close()
        self.events.close()


def _busy(lane: Lane) -> float:
    return lane.busy
