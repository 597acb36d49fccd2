"""The doors of Kektor that need a network or a terminal: REST, MCP, the command line and the daemon between them.

Nothing is imported here: `kektor mcp` answers before anything heavy is loaded.
"""
