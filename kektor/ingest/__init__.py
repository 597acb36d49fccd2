"""Raw material in: conversations now; every message is kept verbatim before anything is made of it."""

from kektor.ingest.conversations import IngestMessages, IngestMessagesRequest, MessageIn

__all__ = ["IngestMessages", "IngestMessagesRequest", "MessageIn"]
