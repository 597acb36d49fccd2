"""Optional packages: found without being imported, and asked for by the name of the extra."""

from importlib.util import find_spec

from kektor.errors import Unavailable

__all__ = ["require"]


def require(package: str, *, extra: str) -> None:
    """Nothing if `package` can be imported, else `Unavailable` with the command that installs it."""
    if find_spec(package) is None:
        raise Unavailable(
            f"this needs the package {package}, which is not installed: pip install 'kektor[{extra}]'",
            details={"package": package, "extra": extra},
        )
