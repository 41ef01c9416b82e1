"""Kernels that join documents into groups: a forest of parents, the smallest document of a group at its root."""

import numpy as np

from lshdup.kernels.helpers import U32, inlined
from lshdup.kernels.jit import kernel


@inlined
def _root(parent: U32, document: np.uint32) -> np.uint32:
    while parent[document] != document:
        parent[document] = parent[parent[document]]
        document = parent[document]
    return document


@inlined
def _join(parent: U32, order: U32, start: int, end: int) -> None:
    """Give the documents at order[start:end] one root, the smallest that they have."""
    a = _root(parent, order[start])
    for p in range(start + 1, end):
        b = _root(parent, order[p])
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
            a = b


@kernel
def find_roots(parent: U32) -> None:
    """Afterwards each document's parent is its root. Roots are the smallest of their kind, so one pass upwards does it."""
    for d in range(len(parent)):
        parent[d] = parent[parent[d]]


@kernel
def unite(left: U32, right: U32, parent: U32) -> None:
    """Join the positions left[i] and right[i]: roots are the smallest of all joined."""
    for i in range(len(left)):
        a, b = _root(parent, np.int64(left[i])), _root(parent, np.int64(right[i]))
        parent[max(a, b)] = min(a, b)
