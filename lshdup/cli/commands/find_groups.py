"""The groups that `clusters` and `folders` start from: by bands, by the exact join, or of the same
documents. No command of its own.
"""

from typing import TYPE_CHECKING

from lshdup.cli.messages import say_buckets, say_collection, say_index
from lshdup.cli.options import FindOptions
from lshdup.cli.session import Session
from lshdup.params import ClusterParams

if TYPE_CHECKING:
    from lshdup.collection.collection import Collection
    from lshdup.compare.results import ClustersFound


def find_groups(
    session: Session, options: FindOptions, rule: ClusterParams, least: int = 2
) -> "tuple[Collection, ClustersFound]":
    """Find the groups that the options request, and say on stderr what was done.

    least : of `say_collection`.
    """
    workspace, request = session.workspace, session.request
    if options.exact:
        collection, sets = workspace.load_or_collect_sets(request)
        say_collection(session, collection, least)
        return collection, workspace.find_clusters_exactly(collection, sets, rule, request)
    if options.same:
        collection = workspace.load_or_collect_signatures(request, 0)
        say_collection(session, collection, least)
        return collection, workspace.find_same(collection, options.same, rule, request)
    indexed = workspace.load_or_build_index(request, save=False)
    collection = indexed.collection
    say_index(session, indexed, least)
    found = workspace.find_clusters(indexed, rule, request)
    names = collection.documents.names.strings_at
    say_buckets(session.console, found.buckets, names, rule.max_bucket, indexed.index.table)
    return collection, found
