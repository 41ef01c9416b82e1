"""`pairs DOCS --against OTHER`: both sides are read or loaded, with the same parameters.

OTHER is one store, which is only read and sets the parameters of both sides (its documents may be
gone), or one collection of folders and files, which is read each time.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import Arrays, slices_of
from lshdup.base.params import BandParams, ClusterParams, DocumentParams, PairParams, SketchParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped
from lshdup.base.wording import count_of, join_names, quote_command
from lshdup.collection.collection import Collection
from lshdup.collection.keep_rules import Preference, preference
from lshdup.collection.set_source import side_of
from lshdup.compare.best_matches import BestMatches
from lshdup.compare.clusters import Clusters
from lshdup.compare.results import ClustersFound
from lshdup.compare.scored_pairs import Pairs, take_pairs
from lshdup.compare.sides import Side, Sides
from lshdup.errors import RERUN, ArtifactError, InputError, ParameterError
from lshdup.lsh.band_plan import plan_bands
from lshdup.lsh.candidates import NO_BUCKETS, find_exact_duplicates
from lshdup.pipeline import build_index, find_clusters
from lshdup.shingling.shingle_filter import are_same_filters
from lshdup.sources.finding import check_named
from lshdup.store.store import Store
from lshdup.workspace.comparing import Comparison, drop_changed, load_side
from lshdup.workspace.loading import compares_files, load_whole_documents
from lshdup.workspace.request import Request, check_conflict, merge_params
from lshdup.workspace.workspace import Workspace

#: Words for documents of OTHER whose sets are unavailable.
_FATES = {Reason.VANISHED: "gone", Reason.CHANGED: "changed since"}


def load_sides(
    run: Workspace,
    request: Request,
    others: tuple[bytes, ...],
    method: PairParams,
    skipped_there: Callable[[Skipped], None] = lambda _: None,
) -> Comparison:
    """Read or load both sides.

    Parameters
    ----------
    run : threads and memory of both sides, what is told, and the store of DOCS.
    request : names DOCS; without DOCS, the documents of the last run.
    others : one store; or folders and files, which are read.
    method : how documents are compared.
    skipped_there : notified of each file of OTHER that is not compared.

    Errors: ParameterError or ArtifactError, which name the difference, if the sides cannot be
    compared.

    """
    other = select_store(others)
    fates: Counter[str] = Counter()
    there: tuple[Collection, Side] | None = None
    if other is not None:
        there = _load_store(run, other, request, fates, method)
        request.accept_source(there[0].documents, "--against")
        # The parameters are those of the store.
        remedy = f"leave that out, or run `lshdup index OTHER --store {other}` with it"
        assert there[0].sketch is not None
        for stored in (there[0].shingle, there[0].sketch):
            check_conflict(str(other), stored, request.given, remedy)
        request = replace(request, given={**_definition(there[0]), **request.given})
    store = run.store
    if store is not None and other is not None and store.folder.resolve() == other.resolve():
        if not request.documents:
            message = (
                f"the last run in {store.folder} is what OTHER names: without DOCS there is"
                " nothing to hold against it"
            )
            raise InputError(message, "name DOCS, or another --store")
        run.say(
            f"what is made of DOCS is not kept: {store.folder} is OTHER's; --store DIR keeps it"
            " elsewhere"
        )
        store, run = None, Workspace(run.but(arrays=Arrays(run.memory)), apart=run.apart)
    half = run.but(arrays=Arrays(run.memory // 2))  # The memory is that of both sides.
    workspace = Workspace(half, store, apart=run.apart)
    params = merge_params(BandParams, request.given)
    # A promise that cannot be kept is refused before the work.
    if request.documents and method.by_bands:
        plan_bands(merge_params(SketchParams, request.given).perms, params)
    of_other = replace(  # without the patterns of DOCS
        request,
        documents=others,
        files=replace(request.files, include=(), exclude=()),
        accept=lambda documents, _read: request.accept_source(documents, "--against"),
    )
    reader = Workspace(half.but(skipped=skipped_there), apart=run.apart)
    if compares_files(run, request, method, other=there is not None):
        if not request.documents:
            message = "the last run was one of --same bytes, and has read files of equal size only"
            raise InputError(message, RERUN)
        whole = load_whole_documents((workspace, request), (reader, of_other))
        here, there = ((each, side_of(half, each)) for each in whole)
    else:
        here = load_side(workspace, request, method)
    if there is None:
        run.say(_advise_index(others))
        definition = {**request.given, **_definition(here[0])}
        there = load_side(reader, replace(of_other, given=definition), method)
    where = join_names(map(os.fsdecode, others), 3)
    if not are_same_filters(here[0].shingle_filter, there[0].shingle_filter):
        message = (
            f"from the sets of DOCS and of {other or where} not the same shingles were removed:"
            " they cannot be compared"
        )
        raise ParameterError(
            message,
            "use the same --template for both, and no --ignore-common, which counts one side only",
        )
    left, right = (_require_sets(*each, method) for each in (here, there))
    sides = Sides.of(run, left, right, method.same)
    plan = None
    if method.by_bands:
        plan = plan_bands(here[0].perms, params)
    return Comparison(
        run, request, method, params, here[0], sides, there[0], plan, store=other, fates=fates
    )


def select_store(others: tuple[bytes, ...]) -> Path | None:
    """Return the store that OTHER is, None for folders and files. Refuse a mixture, and names of
    nothing, before the work.
    """
    stores = [each for each in others if Store(Path(os.fsdecode(each))).is_ours()]
    if not stores:
        hint = "name a folder or a file, or the store of an earlier run"
        check_named(others, "--against ", hint, included=True)
        return None
    if len(others) > 1:
        what = "several stores" if len(stores) == len(others) else "a store beside other documents"
        message = f"--against names {what}: {join_names(map(os.fsdecode, others), 3)}"
        raise ParameterError(
            message,
            "index the documents of all of them in one store, `lshdup index A B --store DIR`, then"
            " --against DIR",
        )
    return Path(os.fsdecode(stores[0]))


def _require_sets(collection: Collection, side: Side, method: PairParams) -> Side:
    """Return a side of which some documents may be gone: a join of their sets is then refused."""
    if not method.is_join:
        return side

    def load(documents: NDArray[np.int64]) -> RaggedSets:
        sets = side.source(documents)
        lost = documents[sets.sizes != np.asarray(collection.sizes[documents])]
        if len(lost):
            name = os.fsdecode(collection.documents.typed_names(lost[:1])[0])
            gone = count_of(len(lost), "document is", "documents are")
            is_jaccard = method.measure == "jaccard"
            message = (
                f"{'--exact' if is_jaccard else f'--measure {method.measure}'} needs the"
                f" shingle sets of all documents, and {gone} not to be had any more, as {name}"
            )
            raise InputError(
                message,
                "leave --exact out: signatures decide where documents are gone"
                if is_jaccard
                else "run `lshdup index OTHER` again over what is there, or name its folders",
            )
        return sets

    return replace(side, source=load)


def _load_store(
    run: Run, folder: Path, request: Request, fates: Counter[str], method: PairParams
) -> tuple[Collection, Side]:
    """Load what a store holds; it is only read."""

    def count(each: Skipped) -> None:
        fates[_FATES.get(each.reason, str(each.reason))] += 1

    secret = request.given.get("secret", b"")
    of_other = Run(
        Arrays(run.memory // 2), run.jobs, say=lambda text: run.say(f"{folder}: {text}"),
        skipped=count,
    )  # fmt: skip
    workspace = Workspace(of_other, Store(folder, secret), read_only=True)
    names = {each.name for each in fields(BandParams)}
    given = {name: value for name, value in request.given.items() if name in names}
    stored = Request((), DocumentParams(), given, is_other=True)
    try:
        return load_side(workspace, stored, method)
    except ArtifactError as error:
        error.hint = error.hint.replace(RERUN, f"run `lshdup index OTHER --store {folder}`")
        raise


def _definition(side: Collection) -> dict[str, Any]:
    """Return the parameters that the sets and signatures of both sides must have."""
    assert side.sketch is not None
    definition = {**side.shingle.to_json(), **side.sketch.to_json()}
    if side.shingle_filter is not None:
        definition["least_shingles"] = side.shingle_filter.params.least_shingles
    return definition


def _advise_index(others: tuple[bytes, ...]) -> str:
    names = [os.fsdecode(name) for name in others]
    some = [*names[:3], "..."] if len(names) > 3 else names
    command = quote_command("lshdup", "index", *some, "--store", "DIR")
    return (
        f"{join_names(names, 3)}: read anew each time it is compared with; {command} once, then"
        " --against DIR, spares that"
    )


# --- groups of DOCS, in which what is near a document of OTHER may go ---


def leave_out_changed(both: Comparison, skipped: Callable[[Skipped], None]) -> Comparison:
    """Return the sides without documents of a stored OTHER that are not what was indexed.

    Nothing may go in favour of a document that is gone.

    skipped : notified of each document of OTHER that is not compared.
    """
    run, there, every = both.run, both.there, np.arange(len(both.lists[1]))
    changed = there.documents.changed(every) if there is not None and both.store else every[:0]
    if there is None or not len(changed):
        return both
    run.warn(
        f"skipped of OTHER: {count_of(len(changed), 'document')} deleted or changed since it was"
        " indexed; nothing is dropped for their sake"
    )
    kept = there.take(run, np.setdiff1d(every, changed))
    side = _require_sets(kept, side_of(run.but(skipped=skipped), kept), both.method)
    sides = Sides.of(run, both.sides.left, side, both.method.same)
    return replace(both, there=kept, sides=sides)


def find_clusters_against(
    both: Comparison, matches: BestMatches, shared: NDArray[np.int64], params: ClusterParams
) -> ClustersFound:
    """Group the documents of both sides; those of OTHER are numbered behind those of DOCS.

    A document of DOCS near one of OTHER is in its group. Documents of DOCS that have no match make
    groups as those of a collection of their own. All others of OTHER are in no group.

    Parameters
    ----------
    both : the sides.
    matches : a near document of OTHER for each document of DOCS that has one.
    shared : int64 array, documents of DOCS that are documents of OTHER too.
    params : how groups are made.

    """
    run, sides, here = both.run, both.sides, both.here
    split = len(here.documents)
    is_shared = np.zeros(split, bool)
    is_shared[shared] = True
    # An estimate drops nothing.
    goes = np.flatnonzero((matches.right >= 0) & ~matches.estimated & ~is_shared)
    found = Clusters.empty(run, len(sides.sizes))
    leaders = matches.right[goes] + split
    found.assign(goes, leaders, matches.similarity[goes])
    found.assign(leaders, leaders, 1.0)
    stays = np.flatnonzero(is_shared & (here.sizes > 0))
    found.assign(stays, stays, 1.0)
    rest = np.setdiff1d(np.flatnonzero((here.sizes > 0) & ~is_shared), goes)
    every = preference(run, here.documents, here.sizes, params, both.request.documents)
    order = _take_order(every, rest)
    apart = take_pairs(sides.apart.keys, rest)
    left, method = here.take(run, rest), both.method
    index = build_index(run, left, both.params) if method.by_bands else None
    groups = find_clusters(
        run, left, index, side_of(run, left), both.params.threshold, params, order,
        same=method.same, apart=apart,
    )  # fmt: skip
    own = groups.clusters.representative
    grouped = np.flatnonzero(own >= 0)
    found.assign(rest[grouped], rest[own[grouped]], groups.clusters.similarity[grouped])
    buckets = matches.buckets
    if not buckets.skipped:
        buckets = NO_BUCKETS
        if len(rest):  # The example is a document of DOCS.
            buckets = replace(groups.buckets, example=int(rest[groups.buckets.example]))
    answer = replace(
        groups,
        clusters=found,
        duplicate_of=find_exact_duplicates(run, sides.keys),
        buckets=buckets,
        lost=rest[groups.lost],
    )
    return drop_changed(drop_changed(answer, both.lists[0]), both.lists[1], split)


def find_holders(
    both: Comparison, pairs: Pairs, shared: NDArray[np.int64]
) -> tuple[ClustersFound, NDArray[np.float64]]:
    """Group each document of DOCS with the one of OTHER that it shares most with; all others are
    alone.

    Parameters
    ----------
    both : the sides.
    pairs : of containment, of one document a shingle set on each side.
    shared : int64 array, documents of DOCS that are documents of OTHER too: they are alone.

    Returns the groups as of `find_clusters_against`, and the containment of each document of DOCS
    in its pair, NaN without one: float64 array.

    """
    run, sides, split = both.run, both.sides, len(both.lists[0])
    best, share, similarity = np.full(split, -1, np.int64), *np.full((2, split), np.nan)
    for some in slices_of(len(pairs)):
        left, right, score = pairs.part(some.start, some.stop)
        own, first = np.unique(left, return_index=True)  # The first of its pairs is the best one.
        own, first = own[best[own] < 0], first[best[own] < 0]
        best[own], share[own], similarity[own] = right[first], score.real[first], score.imag[first]
    of = sides.duplicate_of[:split]
    best, share, similarity = best[of], share[of], similarity[of]
    best[shared] = -1
    goes, stays = np.flatnonzero(best >= 0), np.flatnonzero((best < 0) & (both.here.sizes > 0))
    found = Clusters.empty(run, len(sides.sizes)).assign(stays, stays, 1.0)
    found.assign(best[goes], best[goes], 1.0).assign(goes, best[goes], similarity[goes])
    answer = drop_changed(ClustersFound(found, sides.duplicate_of), both.lists[0])
    return drop_changed(answer, both.lists[1], split), share


def _take_order(order: Preference, rest: NDArray[np.int64]) -> Preference:
    """Return the order of some documents, by their place in `rest`, an ascending int64 array."""
    is_in = np.zeros(len(order.order), bool)
    is_in[rest] = True
    places = np.searchsorted(rest, order.order[is_in[order.order]])
    level = order.level[rest] if len(order.level) else order.level
    return Preference(places, level, order.keep)
