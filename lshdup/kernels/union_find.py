"""Union-find over documents: a forest of parents with the smallest document of a group at its root.

Reference in the tests: `obvious_components` of tests/compare/test_clusters.py.
"""

from lshdup.kernels.helpers import U32, inlined
from lshdup.kernels.jit import kernel


@inlined
def find_root(parent: U32, document: int) -> int:
    """Return the root of a document, and halve the path to it."""
    while parent[document] != document:
        parent[document] = parent[parent[document]]
        document = parent[document]
    return document


@kernel
def join_pairs(left: U32, right: U32, parent: U32) -> None:
    """Join the documents left[i] and right[i]; the smaller root stays."""
    for i in range(len(left)):
        a, b = find_root(parent, left[i]), find_root(parent, right[i])
        parent[max(a, b)] = min(a, b)


@inlined
def join_run(parent: U32, order: U32, start: int, end: int) -> None:
    """Join the documents order[start:end]; their smallest root stays."""
    a = find_root(parent, order[start])
    for p in range(start + 1, end):
        b = find_root(parent, order[p])
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
            a = b


@kernel
def find_roots(parent: U32) -> None:
    """Replace each parent by the root. One ascending pass is enough: roots are the smallest."""
    for d in range(len(parent)):
        parent[d] = parent[parent[d]]
