"""The command line: one module a group of commands, over one of two targets.

`target` decides whether a command opens the data directory itself or asks a server; `table` lists what both can do,
`local` and `remote` are the two ways.
"""
