"""Edges between slots and how to walk them.

This package knows numbers only: which edge joins which slots, and how to search over a `neighbours` function. What
an edge says, when it holds and who may see it is decided above, by the engine, through that function.
"""

from kektor.graph.adjacency import Adjacency
from kektor.graph.walk import Route, Step, Walk, cheapest_path, shortest_path, traverse

__all__ = ["Adjacency", "Route", "Step", "Walk", "cheapest_path", "shortest_path", "traverse"]
