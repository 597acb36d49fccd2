"""The process that `launch` starts: `python -m kektor_server.daemon DATA LOCK READY`, the last two descriptors."""

import os
import sys


def main() -> int:
    data, lock, ready = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # Before anything is imported and any thread runs. Being nobody's child and in a session of its own, it outlives
    # the editor that asked first, and is shared with those that ask later.
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    for descriptor in (lock, ready):
        os.set_inheritable(descriptor, False)
    from kektor_server.daemon.on_demand import run

    return run(data, ready)


if __name__ == "__main__":
    sys.exit(main())
