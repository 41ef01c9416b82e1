"""The steps: what each makes from documents, and how it continues from the artifacts of the last run.

A step that is given documents runs the steps before it and reads only what is new or changed (fromdocuments.py). A step that is given none
continues from the store: what is stale there is made anew, and said (fromstore.py). Called by the commands in `cli/`; the files themselves
are store.py's.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lshdup import pipeline
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import build_filter, filter_collection
from lshdup.collection.set_source import set_source
from lshdup.documents.document_list import DocumentList, Reason, Skipped
from lshdup.errors import ArtifactError, InputError
from lshdup.lsh import band_plan
from lshdup.lsh.candidates import Buckets, candidate_pairs
from lshdup.matching.results import ClustersFound, Index, PairsFound
from lshdup.params import BandParams, ClusterParams, PairParams, ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter, first_with
from lshdup.store.collection_io import corpus_id, unfiltered_id
from lshdup.store.store import Store
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets, SetSource
from lshdup.utils.scratch import Spool
from lshdup.workspace.context import RunContext
from lshdup.workspace.from_documents import FromDocuments
from lshdup.workspace.from_store import FromStore
from lshdup.workspace.request import Request, band_options, merged

#: A bucket of more documents, or with more pairs, is said before its pairs are looked at: they may take minutes and gigabytes.
_MANY_DOCUMENTS, _MANY_PAIRS = 1000, 1 << 28


@dataclass(frozen=True)
class Indexed:
    """A collection with its band table and the parameters of the bands.

    named : its documents were named: artifacts are to be those of a run from nothing. last : how the last `clusters` grouped them, if
    that is continued.
    """

    collection: Collection
    made: Index
    params: BandParams
    named: bool = True
    last: ClusterParams | None = None


class Workspace:
    """The steps over one store folder, or over none.

    say : told what a person should know (something was made anew). skipped : told each file that is not compared. secret : the hash key,
    for stores that were made with it; it is a parameter of requests too. read_only : nothing is written, whatever could be kept for the
    next run. apart : a folder where no documents are looked for, if no store is named.
    warn : told what is probably not what was meant; without it, `say` is.
    """

    def __init__(
        self,
        folder: Path | None,
        say: Callable[[str], None] = lambda _: None,
        skipped: Callable[[Skipped], None] = lambda _: None,
        progress: Progress = no_progress,
        secret: bytes = b"",
        *,
        read_only: bool = False,
        apart: Path | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        store = Store(folder, secret) if folder is not None else None
        self._context = RunContext(
            store, folder or apart, read_only, say, warn or say, skipped, progress
        )
        self._store, self._say = store, say
        self._documents, self._stored = FromDocuments(self._context), FromStore(self._context)

    # --- the steps ------------------------------------------------------------------------------------------------------

    def shingled(self, request: Request) -> Collection:
        """`lshdup shingle`: sets of all documents, saved whole as shingles.npz; and what would be left of them, if shingles are to go."""
        if not request.documents:
            message = "no documents were named"
            raise InputError(message, "name folders or files: `lshdup shingle DOCS`")
        params = merged(ShingleParams, request.given)
        with self._context.writing() as store, Spool(store.folder) as spool:
            remove = self._context.filter_requested(request, params)
            collection = self._documents.shingled(request, params, spool)
            store.save_collection("shingles", collection)
            if remove is not None:
                collection = filter_collection(
                    collection, build_filter(collection, remove, request.jobs), jobs=request.jobs
                )
            return collection.with_unfiltered_sets(None)  # they go with the spool

    def signed(self, request: Request) -> Collection:
        """`lshdup signatures`: from documents or from shingles.npz, saved as signatures.npz."""
        if request.documents:
            with self._context.writing():
                return self._documents.signed(request)
        with self._context.continuing():
            shingles = self._stored.shingles(request)
            remove = self._context.filter_requested(request, shingles.shingle)
            return self._stored.sketched(
                shingles, merged(SketchParams, request.given), remove, request.jobs, save=True
            )

    def compared(self, request: Request) -> tuple[Collection, SetSource]:
        """What `pairs --against` holds against others: the collection with signatures, and where its shingle sets come from."""
        if request.documents:
            with self._context.writing() if self._store is not None else nullcontext():
                collection = self._documents.signed(request)
        else:
            collection = self._stored.signatures(request, verify=True, save=False)
        collection = self._stored.with_sets(collection)
        return collection, set_source(collection, request.jobs, self._context.skipped)

    def indexed(
        self, request: Request, *, save: bool = True, verify: bool = True, grouping: bool = False
    ) -> Indexed:
        """`lshdup index`, and what `pairs` and `query` begin with: the collection and its band table.

        save : whether a table that was made anew from stored signatures is saved (`index`) or only used (`pairs`, `query`). verify :
        whether every byte of the artifacts is checked, or only what is touched. grouping : for `clusters`: what is not given is as in the
        last run of that, if it was of the table that is there.
        """
        if request.documents:
            indexed = self._indexed_documents(request)
        else:
            with self._context.continuing() if save else nullcontext():
                indexed = self._indexed_again(request, save=save, verify=verify, grouping=grouping)
        request.accept(indexed.collection.documents, True)
        return indexed

    def _indexed_again(
        self, request: Request, *, save: bool, verify: bool, grouping: bool
    ) -> Indexed:
        collection = self._stored.with_sets(
            self._stored.signatures(request, verify=verify, save=save)
        )
        assert self._store is not None
        stored = self._store.load_bands(collection, verify)
        last = self._store.last_grouping(collection) if grouping else None
        grouped_as = last[1] if last is not None else None
        base = last[0] if last is not None else stored[1] if stored is not None else None
        wanted = merged(
            BandParams, request.given if base is None else band_options(request.given), base
        )
        if stored is not None:
            made, params = stored
            # Bands planned for t serve every threshold above it too.
            serves = (
                not save
                and wanted.threshold >= params.threshold
                and replace(wanted, threshold=params.threshold) == params
            )
            if serves or wanted == params:
                return Indexed(collection, made, wanted, named=False, last=grouped_as)
        made = self._banded(collection, wanted, request.jobs)
        if save:
            self._store.save_bands(collection, made, wanted)
        elif stored is not None:
            self._say(
                f"bands made anew from signatures.npz; the stored ones were planned for {stored[1].threshold:g}"
            )
        return Indexed(collection, made, wanted, named=False, last=grouped_as)

    def _banded(self, collection: Collection, params: BandParams, jobs: int) -> Index:
        self._context.progress("bands", 0, 0)
        return pipeline.build_index(collection, params, jobs)

    def _indexed_documents(self, request: Request) -> Indexed:
        params = merged(BandParams, request.given)
        band_plan.plan_bands(
            merged(SketchParams, request.given).perms, params
        )  # whether the promise can be kept, before the work
        if self._store is None:
            collection = self._documents.signed(request)
            return Indexed(collection, self._banded(collection, params, request.jobs), params)
        with self._context.writing() as store:
            collection = self._stored.with_sets(self._documents.signed(request))
            try:
                stored = store.load_bands(collection)
            except ArtifactError as error:
                self._say(f"{error.message}; it is made anew")
                stored = None
            if stored is not None and stored[1] == params:
                return Indexed(collection, stored[0], params)
            made = self._banded(collection, params, request.jobs)
            store.save_bands(collection, made, params)
            return Indexed(collection, made, params)

    def verified(self, indexed: Indexed, asked: PairParams, jobs: int) -> PairsFound:
        """`lshdup pairs`: the verified pairs of first copies; those of the last run, where nothing has changed since."""
        collection, made, params = indexed.collection, indexed.made, indexed.params
        earlier = self._store.load_pairs(collection) if self._store is not None else None
        if earlier is not None and earlier.covers(made.plan, params, asked):
            found = earlier.at_least(params.threshold)
            self.say_if_hot(indexed, found.buckets)
            if earlier.band_params.threshold < params.threshold:
                self._say(
                    f"the pairs that were found at {earlier.band_params.threshold:g} answer this: no document is read"
                )
                if indexed.named:
                    self._context.keep(
                        "pairs.npz",
                        lambda store: store.save_pairs(collection, made, params, asked, found),
                    )
            return found
        missing: list[Skipped] = []
        source = set_source(collection, jobs, missing.append)
        progress = self._context.progress
        progress("candidates", 0, 0)
        buckets, pieces = candidate_pairs(
            made.table, asked.max_bucket, lambda done, n: progress("candidates", done, n)
        )
        self.say_if_hot(indexed, buckets)
        found = pipeline.verify(
            pieces,
            collection,
            source,
            params.threshold,
            method=asked.verify,
            earlier=earlier,
            buckets=buckets,
            jobs=jobs,
        )
        for each in missing:
            self._context.skipped(each)
        if self._store is not None and not missing:
            self._context.keep(
                "pairs.npz", lambda store: store.save_pairs(collection, made, params, asked, found)
            )
        return found

    def grouped(self, indexed: Indexed, asked: ClusterParams, request: Request) -> ClustersFound:
        """`lshdup clusters`: groups of all documents; those of the last run, or made of its pairs, where nothing has changed since.

        Documents that could not be read again are in no group, and neither are those of a group that are not what was indexed. Who is
        represented by one of them is alone, and so is not dropped.
        """
        collection, made, params, store = (
            indexed.collection,
            indexed.made,
            indexed.params,
            self._store,
        )
        from lshdup.documents.preference import (
            preference,
        )  # here, because a query waits for every import

        if asked.keep == "first" and not request.documents and store is not None:
            # In which order they were named nobody knows any more, but what became of it is known.
            found = store.load_groups(collection, made, params, asked, None)
            if found is not None:
                return self._without_changed(found, collection.documents)
        order, unused = preference(
            _as_stored(collection.documents, indexed.last, asked),
            collection.sizes,
            asked,
            request.documents,
        )
        self._say_unused(unused)
        found = (
            store.load_groups(collection, made, params, asked, order) if store is not None else None
        )
        if found is not None and store is not None and not self._context.read_only:
            store.touch("clusters")
        if found is None:
            earlier = store.load_pairs(collection) if store is not None else None
            usable = earlier is not None and earlier.covers(
                made.plan, params, PairParams(max_bucket=asked.max_bucket)
            )
            known = earlier.at_least(params.threshold) if earlier is not None and usable else None
            found = pipeline.find_clusters(
                collection, made, self.source(indexed, request.jobs), params.threshold, asked, order, known=known, jobs=request.jobs,
                progress=self._context.progress, on_buckets=lambda buckets: self.say_if_hot(indexed, buckets, grouping=True),
            )  # fmt: skip
            whole = found
            if store is not None and not len(found.lost):
                self._context.keep(
                    "clusters.npz",
                    lambda store: store.save_groups(collection, made, params, asked, order, whole),
                )
        return self._without_changed(found, collection.documents)

    def grouped_exactly(
        self, request: Request, how: Callable[[ClusterParams | None], ClusterParams]
    ) -> tuple[Collection, ClustersFound, float, ClusterParams | None]:
        """The same from all pairs, none missed. Saves nothing.

        how : told how the last `clusters` grouped these documents, if that is continued, says how it is to be done now. Returns that and
        the threshold too.
        """
        from lshdup.documents.preference import preference

        with self.every_set(request) as (collection, sets):
            known = self._store.last_grouping(collection) if self._store is not None else None
            last = known[1] if known is not None and not request.documents else None
            asked = how(last)
            default = (
                known[0].threshold
                if known is not None and last is not None
                else self.threshold(request)
            )
            threshold: float = request.given.get("threshold", default)
            if (
                known is not None
                and self._store is not None
                and (known[0].threshold, known[1]) != (threshold, asked)
            ):
                self._store.touch(
                    "clusters", 0
                )  # how this run groups is not kept; but what is, is not of the last one any more
            order, unused = preference(
                _as_stored(collection.documents, last, asked),
                collection.sizes,
                asked,
                request.documents,
            )
            self._say_unused(unused)
            found = pipeline.find_clusters_exactly(
                collection, sets, threshold, asked, order, request.jobs, self._context.progress
            )
        return collection, self._without_changed(found, collection.documents), threshold, last

    def _without_changed(self, found: ClustersFound, documents: DocumentList) -> ClustersFound:
        """Groups without what has changed or vanished since it was listed: somebody may act on them. Opens no file."""
        together = np.flatnonzero(found.groups.sizes > 1)
        is_leader = np.zeros(len(documents), bool)
        is_leader[together] = True
        own = found.groups.representative
        gone = documents.changed(np.flatnonzero((own >= 0) & is_leader[own]))
        for index in gone.tolist():
            self._context.skipped(
                Skipped(
                    documents.names[index],
                    Reason.CHANGED,
                    "or gone since it was looked at; run it again with DOCS",
                )
            )
        return replace(
            found, groups=found.groups.without(gone), lost=np.concatenate([found.lost, gone])
        )

    def _say_unused(self, lines: list[str]) -> None:
        for line in lines:
            self._context.warn(line)

    def say_if_hot(self, indexed: Indexed, buckets: Buckets, *, grouping: bool = False) -> None:
        """Say what the largest bucket means, if it has many documents. grouping : for `clusters`, else for `pairs`."""
        size, pairs = buckets.largest, buckets.largest * (buckets.largest - 1) // 2
        if buckets.skipped or (size <= _MANY_DOCUMENTS and pairs < _MANY_PAIRS):
            return
        name = os.fsdecode(indexed.collection.documents.names[buckets.example])
        means = (
            f"quick to group if they are alike; if not, up to {pairs:,} pairs are compared"
            if grouping
            else f"their {pairs:,} pairs are candidates, 16 bytes each if they are found"
        )
        helps = "--ignore-common X or --template FILE compares without what they share, --max-bucket N leaves such buckets out"
        self._say(f"a bucket has {size:,} documents: {means}; one is {name}; {helps}")

    def source(self, indexed: Indexed, jobs: int) -> SetSource:
        """Where the shingle sets of an indexed collection come from."""
        return set_source(indexed.collection, jobs, self._context.skipped)

    @contextmanager
    def every_set(self, request: Request) -> Iterator[tuple[Collection, RaggedSets]]:
        """A collection and all its shingle sets, for the exact join and the experiments. Saves nothing."""
        if request.documents:
            params = merged(ShingleParams, request.given)
            remove = self._context.filter_requested(request, params)
            collection = self._documents.shingled(request, params, 1 << 62)
        else:
            collection = self._stored.shingles(request)
            signatures = self._stored.refuse_older(collection)
            last = signatures is not None and unfiltered_id(signatures) == corpus_id(collection)
            remove = self._context.filter_requested(
                request, collection.shingle, signatures if last else None
            )
        request.accept(collection.documents, True)
        if remove is not None:
            collection = filter_collection(
                collection,
                build_filter(collection, remove, request.jobs),
                jobs=request.jobs,
                keep=True,
            )
        assert collection.sets is not None
        yield collection, collection.sets

    def last_collection(self) -> Collection | None:
        """The collection of the last run, for looking names up in; None without one."""
        if self._store is None:
            return None
        try:
            return self._store.load_collection(
                "signatures", verify=False
            ) or self._store.load_collection("shingles", verify=False)
        except ArtifactError as error:
            self._say(error.message)
            return None

    def threshold(self, request: Request) -> float:
        """What was asked for; of documents that are named the default else, without them what the last band table was planned for."""
        default = BandParams().threshold if request.documents else self.last_threshold()
        wanted: float = request.given.get("threshold", default)
        return wanted

    def last_threshold(self) -> float:
        """What the last band table was planned for; the default without one."""
        known = self._store.stored_threshold() if self._store is not None else None
        return BandParams().threshold if known is None else known

    # --- what is removed from the sets ------------------------------------------------------------------------------------

    def filter_to_show(
        self, request: Request, params: ShingleParams, stored: Collection | None
    ) -> ShingleFilter | None:
        """What is removed from the sets of these parameters, by what was asked or else in the last run; None: nothing.

        stored : `last_collection`.
        """
        last = stored if stored is not None and stored.shingle == params else None
        remove = self._context.filter_requested(request, params, last)
        if remove is None:
            return None
        if (
            last is not None
            and last.shingle_filter is not None
            and last.shingle_filter.params == remove.params
        ):
            return last.shingle_filter
        if not remove.ignore_common:
            return build_filter(None, remove)
        shingles = self._stored.shingles(request)
        if shingles.shingle != params:
            message = "shingles.npz was made with other options than are shown"
            raise ArtifactError(message, "run `lshdup shingle DOCS` with these options")
        return build_filter(shingles, remove, request.jobs)

    def most_common(self, collection: Collection, wanted: int) -> list[tuple[int, int, int]]:
        """(shingle, number of different documents that have it, one of them) of those shingles that were removed because most have them.

        Of what was counted in this run, and is in shingles.npz; else none.
        """
        shingle_filter = collection.shingle_filter
        sets = self._stored.sets_of(collection, verify=True)
        if shingle_filter is None or shingle_filter.counts is None or sets is None:
            return []
        most = np.argsort(-shingle_filter.counts.astype(np.int64), kind="stable")[:wanted]
        shingles = shingle_filter.common[most]
        return list(
            zip(
                shingles.tolist(),
                shingle_filter.counts[most].tolist(),
                first_with(sets, shingles).tolist(),
                strict=True,
            )
        )


def _as_stored(
    documents: DocumentList, last: ClusterParams | None, asked: ClusterParams
) -> DocumentList:
    """Documents with the names that --prefer is meant for: if it is that of the last run, as they were typed then."""
    return (
        replace(documents, home=b"")
        if last is not None and asked.prefer == last.prefer
        else documents
    )
