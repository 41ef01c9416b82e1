"""The comparison of one collection: loading what its method needs, and finding its answer."""

from lshdup.base.frozen import dataclass
from lshdup.collection.collect import EVERY_SET
from lshdup.collection.collection import Collection
from lshdup.collection.set_source import set_source
from lshdup.compare.comparing import Method, compare
from lshdup.compare.expand_duplicates import ExpandedPairs, expand_copies
from lshdup.compare.results import ClustersFound, PairsFound
from lshdup.compare.sides import Side, Sides
from lshdup.params import BandParams, ClusterParams
from lshdup.pipeline import find_clusters, side_of
from lshdup.workspace.index import IndexedCollection, load_or_build_index, load_or_find_pairs
from lshdup.workspace.loading import load_all_sets, load_signatures
from lshdup.workspace.request import Request, merge_params
from lshdup.workspace.workspace import Workspace


@dataclass(frozen=True)
class Comparison:
    """A collection that can be compared with itself.

    params : threshold and recall.
    sides : what is compared of it.
    indexed : the collection with its bands, if bands find the pairs.
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
            return load_or_find_pairs(self.workspace, self.indexed, self.method.pairs)
        return compare(self.workspace, self.sides, self.params, self.method)

    def expand_copies(self, found: PairsFound, *, collapse: bool) -> ExpandedPairs:
        """Expand to pairs of all documents."""
        sizes = self.sides.sizes if self.method.pairs.measure == "containment" else None
        return expand_copies(
            self.workspace, found.pairs, self.sides.duplicate_of, collapse=collapse, sizes=sizes
        )

    def find_clusters(self, rule: ClusterParams) -> ClustersFound:
        """Find the groups, or load those of the last run. Those of other methods are not saved."""
        from lshdup.workspace import clustering  # Imported here to keep `query` fast.

        run, request, collection = self.workspace, self.request, self.collection
        if self.indexed is not None:
            return clustering.load_or_find_clusters(run, self.indexed, rule, request)
        order = clustering.order_documents(run, collection, rule, request)
        if self.method.same is not None:
            found = clustering.find_same_clusters(run, collection, self.method.same, order.order)
        else:
            side, threshold = self.sides.left, self.params.threshold
            found = find_clusters(run, collection, None, side, threshold, rule, order)
        return clustering.drop_changed(found, collection.documents, run.skipped, 0)


def open_comparison(
    run: Workspace, request: Request, method: Method, *, clustering: bool
) -> Comparison:
    """Load or collect what a method needs.

    clustering : whether groups are made of the candidates of bands, or pairs.
    """
    params, duplicate_of, indexed = merge_params(BandParams, request.given), None, None
    if method.by_bands:
        pairs = None if clustering else method.pairs
        indexed = load_or_build_index(run, request, pairs=pairs)
        collection, duplicate_of = indexed.collection, indexed.index.duplicate_of
        side = side_of(collection, set_source(run, collection))
    elif method.exact:
        collection = load_all_sets(run, request)
        sets = collection.filtered_sets(run.arrays)
        side = side_of(collection, sets.take, sets)
    else:
        collection, side = load_side(run, request, method)
    sides = Sides.of(run, side, same=method.same, duplicate_of=duplicate_of)
    return Comparison(run, request, method, params, collection, sides, indexed)


def load_side(run: Workspace, request: Request, method: Method) -> tuple[Collection, Side]:
    """Load or collect the documents of a request as a side; with their sets if these are joined."""
    collection = load_signatures(run, request, memory=EVERY_SET if method.is_join else 0)
    source = set_source(run, collection, stage="documents" if method.is_join else "")
    return collection, side_of(collection, source)
