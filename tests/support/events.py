"""What the log says of who tried what, without asking the database."""

from kektor_native import Damage, scan_log

from kektor.engine import audit, effects
from kektor.engine.audit import AuditEvent

__all__ = ["events_of"]


def events_of(log_folder: str, index: str, after_lsn: int = 0) -> list[AuditEvent]:
    """The events about an index that the log still holds, oldest first. A writer may be at work meanwhile."""
    return [
        event
        for _, items in scan_log(log_folder, after_lsn)
        for item in items
        if not isinstance(item, Damage) and item.lsn > after_lsn
        for event in audit.events([audit.encoded(item.lsn, *effects.decode_audit(item.payload))])
        if event.index == index
    ]
