"""The server itself: is it alive, can it work, what is it."""

from kektor.contract import convert
from kektor.errors import Forbidden, Unavailable
from kektor.memory.limits import LIMITS
from kektor_server.metrics.registry import CONTENT_TYPE
from kektor_server.rest.answers import Alive, Info, KeySet, Limits, Ready
from kektor_server.rest.route import Call, Lane, Reply, Routes

__all__ = ["routes"]

routes = Routes("server")


@routes.get("/healthz", lane=Lane.LOOP, public=True)
def healthz(_: Call) -> Alive:
    """Whether the process answers at all."""
    return Alive()


@routes.get("/readyz", lane=Lane.LOOP, public=True)
def readyz(call: Call) -> Ready:
    """Whether reads and writes work.

    Damage met so far is named with status `degraded`; the answer is 503 while the database is read-only or closed.
    """
    health = call.operations.health()
    if health.status == "unavailable":
        raise Unavailable("; ".join(health.reasons))
    return Ready(health.status, health.findings)


@routes.get("/metrics", lane=Lane.READ, media=CONTENT_TYPE)
def metrics(call: Call) -> Reply:
    """What is counted, as Prometheus reads it: requests, times, sizes, health. For callers whose grants have no
    bounds, since it is about all of it."""
    if not call.principal.reaches_everything:
        raise Forbidden("the metrics are about every index and scope; this caller has grants with bounds")
    return Reply(200, CONTENT_TYPE.encode(), call.service.metrics.text())


@routes.get("/.well-known/jwks.json", lane=Lane.READ, public=True)
def jwks(call: Call) -> KeySet:
    """The public keys that receipts of erasures, and tokens, are verified with (RFC 7517)."""
    return convert(KeySet, call.operations.jwks())


@routes.get("/v1/info", lane=Lane.LOOP)
def info(call: Call) -> Info:
    """The version, the default embedder, the tokenizer that budgets are counted in, and the limits."""
    about = call.operations.about()
    settings = call.settings
    limits = Limits(
        body=settings.body_bytes,
        headers=settings.header_bytes,
        request_seconds=settings.request_seconds,
        requests=settings.requests,
        rate=settings.rate,
        streams=settings.streams,
        text=LIMITS["text_bytes"],
        id=LIMITS["id_bytes"],
        tags=LIMITS["tags"],
        tag=LIMITS["tag_bytes"],
        metadata=LIMITS["metadata_bytes"],
        metadata_keys=LIMITS["metadata_keys"],
        json_depth=LIMITS["json_depth"],
        k=LIMITS["k"],
        dim=LIMITS["dim"],
        batch=LIMITS["batch"],
    )
    return Info("kektor", about.version, "v1", about.embedder, about.tokenizer, limits)
