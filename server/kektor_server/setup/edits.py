"""What editors of configuration files have in common."""

__all__ = ["Uneditable"]


class Uneditable(Exception):
    """A file that cannot be changed without risk to what else is in it; the message says where and why."""
