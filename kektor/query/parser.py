"""From either written form to one filter."""

from collections.abc import Mapping
from typing import Any

from kektor import clock
from kektor.engine.filters import Filter
from kektor.errors import Invalid, TooLarge
from kektor.query import json_form
from kektor.query.rules import Reading, typed
from kektor.query.syntax import Tree

__all__ = ["parse_filter"]


def parse_filter(
    source: str | Mapping[str, Any] | Filter | None,
    *,
    tz: str = "UTC",
    now: int | None = None,
    field: str = "filter",
) -> Filter | None:
    """The filter that a caller wrote: text, the JSON form (decoded, or as text that begins with a brace).

    `tz` is the zone of dates and of times without offset; `now` (microseconds, default the clock) is the
    instant of `'now'` and lies in the day of `'today'`. None stands for no filter; a `Filter` is given back
    as it is.

    Raises `Invalid` with the `field` that it came in, whose details hold the `position` (of the first
    character: 1) or, in JSON, the `path`, and after a syntax error what was `expected`; `TooLarge` past the
    limits of `kektor.query.syntax`.

    >>> parse_filter("layer = 'semantic' AND NOT metadata.stage IN ('draft', 'old')")  # doctest: +ELLIPSIS
    And(terms=(Compare(op='=', field=Field(path=('layer',), bare=False), value='semantic'), Not(...)))
    >>> parse_filter({"eq": ["layer", "semantic"]}) == parse_filter('layer = "semantic"')
    True
    """
    if source is None or isinstance(source, Filter):
        return source
    try:
        return typed(_tree(source), Reading(tz, clock.now() if now is None else now))
    except (Invalid, TooLarge) as error:
        if field == "filter":
            raise
        message = field + error.message.removeprefix("filter")
        raise type(error)(message, field=field, details=error.details) from None


def _tree(source: object) -> Tree:
    if isinstance(source, Mapping):
        return json_form.read(source)
    if not isinstance(source, str):
        raise Invalid(f"filter: must be text or an object, not a {type(source).__name__}", field="filter")
    if source.lstrip().startswith("{"):
        return json_form.read(json_form.decode(source))
    # The grammar is compiled when the first filter in text arrives, and not before.
    from kektor.query import text_form

    return text_form.read(source)
