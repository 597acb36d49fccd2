"""The languages of the text index."""

import kektor_native

__all__ = ["languages"]


def languages() -> tuple[str, ...]:
    """Those with an analyzer, by name.

    >>> "english" in languages()
    True
    """
    return tuple(kektor_native.languages())
