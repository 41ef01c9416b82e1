"""`pairs DOCS --against OTHER…`: which documents are on which side, and with what parameters. Called by cli/.

A stored OTHER is opened for reading only, and says with what parameters all are made; its documents need not be there any more.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lshdup.collection.collection import Collection
from lshdup.documents.missing import check_named
from lshdup.errors import InputError, ParameterError
from lshdup.lsh import band_plan
from lshdup.lsh.band_plan import BandPlan
from lshdup.params import BandParams, DocumentParams, PairParams, SketchParams
from lshdup.shingling.shingle_filter import same_filter
from lshdup.skipped import Reason, Skipped
from lshdup.store.store import Store
from lshdup.utils.messages import counted, typed
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import SetSource
from lshdup.workspace.against_pairs import (
    Across,
    Crossing,
    exact_near_duplicates_across,
    near_duplicates_across,
)
from lshdup.workspace.against_sides import Part, Side, Sides
from lshdup.workspace.request import Request, check_conflict, merge_params
from lshdup.workspace.workspace import Workspace

#: What a sentence says of a document of OTHER whose set could not be had.
_FATES = {Reason.VANISHED: "gone", Reason.CHANGED: "changed since"}


@dataclass
class Against:
    """Two sides whose documents are read or loaded, and what is told of them.

    here : the collection of DOCS. there : those of the OTHERs, with the stores they are from; None for what was collected now. fates : how
    many documents of stored OTHERs were wanted and could not be read, by what became of them.
    """

    here: Collection
    there: list[tuple[Path | None, Collection]]
    sides: Sides
    params: BandParams
    fates: Counter[str] = field(default_factory=Counter)

    def plan(self) -> BandPlan:
        """Bands for both sides. Raises ParameterError if no plan keeps the promise."""
        return _plan(self.here, self.params)

    def near_duplicates(self, asked: PairParams, jobs: int, progress: Progress) -> Across:
        """Verified pairs of first copies across the sides."""
        return near_duplicates_across(
            self.sides, self.plan(), self.params.threshold, asked, jobs=jobs, progress=progress
        )

    def joined(self, jobs: int, progress: Progress = no_progress) -> Across:
        """The same, none missed. Raises InputError if not all sets can be had."""
        sets = self.sides.sets(np.arange(len(self.sides.sizes)))
        lost = np.flatnonzero(sets.sizes != self.sides.sizes)
        if len(lost):
            name = os.fsdecode(self.sides.names(lost[:1])[0])
            gone = counted(len(lost), "document is", "documents are")
            message = f"--exact needs the shingle sets of all documents, and {gone} not to be had any more, as {name}"
            raise InputError(
                message, "leave --exact out: signatures decide where documents are gone"
            )
        return exact_near_duplicates_across(self.sides, sets, self.params.threshold, jobs, progress)

    def pairs(self, across: Across, *, collapse: bool) -> Crossing:
        """Pairs of all documents."""
        return Crossing(self.sides, across, collapse=collapse)

    def changed(self, crossing: Crossing) -> int:
        """How many documents of stored OTHERs in this answer are not what they were when they were indexed."""
        if all(store is None for store, _ in self.there):
            return 0
        return self.sides.there.changed(self.sides.of(crossing.documents)[1])


def _plan(collection: Collection, params: BandParams) -> BandPlan:
    assert collection.sketch is not None
    return band_plan.plan_bands(collection.sketch.perms, params)


def against(
    request: Request,
    others: tuple[bytes, ...],
    store: Path | None,
    say: Callable[[str], None] = lambda _: None,
    skipped: Callable[[Skipped], None] = lambda _: None,
    progress: Progress = no_progress,
    left_out_there: Callable[[Skipped], None] = lambda _: None,
) -> Against:
    """Read or load both sides.

    request : of DOCS; without any, the documents of the last run. others : folders and files, which are read, and stores. store : of DOCS.
    skipped, left_out_there : told each file of DOCS, or of OTHER, that is not compared.

    Raises ParameterError or ArtifactError, which name the difference, if the sides cannot be compared.
    """
    fates: Counter[str] = Counter()

    def lost(each: Skipped) -> None:
        fates[_FATES.get(each.reason, str(each.reason))] += 1

    stores = [
        Path(os.fsdecode(other)) for other in others if Store(Path(os.fsdecode(other))).is_ours()
    ]
    named = tuple(other for other in others if Path(os.fsdecode(other)) not in stores)
    if named:
        check_named(
            named, "--against ", "name a folder or a file, or the store of an earlier run"
        )  # before the work
    stored = [(each, *_stored(each, request, say, lost)) for each in stores]
    if stored:
        first = stored[0][1]
        assert first.sketch is not None
        request = replace(
            request, given={**first.shingle.to_json(), **first.sketch.to_json(), **request.given}
        )
    for folder, collection, _ in stored:
        _refuse_differences(folder, collection, request.given)
    if merge_params(SketchParams, request.given).scheme == "linear":
        message = "the linear scheme numbers the elements of one whole collection: two collections cannot be compared by it"
        raise ParameterError(message, "use --scheme fast or classic")

    beside = store
    if store is not None and any(_is_same(store, each) for each in stores):
        if not request.documents:
            message = f"the last run in {store} is what OTHER names: without DOCS there is nothing to hold against it"
            raise InputError(message, "name DOCS, or another --store")
        say(f"what is made of DOCS is not kept: {store} is OTHER's; --store DIR keeps it elsewhere")
        beside = None
    secret = request.given.get("secret", b"")
    workspace = Workspace(beside, say, skipped, progress, secret, apart=store)
    if request.documents:
        threshold = BandParams().threshold
        band_plan.plan_bands(
            merge_params(SketchParams, request.given).perms, merge_params(BandParams, request.given)
        )  # before the work
    else:
        threshold = workspace.choose_threshold(request)
    here = workspace.load_or_collect_signatures(request)
    source = workspace.set_source(here, request.jobs)
    assert here.sketch is not None
    if here.sketch.scheme == "linear":
        message = f"the last run in {store} made signatures of the linear scheme, by which two collections cannot be compared"
        raise ParameterError(message, "name DOCS, and --scheme fast or classic")
    parts = [Part(collection, sets) for _, collection, sets in stored]
    there: list[tuple[Path | None, Collection]] = [
        (folder, collection) for folder, collection, _ in stored
    ]
    if named:
        given = {**request.given, **here.shingle.to_json(), **here.sketch.to_json()}
        spare = typed(
            "lshdup",
            "index",
            *map(os.fsdecode, named[:3]),
            *(["..."] if len(named) > 3 else []),
            "--store",
            "DIR",
        )
        say(
            f"{_listed(named)}: read anew each time it is compared with; {spare} once, then --against DIR, spares that"
        )
        reader = Workspace(None, say, left_out_there, progress, secret, apart=store)
        files = replace(request.files, include=(), exclude=())  # patterns are of DOCS
        collection = reader.load_or_collect_signatures(
            replace(request, documents=named, files=files, given=given)
        )
        sets = reader.set_source(collection, request.jobs)
        parts.append(Part(collection, sets))
        there.append((None, collection))
    for origin, collection in there:
        if not same_filter(here.shingle_filter, collection.shingle_filter):
            message = f"from the sets of DOCS and of {origin or _listed(named)} not the same shingles were removed: they cannot be compared"
            raise ParameterError(
                message,
                "use the same --template for both, and no --ignore-common, which counts one side only",
            )
    sides = Sides(Side([Part(here, source)]), Side(parts))
    return Against(
        here,
        there,
        sides,
        merge_params(BandParams, {"threshold": threshold, **request.given}),
        fates,
    )


def _stored(
    folder: Path, request: Request, say: Callable[[str], None], lost: Callable[[Skipped], None]
) -> tuple[Collection, SetSource]:
    """What a store holds; nothing of it is written."""
    secret = request.given.get("secret", b"")
    workspace = Workspace(
        folder, lambda text: say(f"{folder}: {text}"), lost, secret=secret, read_only=True
    )
    stored = Request((), DocumentParams(), {}, request.jobs, command="")
    collection = workspace.load_or_collect_signatures(stored)
    return collection, workspace.set_source(collection, request.jobs)


def _refuse_differences(folder: Path, collection: Collection, given: Mapping[str, object]) -> None:
    remedy = f"leave that out, or run `lshdup index OTHER --store {folder}` with it"
    assert collection.sketch is not None
    for params in (collection.shingle, collection.sketch):
        check_conflict(str(folder), params, given, remedy)


def _is_same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()


def _listed(names: tuple[bytes, ...]) -> str:
    return ", ".join(os.fsdecode(name) for name in names[:3]) + (", …" if len(names) > 3 else "")
