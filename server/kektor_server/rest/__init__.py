"""The REST door: HTTP in, one operation, JSON out. Business rules live in the library.

A request passes `guard` (request id, Host and Origin, errors), `table` (its route and lane), `query` and `body`
(decoding), the function of its route in `routes/`, and `route` (encoding). `openapi` describes the same declarations.
"""

from kektor_server.rest.app import create_app
from kektor_server.rest.principal import Authenticate
from kektor_server.rest.serve import Server, bind, build_server, serve

__all__ = ["Authenticate", "Server", "bind", "build_server", "create_app", "serve"]
