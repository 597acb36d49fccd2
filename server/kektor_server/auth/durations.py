"""Lengths of time as people write them."""

import re
from typing import Final

from kektor.errors import Invalid

__all__ = ["seconds_of"]

_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LENGTH: Final = re.compile(r"(\d{1,12})\s*([smhdw]?)")
_TEN_YEARS: Final = 3650 * 86_400


def seconds_of(value: int | str, *, field: str, least: int = 1) -> int:
    """Seconds, given as a number or with a unit (`30d`); at most ten years.

    >>> seconds_of("30d", field="expires_in")
    2592000
    """
    found = _LENGTH.fullmatch(str(value).strip().lower())
    if found is None:
        raise Invalid(f"{field} is a number of seconds or a length such as 30d, 12h or 15m, not {value!r}", field=field)
    seconds = int(found[1]) * _UNITS[found[2]]
    if not least <= seconds <= _TEN_YEARS:
        raise Invalid(f"{field} must be {least} second to 10 years (3650d), not {value!r}", field=field)
    return seconds
