"""One process owns a data directory; everyone else on the machine finds it by its Unix socket.

`places`, `client` and `launch` are for those who look for it and use the standard library only; `service` is the
process itself.
"""
