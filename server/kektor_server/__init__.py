"""The server side: REST, MCP, the daemon that owns a data directory, and the command line.

Importing this package imports nothing: `kektor mcp` must be up before an editor loses patience.
"""
