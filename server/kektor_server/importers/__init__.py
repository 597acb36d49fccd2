"""Memories of other systems: a reader for each format, which knows nothing of us, and one way in for all of them.

`items` is what readers yield; `readers` lists them; `run` sends items through the same operations as every command.
"""
