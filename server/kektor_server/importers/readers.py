"""The formats by name."""

from kektor_server.importers.chats import read_chatgpt, read_claude
from kektor_server.importers.graphs import read_graph
from kektor_server.importers.items import Reader
from kektor_server.importers.kektordb import read_kektordb
from kektor_server.importers.markdown import read_markdown
from kektor_server.importers.mem0 import read_mem0

__all__ = ["READERS"]

READERS: dict[str, Reader] = {
    "mcp-memory": read_graph,
    "mem0": read_mem0,
    "basic-memory": read_markdown,
    "kektordb": read_kektordb,
    "chatgpt": read_chatgpt,
    "claude": read_claude,
}
