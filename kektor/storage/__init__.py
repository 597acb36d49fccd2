"""Where bytes live: the lock, the log, checkpoints, record heaps.

Nothing here knows what a memory is; structures own their bytes, this package owns files and folders.
"""
