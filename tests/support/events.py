"""What the log says of who tried what, while there is no audit to ask."""

from kektor_native import Damage, scan_log

from kektor.engine import effects
from kektor.engine.effects import Event

__all__ = ["events_of"]


def events_of(log_folder: str, index: str, after_lsn: int = 0) -> list[Event]:
    """The events about an index that the log still holds, oldest first. A writer may be at work meanwhile."""
    return [
        event
        for _, items in scan_log(log_folder, after_lsn)
        for item in items
        if not isinstance(item, Damage)
        and item.lsn > after_lsn
        and (event := effects.decode(item.payload).event).index == index
    ]
