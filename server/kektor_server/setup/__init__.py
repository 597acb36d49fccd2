"""`kektor setup`: the memory put into an agent's own configuration, and taken out again, with every other byte kept.

`clients` says where each client keeps what; `jsonc`, `toml`, `yaml` and `blocks` edit the kinds of file; `plan` makes
of both the changes to files, and `files` writes them.
"""
