"""What commands say on stderr: of a collection and what was skipped; of an answer, what its bands
promise, its buckets, its pairs.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lshdup.base.forms import Form
from lshdup.base.params import KEEP, BandParams, ClusterParams, ShingleParams
from lshdup.base.skipped import Reason
from lshdup.base.wording import chance, count_of, join_names, printable, quoted
from lshdup.cli.console import Console, describe_skipped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.session import Session
    from lshdup.collection.collection import Collection
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.lsh.candidates import Buckets
    from lshdup.shingling.shingle_filter import ShingleFilter
    from lshdup.sources.document_list import DocumentList


def say_collection(
    session: "Session",
    collection: "Collection",
    least: int,
    side: str = "",
    unit: str = "shingle",
    *,
    whole: bool = False,
) -> None:
    """Say how many documents there are, and which files were skipped.

    least : documents with shingles that the command needs; with fewer, a warning says why. 0: the
        command finds out by itself whether there is something to compare.
    side : " of DOCS" or the like where a command compares two collections.
    unit : what the sizes of the collection count.
    whole : say what was made of the documents too, as -v does.
    """
    console, n = session.console, len(collection.documents)
    whole = whole or console.is_verbose
    line = _last_run(collection) if collection.read is None else count_of(n, "document")
    if collection.read is not None and not whole:
        line += collection.documents.describe_docs()
    forms = collection.count_forms()
    line += _describe_forms(forms, collection.documents.count_members())
    if whole:
        unit = "byte" if collection.shingle.of_bytes else unit
        line += f" -> {count_of(int(collection.sizes.sum()), unit)}"
    if whole and collection.sketch is not None:
        line += f" -> signatures: {collection.sketch.scheme}, K = {collection.sketch.perms}"
    known, own_size = n, 0
    if of_bytes := collection.shingle.of_bytes:
        is_read = collection.prints.byte_prints != 0
        known = int((is_read & (collection.documents.spans > 0)).sum())
        own_size = int((~is_read & (collection.sizes > 0)).sum())
    unread = known + len(collection.skipped) - (collection.read or 0)
    if collection.read is not None and unread > 0:
        line += f"; {count_of(collection.read, 'document')} read, {unread:,} unchanged"
    if collection.read is not None and own_size:
        line += f"; {own_size:,} not read, as no other has their size"
    duration = console.duration_of("documents")
    empty = find_empty(collection)
    (_, no_tokens), (few, few_tokens), (_, only_common) = empty.items()
    lack = SMALL if of_bytes else "without tokens"
    console.say(
        f"{line}{duration * whole}{_describe_empty(no_tokens, lack)}"
        f"{_describe_empty(few_tokens, f'with {few}')}"
    )
    if collection.shingle_filter is not None:
        _say_filter(console, collection, collection.shingle_filter, only_common)
    for why, which in empty.items() if console.is_verbose else ():
        for name in collection.documents.typed_names(which):
            console.detail(f"{printable(name)}: {why}")
    _say_forms(console, forms, collection.shingle)
    # A run that reads no document repeats nothing about documents without -v.
    if collection.read is not None or console.is_verbose:
        _say_guesses(console, collection)
    if collection.read is None and console.is_verbose:
        _say_skipped_before(console, collection)
    say_skipped(console, console.skipped_counts, side)
    if (compared := int((collection.sizes > 0).sum())) < least:
        say_nothing(session, collection, compared, least)


def check_origins(console: Console, origins: "NDArray[np.uint32]") -> None:
    """Say so if all documents are of one origin, so that none is compared."""
    if len(origins) and origins.min() == origins.max():
        why = "all documents are of one origin"
        console.report_nothing("nothing to compare", why, "name more folders, or another --across")


def say_skipped(console: Console, counts: Counter[str], side: str = "") -> None:
    """Say how many inputs were skipped, by reason."""
    if counts:
        console.say(f"skipped{side}: {describe_reasons(counts)}")
    if (unread_formats := counts[str(Reason.NO_READER)]) > 0:
        console.say(
            f"to read {count_of(unread_formats, 'office document')}: pip install 'lshdup[formats]'"
        )


def _last_run(collection: "Collection") -> str:
    """Return how many documents the last run had, where, and the options that define their sets."""
    from lshdup.workspace.request import list_definition

    where = collection.documents.describe_docs()
    documents = count_of(len(collection.documents), "document")
    return f"the last run: {documents}{where} ({' '.join(list_definition(collection))})"


def say_last_run(console: Console, collection: "Collection") -> None:
    """Say which documents the last run had, and how their sets are defined."""
    console.say(_last_run(collection))


#: What to type, by the reason for which most inputs were skipped.
_REMEDIES = {
    Reason.HIDDEN: "--hidden takes them",
    Reason.LINK: "--follow follows them",
    Reason.EXCLUDED: "look at --exclude",
    Reason.NOT_INCLUDED: "look at --include",
    Reason.IGNORED: "without --gitignore they are taken",
    Reason.TOO_LARGE: "--max-bytes allows more",
    Reason.NO_TEXT: "--text-field names the field of the text",
    Reason.NULL_TEXT: "--text-field names the field of the text",
    Reason.NO_ID: "--id-field names the field of the id",
    Reason.NO_READER: "pip install 'lshdup[formats]' reads them",
    Reason.UNDECODABLE: "--encoding names how they are written",
}


def say_nothing(session: "Session", collection: "Collection", compared: int, least: int) -> None:
    """Say why fewer documents than `least` can be compared, and what to type.

    That is a warning, or with --check an error.

    compared : number of documents with shingles.
    """
    console, documents = session.console, session.request.documents
    # A command without DOCS has seen no files: the store says which ones were skipped.
    skipped = (
        console.skipped_counts
        if documents
        else Counter(str(each.skipped.reason) for each in collection.list_skipped())
    )
    n = len(collection.documents)
    inputs = n + sum(skipped.values())
    where = join_names((printable(name) for name in documents), 3) if documents else "the last run"
    what = "nothing to compare" if least > 1 else "no document can be compared"
    if not inputs:
        missing, remedy = "file", "name files, or folders that hold some"
        if collection.documents.record_files.streams:
            missing, remedy = "record", "send some, or name files that hold some"
        console.report_nothing(what, f"there is no {missing} in {where}", remedy)
        return
    has_rows, of_bytes = collection.documents.parts is not None, collection.shingle.of_bytes
    nouns = ("file or row", "files and rows") if has_rows else ("file", "files")
    why = (
        f"{count_of(compared, 'document')} {'' if of_bytes else 'with shingles, '}of"
        f" {count_of(inputs, *nouns)} in {where}"
    )
    if n > compared:
        lack = SMALL if of_bytes else "without"
        why += f"; {count_of(n - compared, 'document')} {lack}"
    if skipped:
        why += f"; skipped: {describe_reasons(skipped)}"
    if sum(skipped.values()) > n - compared:
        reason = Reason(max(sorted(skipped), key=skipped.__getitem__))
        remedy = _REMEDIES.get(reason, "-v names them, and why")
    elif n == compared:
        remedy = "name more files or folders"
    elif collection.shingle_filter is not None:
        remedy = "a larger --ignore-common, another --template, or a smaller --min-tokens helps"
    elif of_bytes:
        remedy = "--min-bytes 0 compares empty ones too"
    elif collection.shingle.min_tokens:
        remedy = "-v names them; a smaller --min-tokens compares more of them"
    else:
        remedy = "-v names them; name files that hold text"
    console.report_nothing(what, why, remedy)


def describe_reasons(counts: Counter[str]) -> str:
    """Return how many inputs were skipped, by reason, for a sentence."""
    return ", ".join(Reason(reason).counted(count) for reason, count in sorted(counts.items()))


def _describe_forms(forms: Mapping[int, int], members: int) -> str:
    """Return how many documents were read as HTML or office documents, or from archives, behind a
    comma; "" if none were, or if all are pages named so.

    forms : number of documents by `base.forms.Form`.
    members : number of documents that are members of archives.
    """
    named = forms.get(Form.NAMED_PAGE, 0)
    pages = 0 if named == sum(forms.values()) else forms.get(Form.PAGE, 0) + named
    office = forms.get(Form.OFFICE, 0)
    counts = (
        (members, "from archives"),
        (pages, "read as HTML"),
        (office, f"read as office document{'s' * (office > 1)}"),
    )
    return "".join(f", {count:,} {what}" for count, what in counts if count)


def _say_forms(console: Console, forms: Mapping[int, int], shingle: ShingleParams) -> None:
    """Say how many documents were read as mail, and which look like mail or HTML and were not.

    forms : number of documents by `base.forms.Form`.
    """
    what = "all headers and the body" if shingle.mail_headers else "subject and body"
    visible = "; --markup visible compares what a reader sees" if shingle.markup == "auto" else ""
    for form, one, many, rest in (
        (Form.MAIL, "read as mail:", "read as mail:", f" {what} are compared"),
        (Form.HEADERS, "begins with mail headers and is compared whole",
         "begin with mail headers and are compared whole", f"; --mail compares {what}"),
        (Form.MARKUP, "looks like HTML and is compared with its markup",
         "look like HTML and are compared with their markup", visible),
    ):  # fmt: skip
        if count := forms.get(form, 0):
            console.say(f"{count_of(count, 'document')} {one if count == 1 else many}{rest}")


def _say_guesses(console: Console, collection: "Collection") -> None:
    """Say which encodings were detected, and of how many documents."""
    guesses = [guess.decode() for guess in collection.notes.guesses]
    encodings: Counter[str] = Counter()
    for guess in guesses:
        encoding, _, misfits = guess.partition(", ")
        encodings[f"{encoding} but for a few bytes" if misfits else encoding] += 1
    if encodings:
        shares = ", ".join(
            f"{count:,} as {encoding}" for encoding, count in sorted(encodings.items())
        )
        console.say(
            f"{count_of(encodings.total(), 'document')} not UTF-8, read {shares} (-v names them; "
            "--encoding forces one)"
        )
    if console.is_verbose:
        names = collection.documents.typed_names(collection.notes.guess_documents)
        for name, guess in zip(names, guesses, strict=True):
            console.detail(f"{printable(name)}: read as {guess}")


def _say_skipped_before(console: Console, collection: "Collection") -> None:
    """Name the files and records that an earlier run skipped."""
    every = (each.skipped for each in collection.list_skipped())
    skipped = [each for each in every if each.reason != Reason.CHANGED]
    for each in skipped:
        console.detail(describe_skipped(each))
    if skipped:
        console.detail(
            "skipped when DOCS were read: "
            f"{describe_reasons(Counter(str(each.reason) for each in skipped))}"
        )


#: Of documents that --same bytes does not compare.
SMALL = "smaller than --min-bytes"


def find_empty(collection: "Collection") -> "dict[str, NDArray[np.int64]]":
    """Return the documents that are not compared, as their sets are empty, by reason."""
    few_tokens, is_empty = collection.has_few_tokens(), collection.unfiltered_sizes == 0
    shingle_filter = collection.shingle_filter
    least = shingle_filter.params.least_shingles if shingle_filter is not None else 1
    lack = SMALL if collection.shingle.of_bytes else "no tokens"
    return {
        lack: (is_empty & ~few_tokens).nonzero()[0],
        f"fewer than {count_of(collection.shingle.min_tokens, 'token')}": few_tokens.nonzero()[0],
        describe_rest(least): (~is_empty & (collection.sizes == 0)).nonzero()[0],
    }


def describe_rest(least: int) -> str:
    """Return what is left of a document of which a filter leaves fewer than `least` shingles."""
    return "only common shingles" if least == 1 else f"fewer than {least} shingles left"


def _describe_empty(empty: "NDArray[np.int64]", what: str) -> str:
    """Return how many documents have an empty set and are not compared, behind a semicolon."""
    count = count_of(len(empty), "document")
    return f"; {count} {what}: not compared (-v names them)" if len(empty) else ""


def _say_filter(
    console: Console,
    collection: "Collection",
    shingle_filter: "ShingleFilter",
    only_common: "NDArray[np.int64]",
) -> None:
    """Say which shingles the filter removed, and how many documents have too few others."""
    parts = []
    if shingle_filter.params.template:
        parts.append(f"{len(shingle_filter.template):,} of templates")
    if shingle_filter.params.ignore_common:
        limit = shingle_filter.params.ignore_common
        many = (
            f"{100 * limit:g} % of the documents" if limit < 1 else count_of(int(limit), "document")
        )
        parts.append(f"{len(shingle_filter.common):,} of more than {many}")
    before = int(collection.unfiltered_sizes.sum())
    share = 1 - int(collection.sizes.sum()) / before if before else 0.0
    few = describe_rest(shingle_filter.params.least_shingles)
    console.say(
        f"removed shingles: {' and '.join(parts)}, {chance(share)} of all in the documents"
        f"{_describe_empty(only_common, f'with {few}')}"
    )


def say_contract(
    console: Console, plan: "BandPlan", params: BandParams, *, whole: bool = False
) -> None:
    """Say the chances to miss a pair. whole : and how many bands and rows there are, as -v does."""
    steps = [min(1.0, round(params.threshold + step, 4)) for step in (0.0, 0.02, 0.05)]
    misses = [f"{s:g}: {chance(plan.miss(s))}" for s in dict.fromkeys(steps)]
    duration = console.duration_of("bands")
    if whole or console.is_verbose:
        shape = f"{count_of(plan.bands, 'band')} of {count_of(plan.rows, 'row')}, "
        console.say(f"{shape}chance to miss a pair of similarity {', '.join(misses)}{duration}")
    else:
        ends = ", ".join(misses[:: len(misses) - 1 or 1])
        console.say(f"chance to miss a pair of similarity {ends}; --exact misses none")
    recall = 1.0 - plan.miss(params.threshold)
    if recall < params.recall:
        remedy = "" if params.bands or params.rows else "; choose --bands and --rows"
        console.warn(
            f"a pair of similarity {params.threshold:g} is found with chance "
            f"{chance(recall, below=params.recall)}, "
            f"less than --recall {params.recall:g}{remedy}"
        )


def say_largest(
    console: Console, buckets: "Buckets", names: "Callable[[NDArray[np.int64]], list[bytes]]"
) -> None:
    """Say with -v how many documents the largest bucket has, with an example."""
    if buckets.largest and console.is_verbose:
        import numpy as np

        name = printable(names(np.array([buckets.example]))[0])
        console.detail(f"the largest bucket: {count_of(buckets.largest, 'document')}, with {name}")


def describe_likeness(threshold: float, same: str | None, measure: str = "jaccard") -> str:
    """Return what pairs and groups have in common: a similarity, or what --same asks for."""
    likeness = "similarity" if measure == "jaccard" else measure
    return f"of the same {same}" if same else f"of {likeness} {threshold:g} or more"


def describe_rule(rule: ClusterParams, documents: "DocumentList") -> str:
    """Return which document of a group is kept."""
    import numpy as np

    from lshdup.collection.keep_rules import default_keep

    keep = rule.keep or default_keep(documents)
    words = KEEP[keep]
    if rule.keep_by:
        field, least = rule.keep_field
        words = f"the {'least' if least else 'greatest'} {quoted(field)}, then {words}"
    parts = [words]
    if keep != "first" and 0 < documents.are_parts(np.arange(len(documents))).sum() < len(
        documents
    ):
        parts = [f"whole files before parts of files, then {words}"]
    if rule.prefer:
        parts.append(f"preferring {join_names(rule.prefer)}")
    if rule.linkage != ClusterParams().linkage:
        parts.append(f"linkage {rule.linkage}")
    return ", ".join(parts)


def warn_of_changes(
    session: "Session", documents: "DocumentList", named: "NDArray[np.int64]"
) -> "NDArray[np.int64]":
    """Warn before an answer from the store alone of its documents that were deleted or changed.

    named : int64 array, the documents of the answer.

    Returns the documents of the warning.
    """
    request, console = session.request, session.console
    if request.documents:
        return named[:0]
    changed = documents.changed(named)
    if len(changed):
        console.warn(
            f"{count_of(len(changed), 'document')} of this answer changed or vanished since the "
            "last run; name DOCS to read them again"
        )
        for name in documents.typed_names(changed) if console.is_verbose else ():
            console.detail(f"{printable(name)}: deleted or changed since the last run")
    return changed
