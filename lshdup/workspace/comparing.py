"""The comparison of one collection: loading what its method needs, and finding its answer."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.collection.collection import Collection
from lshdup.collection.set_source import set_source
from lshdup.compare.comparing import Method, compare
from lshdup.compare.expand_duplicates import ExpandedPairs, expand_copies
from lshdup.compare.results import ClustersFound, PairsFound
from lshdup.compare.sides import Sides
from lshdup.params import BandParams, ClusterParams
from lshdup.pipeline import side_of
from lshdup.store.checksums import is_lazy
from lshdup.workspace.context import RunContext
from lshdup.workspace.index import IndexedCollection
from lshdup.workspace.request import Request, merge_params
from lshdup.workspace.samples import SampleCollector, load_or_make_samples
from lshdup.workspace.workspace import Workspace


@dataclass(frozen=True)
class Comparison:
    """A collection that can be compared with itself.

    params : threshold and recall.
    indexed : the collection with its bands, if bands find the pairs.
    sides : what is compared of it.
    """

    workspace: Workspace
    request: Request
    method: Method
    params: BandParams
    collection: Collection
    sides: Sides
    indexed: IndexedCollection | None = None

    def find_pairs(self) -> PairsFound:
        """Find the pairs, or load those of the last run."""
        if self.indexed is not None:
            return self.workspace.find_pairs(self.indexed, self.method.pairs)
        return compare(self.workspace, self.sides, self.params, self.method)

    def expand_copies(self, found: PairsFound, *, collapse: bool = False) -> ExpandedPairs:
        """Expand to pairs of all documents."""
        sizes = self.sides.sizes if self.method.pairs.measure == "containment" else None
        return expand_copies(
            self.workspace, found.pairs, self.sides.duplicate_of, collapse=collapse, sizes=sizes
        )

    def find_clusters(self, rule: ClusterParams) -> ClustersFound:
        """Find the groups, or load those of the last run."""
        workspace, request = self.workspace, self.request
        if self.indexed is not None:
            return workspace.find_clusters(self.indexed, rule, request)
        if self.method.same is not None:
            return workspace.find_same(self.collection, self.method.same, rule, request)
        return workspace.find_clusters_exactly(self.collection, rule, request)


def open_comparison(
    workspace: Workspace, request: Request, method: Method, *, clustering: bool = False
) -> Comparison:
    """Load or collect what a method needs.

    clustering : whether groups are made of the candidates of bands, or pairs.
    """
    params, duplicate_of, indexed, sample = (
        merge_params(BandParams, request.given),
        None,
        None,
        None,
    )
    if method.by_bands:
        indexed = workspace.load_or_build_index(
            request, save=False, pairs=None if clustering else method.pairs
        )
        collection, duplicate_of = indexed.collection, indexed.index.duplicate_of
    elif method.by_samples:
        collection, sampled = workspace.collect_to_join(request)
        request.accept(collection.documents, True)
        sample = sample_with(workspace, collection, sampled)
    elif method.exact:
        collection, _ = workspace.load_or_collect_sets(request)
    else:
        collection = workspace.load_or_collect_signatures(request, 0)
    sets = collection.sets
    if sets is not None and is_lazy(sets.values):
        sets = None  # The source verifies what it copies; kernels take no lazily verified array.
    source = set_source(workspace, collection, stage="documents" if method.by_samples else "")
    side = side_of(collection, source, sets, sample)
    sides = Sides.of(workspace, side, same=method.same, duplicate_of=duplicate_of)
    return Comparison(workspace, request, method, params, collection, sides, indexed)


def sample_with(
    run: RunContext, collection: Collection, sampled: SampleCollector
) -> Callable[[NDArray[np.int64], int, SetSource], RaggedSets]:
    """Return the function that gives samples of sets, of `Side`.

    sampled : samples of the documents that this run has read.
    """

    def sample(members: NDArray[np.int64], rate: int, source: SetSource) -> RaggedSets:
        return load_or_make_samples(run, collection, members, rate, sampled, source)

    return sample
