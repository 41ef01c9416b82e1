"""The verified pairs of an indexed collection: loaded from the store, or found and saved."""

from lshdup.base.messages import count_of
from lshdup.base.skipped import Skipped
from lshdup.collection.set_source import expecting, set_source
from lshdup.compare.comparing import verify
from lshdup.compare.results import PairsFound
from lshdup.compare.sides import Sides
from lshdup.compare.verification import ResumedPairs
from lshdup.lsh.candidates import candidate_pairs
from lshdup.params import PairParams
from lshdup.pipeline import say_large_bucket, side_of
from lshdup.store import results_io
from lshdup.workspace.context import RunContext
from lshdup.workspace.index import IndexedCollection


def load_or_find_pairs(
    run: RunContext, indexed: IndexedCollection, params: PairParams
) -> PairsFound:
    """Return the verified pairs of an index, from the last run if its pairs cover this run.

    Parameters
    ----------
    run : state of the run.
    indexed : collection and index.
    params : how candidates are met and verified.

    """
    collection, index, bands = indexed.collection, indexed.index, indexed.params
    earlier = indexed.pairs
    if earlier is None and run.store is not None:
        earlier = results_io.load_pairs(run, run.store, collection)
    if earlier is not None and earlier.covers(index.plan, bands, params):
        run.end_stage("pairs")
        found = earlier.at_least(bands.threshold)
        say_large_bucket(run, collection.documents, found.buckets)
        found_at = earlier.band_params.threshold
        if found_at < bands.threshold:
            run.say(f"the pairs that were found at {found_at:g} answer this: no document is read")
            if indexed.from_documents:
                _save(run, indexed, params, found)
        return found
    # If most candidates are known, few sets are needed.
    knows_most = earlier is not None and earlier.has_verified_all(bands.threshold)
    journal = resumed = None
    if not knows_most:
        journal = run.stage_journal(
            "pairs",
            lambda store: results_io.describe_pairs(store, collection, index, bands, params),
        )
    if journal is not None:
        resumed = ResumedPairs(journal, len(collection.documents))
        if resumed.done:
            what = ("pair of an interrupted run is", "pairs of an interrupted run are")
            run.say(f"resumed: {count_of(resumed.done, *what)} not compared again")
    skipped: list[Skipped] = []

    def skip(each: Skipped) -> None:
        skipped.append(each)
        if journal is not None:
            journal.stop()

    source = set_source(run.with_skipped(skip), collection)
    met = candidate_pairs(run, index.table, params.max_bucket)
    if not knows_most:
        expecting(source)(met.documents)
    say_large_bucket(run, collection.documents, met.buckets)
    sides = Sides.of(run, side_of(collection, source), duplicate_of=index.duplicate_of)
    found = verify(run, met, sides, bands.threshold, earlier=earlier, resumed=resumed)
    if journal is not None:
        journal.close()
    for each in skipped:
        run.skipped(each)
    # Without DOCS, pairs of a lower threshold are not replaced: they spare later runs more work.
    if not skipped and (
        indexed.from_documents or earlier is None or not earlier.has_verified_all(bands.threshold)
    ):
        _save(run, indexed, params, found)
    if journal is not None:
        journal.remove()
    return found


def _save(
    run: RunContext, indexed: IndexedCollection, params: PairParams, found: PairsFound
) -> None:
    collection, index, bands = indexed.collection, indexed.index, indexed.params
    run.keep(
        "pairs.npz",
        lambda store: results_io.save_pairs(store, collection, index, bands, params, found),
    )
