"""One way to call every door: the same operations with the same plain JSON, whatever carries them.

A `Door` is a way in, a `Caller` somebody who comes through it. Field names are those of REST; what a door's answer
leaves out (MCP sends handles instead of texts) is left out here too. An operation or a field that a door does not
have yet raises `Pending`, which tests put down and never skip in silence.
"""

from tests.support.callers.door import Caller, Door, Operation, Pending, Refused, Who

__all__ = ["Caller", "Door", "Operation", "Pending", "Refused", "Who"]
