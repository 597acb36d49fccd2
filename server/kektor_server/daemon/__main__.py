"""The process that `launch` starts: `python -m kektor_server.daemon DATA LOCK READY`, the last two descriptors."""

import json
import os
import sys

from kektor_server.extras import how_to_install


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
    try:
        from kektor_server.daemon.on_demand import run
    except ModuleNotFoundError as error:
        advice = how_to_install(error)
        if advice is None:
            raise
        told: dict[str, object] = {"error": {"code": "unavailable", "message": advice, "field": None, "details": {}}}
        os.write(ready, json.dumps(told).encode())
        return 2
    return run(data, ready)


if __name__ == "__main__":
    sys.exit(main())
