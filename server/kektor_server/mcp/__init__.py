"""MCP: a relay on standard input and output, and the tools in the daemon behind it.

`relay`, `protocol` and `calls` use the standard library only and answer from `tools.json`, which `generate` writes
from the tools' own registry; everything else runs in the daemon.
"""
