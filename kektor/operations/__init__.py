"""Every operation once: a typed request and a caller in, an object out.

The embedded handles, REST, MCP and the CLI all call these and nothing below them, so that what one door does every
door does.
"""

from kektor.operations.admin import AdminOperations
from kektor.operations.audit import AuditOperations
from kektor.operations.export import ExportOperations
from kektor.operations.forgetting import ForgetOperations
from kektor.operations.graph import GraphOperations
from kektor.operations.indexes import IndexOperations
from kektor.operations.kv import KvOperations
from kektor.operations.memories import MemoryOperations
from kektor.operations.nodes import NodeOperations
from kektor.operations.reads import ReadOperations
from kektor.operations.reviews import ReviewOperations
from kektor.operations.sessions import SessionOperations
from kektor.operations.sharing import ShareOperations
from kektor.operations.tombstones import TombstoneOperations

__all__ = ["Operations"]


class Operations(
    ReadOperations,
    GraphOperations,
    MemoryOperations,
    ForgetOperations,
    TombstoneOperations,
    SessionOperations,
    ShareOperations,
    ReviewOperations,
    NodeOperations,
    KvOperations,
    IndexOperations,
    AdminOperations,
    AuditOperations,
    ExportOperations,
):
    """All of them over one database."""
