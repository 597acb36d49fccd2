"""The write policies, in the order in which the Gateway runs them."""

from kektor.engine.gateway import Policy
from kektor.memory.context import MemoryContext
from kektor.memory.policies.authority import Authority
from kektor.memory.policies.claims import Claims
from kektor.memory.policies.duplicates import Duplicates
from kektor.memory.policies.evidence import EvidencePolicy
from kektor.memory.policies.tombstones import Tombstones
from kektor.memory.policies.trust import TrustPolicy

__all__ = ["write_policies"]


def write_policies(context: MemoryContext) -> list[Policy]:
    """Authority first: nothing is looked up for a caller who may not write. Claims last: what is only proposed puts
    nothing else in doubt."""
    return [
        Authority(),
        Tombstones(context),
        EvidencePolicy(context),
        Duplicates(),
        TrustPolicy(),
        Claims(context.digester),
    ]
