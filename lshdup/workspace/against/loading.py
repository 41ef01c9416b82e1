"""`pairs DOCS --against OTHER`: both sides are read or loaded, with the same parameters.

OTHER is one store, which is only read and sets the parameters of both sides (its documents may be
gone), or one collection of folders and files, which is read each time.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import Arrays
from lshdup.base.messages import count_of, quote_command
from lshdup.base.parallel import Progress, no_progress
from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped
from lshdup.collection.collection import Collection
from lshdup.errors import RERUN, ArtifactError, InputError, ParameterError
from lshdup.lsh.band_plan import BandPlan, plan_bands
from lshdup.params import BandParams, DocumentParams, PairParams, SketchParams
from lshdup.shingling.shingle_filter import are_same_filters
from lshdup.sources.finding import check_named
from lshdup.store.store import Store
from lshdup.workspace.against.pairs import (
    CrossPairs,
    ExpandedCrossPairs,
    find_cross_pairs,
    find_cross_pairs_exactly,
    find_same_pairs,
)
from lshdup.workspace.against.partners import (
    Partners,
    choose_partners,
    find_partners,
    find_same_partners,
)
from lshdup.workspace.against.sides import Side, Sides
from lshdup.workspace.containment.joining import JoinInput, JoinPlan, join_contained
from lshdup.workspace.containment.samples import load_or_make_samples
from lshdup.workspace.request import Request, check_conflict, merge_params
from lshdup.workspace.workspace import Workspace

#: Words for documents of OTHER whose sets are unavailable.
_FATES = {Reason.VANISHED: "gone", Reason.CHANGED: "changed since"}


@dataclass
class Against:
    """Two sides that can be compared.

    sides : DOCS (here) and OTHER (there).
    store : store that OTHER is; None for a collection that was read now.
    params : parameters of the bands.
    fates : number of documents of a stored OTHER that were needed and could not be read, by what
        became of them.
    """

    sides: Sides
    store: Path | None
    params: BandParams
    fates: Counter[str] = field(default_factory=Counter)

    @property
    def here(self) -> Collection:
        """The collection of DOCS."""
        return self.sides.here.collection

    @property
    def there(self) -> Collection:
        """The collection of OTHER."""
        return self.sides.there.collection

    def plan(self) -> BandPlan:
        """Plan the bands for both sides. Raise ParameterError if the recall is out of reach."""
        assert self.here.sketch is not None
        return plan_bands(self.here.sketch.perms, self.params)

    def find_pairs(self, params: PairParams, jobs: int, progress: Progress) -> CrossPairs:
        """Find verified pairs across the sides."""
        return find_cross_pairs(
            self.sides, self.plan(), self.params.threshold, params, jobs=jobs, progress=progress
        )

    def find_pairs_exactly(self, jobs: int, progress: Progress = no_progress) -> CrossPairs:
        """Find all pairs, none missed. Raise InputError if a shingle set is unavailable."""
        sets = self._load_sets("jaccard", np.arange(len(self.sides.sizes)))
        return find_cross_pairs_exactly(self.sides, sets, self.params.threshold, jobs, progress)

    def find_contained_pairs(
        self, run: Run, on_plan: Callable[[JoinPlan], None] = lambda _: None
    ) -> CrossPairs:
        """Find the pairs of containment, as `join_contained`.

        Raise InputError if a shingle set that is compared is unavailable.
        """
        sides, duplicate_of = self.sides, self.sides.find_exact_duplicates()
        source = partial(self._load_sets, "containment")
        sample_of = partial(sides.sample, source)
        given = JoinInput(
            duplicate_of, sides.sizes, source, sample_of, sides.split, arrays=sides.arrays
        )
        found = join_contained(run, given, self.params, on_plan, sample=False)
        return CrossPairs(found, duplicate_of, np.zeros(0, np.uint64))

    def _load_sets(self, measure: str, documents: NDArray[np.int64]) -> RaggedSets:
        """Load the sets of documents (ascending). Raise InputError if one is unavailable."""
        sets = self.sides.sets(documents)
        lost = documents[sets.sizes != self.sides.sizes[documents]]
        if len(lost):
            name = os.fsdecode(self.sides.names(lost[:1])[0])
            gone = count_of(len(lost), "document is", "documents are")
            is_jaccard = measure == "jaccard"
            message = (
                f"{'--exact' if is_jaccard else f'--measure {measure}'} needs the shingle sets of "
                f"all documents, and {gone} not to be had any more, as {name}"
            )
            raise InputError(
                message,
                "leave --exact out: signatures decide where documents are gone"
                if is_jaccard
                else "run `lshdup index OTHER` again over what is there, or name its folders",
            )
        return sets

    def find_same(self, same: str) -> CrossPairs:
        """Find all pairs that are the same in text, or in bytes as well."""
        return find_same_pairs(self.sides, same)

    def find_partners(self, params: PairParams, jobs: int, progress: Progress) -> Partners:
        """Find a near document of OTHER for each document of DOCS that has one."""
        return find_partners(
            self.sides, self.plan(), self.params.threshold, params, jobs=jobs, progress=progress
        )

    def find_same_partners(self, same: str) -> Partners:
        """Find partners that are the same in text, or in bytes as well."""
        return find_same_partners(self.sides, same)

    def choose_partners(self, across: CrossPairs) -> Partners:
        """Return the nearest partner of each document of DOCS among pairs that were all found."""
        return choose_partners(self.sides, across)

    def expand_copies(self, pairs: CrossPairs, *, collapse: bool) -> ExpandedCrossPairs:
        """Expand to pairs of all documents."""
        return ExpandedCrossPairs(self.sides, pairs, collapse=collapse)

    def count_changed(self, documents: NDArray[np.int64]) -> int:
        """Return how many of these documents of a stored OTHER changed since."""
        return 0 if self.store is None else len(self.there.documents.changed(documents))


def load_sides(
    run: Run,
    request: Request,
    others: tuple[bytes, ...],
    store: Path | None,
    skipped_there: Callable[[Skipped], None] = lambda _: None,
    *,
    bands: bool = True,
    samples: bool = False,
) -> Against:
    """Read or load both sides.

    Parameters
    ----------
    run : threads and memory of both sides, and what is told.
    request : names DOCS; without DOCS, the documents of the last run.
    others : one store; or folders and files, which are read.
    store : store of DOCS.
    skipped_there : notified of each file of OTHER that is not compared.
    bands : whether bands find the pairs: neither joins nor --same need them.
    samples : whether samples are joined if the sets exceed memory.

    Errors: ParameterError or ArtifactError, which name the difference, if the sides cannot be
    compared.

    """
    other = _select_store(others)
    fates: Counter[str] = Counter()
    there: Side | None = None
    if other is None:
        # Names are checked before the work.
        hint = "name a folder or a file, or the store of an earlier run"
        check_named(others, "--against ", hint, included=True)
    else:
        there = _load_store(run, other, request, fates, samples=samples)
        request.accept_other(there.documents)
        request = _adopt_params(request, other, there.collection)
    beside = store
    if store is not None and other is not None and store.resolve() == other.resolve():
        if not request.documents:
            message = (
                f"the last run in {store} is what OTHER names: without DOCS there is nothing to"
                " hold against it"
            )
            raise InputError(message, "name DOCS, or another --store")
        run.say(
            f"what is made of DOCS is not kept: {store} is OTHER's; --store DIR keeps it elsewhere"
        )
        beside = None
    secret = request.given.get("secret", b"")
    run = run.with_memory(run.memory // 2)  # It is that of both sides.
    workspace = Workspace(run, beside, secret, apart=store)
    params = merge_params(BandParams, request.given)
    if request.documents and bands:  # A promise that cannot be kept is refused before the work.
        plan_bands(merge_params(SketchParams, request.given).perms, params)
    here = _load_side(workspace, request, samples=samples)
    collection = here.collection
    if there is None:
        run.say(_advise_index(others))
        reader = Workspace(run.with_skipped(skipped_there), None, secret, apart=store)
        there = _read_other(reader, request, others, collection, samples=samples)
    if not are_same_filters(collection.shingle_filter, there.collection.shingle_filter):
        message = (
            f"from the sets of DOCS and of {other or _listed(others)} not the same shingles were"
            " removed: they cannot be compared"
        )
        raise ParameterError(
            message,
            "use the same --template for both, and no --ignore-common, which counts one side only",
        )
    return Against(Sides(here, there, workspace.arrays), other, params, fates)


def _select_store(others: tuple[bytes, ...]) -> Path | None:
    """Return the store that OTHER is, None for folders and files. Refuse a mixture."""
    stores = [each for each in others if Store(Path(os.fsdecode(each))).is_ours()]
    if not stores:
        return None
    if len(others) > 1:
        what = "several stores" if len(stores) == len(others) else "a store beside other documents"
        message = f"--against names {what}: {_listed(others)}"
        raise ParameterError(
            message,
            "index the documents of all of them in one store, `lshdup index A B --store DIR`, then"
            " --against DIR",
        )
    return Path(os.fsdecode(stores[0]))


def _load_side(workspace: Workspace, request: Request, *, samples: bool) -> Side:
    """Load or collect a side, with samples of the documents that are read if these may be joined.

    samples : as of `load_sides`.
    """
    if not samples:
        collection = workspace.load_or_collect_signatures(request, 0)
        return Side(collection, workspace.set_source(collection))
    collection, sampled = workspace.collect_to_join(request)

    def sample(members: NDArray[np.int64], rate: int, source: SetSource) -> RaggedSets:
        return load_or_make_samples(workspace, collection, members, rate, sampled, source)

    return Side(collection, workspace.set_source(collection), sample)


def _load_store(
    run: Run, folder: Path, request: Request, fates: Counter[str], *, samples: bool
) -> Side:
    """Load what a store holds; it is only read."""

    def count(each: Skipped) -> None:
        fates[_FATES.get(each.reason, str(each.reason))] += 1

    secret = request.given.get("secret", b"")
    of_other = Run(
        Arrays(run.memory // 2), run.jobs, say=lambda text: run.say(f"{folder}: {text}"),
        skipped=count,
    )  # fmt: skip
    workspace = Workspace(of_other, folder, secret, read_only=True)
    names = {each.name for each in fields(BandParams)}
    given = {name: value for name, value in request.given.items() if name in names}
    stored = Request((), DocumentParams(), given, is_other=True)
    try:
        return _load_side(workspace, stored, samples=samples)
    except ArtifactError as error:
        error.hint = error.hint.replace(RERUN, f"run `lshdup index OTHER --store {folder}`")
        raise


def _adopt_params(request: Request, folder: Path, stored: Collection) -> Request:
    """Return the request with the parameters of a store. Refuse explicit ones that differ."""
    remedy = f"leave that out, or run `lshdup index OTHER --store {folder}` with it"
    assert stored.sketch is not None
    for params in (stored.shingle, stored.sketch):
        check_conflict(str(folder), params, request.given, remedy)
    given = {**_definition(stored), **request.given}
    return replace(request, given=given)


def _definition(side: Collection) -> dict[str, Any]:
    """Return the parameters that the sets and signatures of both sides must have."""
    assert side.sketch is not None
    definition = {**side.shingle.to_json(), **side.sketch.to_json()}
    if side.shingle_filter is not None:
        definition["least_shingles"] = side.shingle_filter.params.least_shingles
    return definition


def _read_other(
    reader: Workspace,
    request: Request,
    others: tuple[bytes, ...],
    here: Collection,
    *,
    samples: bool,
) -> Side:
    """Read OTHER with the parameters of DOCS, but without their patterns."""
    given = {**request.given, **_definition(here)}
    files = replace(request.files, include=(), exclude=())
    wanted = replace(
        request,
        documents=others,
        files=files,
        given=given,
        accept=lambda documents, _read: request.accept_other(documents),
    )
    return _load_side(reader, wanted, samples=samples)


def _advise_index(others: tuple[bytes, ...]) -> str:
    names = [os.fsdecode(name) for name in others[:3]] + (["..."] if len(others) > 3 else [])
    command = quote_command("lshdup", "index", *names, "--store", "DIR")
    return (
        f"{_listed(others)}: read anew each time it is compared with; {command} once, then"
        " --against DIR, spares that"
    )


def _listed(names: tuple[bytes, ...]) -> str:
    """Return the first names for a sentence.

    >>> _listed((b"a", b"b", b"c")), _listed((b"a", b"b", b"c", b"d"))
    ('a, b, c', 'a, b, c, …')
    """
    return ", ".join(os.fsdecode(name) for name in names[:3]) + (", …" if len(names) > 3 else "")
