"""What a filter costs as the index grows: CPU time of compiling a View anew, at several sizes.

    python benchmarks/filters/growth.py [SIZE ...]

Nodes are put straight into one index in memory, without text and vectors. Conditions that keep about a hundred nodes at
every size show whether the cost follows the answer or the index.
"""

import json
import statistics
import sys
import time

from msgspec import structs

from kektor.engine.effects import PutNode
from kektor.engine.records import IndexSettings, Kind, Moment, Node, Scope, State
from kektor.engine.space import IndexSpace
from kektor.engine.view import ScopeRule, View
from kektor.engine.visible import ViewCompiler
from kektor.query import parse_filter

FILTERS = {
    "about 100 of a number": "metadata.number >= {last_hundred}",
    "about 100 of a time": "recorded_at >= {last_moment}",
    "one value of a key": "metadata.code = 'c{middle}'",
    "about 100, then a text": "metadata.number >= {last_hundred} AND text LIKE 'x%'",
    "half by tag": "tags CONTAINS 'even'",
    "half of half": "tags CONTAINS 'even' AND metadata.parity = 1",
    "a list of 100 values": "metadata.code IN ({codes})",
}
START = 1_700_000_000_000_000


def filled(size: int) -> IndexSpace:
    space = IndexSpace(IndexSettings("bench", 1, 2))
    for at in range(size):
        node = Node(
            id=f"n{at}",
            kind=Kind.MEMORY,
            text="",
            scope=Scope(),
            lineage=f"n{at}",
            version=1,
            states=(State(START + at * 1_000_000),),
            metadata={"number": at, "code": f"c{at}", "parity": at % 4 // 2},
            tags=("even" if at % 2 == 0 else "odd",),
            occurred=Moment(START),
        )
        space.put_nodes([PutNode(1, at, node)], at + 1)
    return space


def measured(space: IndexSpace, size: int) -> dict[str, dict[str, float]]:
    codes = ", ".join(f"'c{at}'" for at in range(0, size, max(1, size // 100)))
    found = {}
    for name, source in FILTERS.items():
        written = source.format(
            last_hundred=size - 100, last_moment=START / 1e6 + size - 100, middle=size // 2, codes=codes
        )
        view = View("bench", ((ScopeRule(),),), START * 2, filter=parse_filter(written))
        times = []
        for _ in range(15):
            compiler = ViewCompiler(space)
            compiler.compile(structs.replace(view, filter=None))
            begun = time.process_time()
            matching = len(compiler.compile(view).slots)
            times.append(time.process_time() - begun)
        found[name] = {"matching": matching, "milliseconds": round(statistics.median(times) * 1000, 3)}
    return found


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:]] or [10_000, 100_000]
    results = {}
    for size in sizes:
        begun = time.process_time()
        space = filled(size)
        results[str(size)] = {"seconds to fill": round(time.process_time() - begun, 1), **measured(space, size)}
    print(json.dumps(results, indent=1))
