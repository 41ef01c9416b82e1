"""What Spark's workers do with samples of sets: elements of samples, and pairs that share enough.

Functions from Arrow record batches to record batches; nothing of Spark.
"""

import numpy as np
import pyarrow as pa

from lshdup.documents.reading import runs
from lshdup.kernels import tiles
from lshdup.lsh.sample_plan import SamplePlan
from lshdup.matching.measures import containment
from lshdup.spark.workers.documents import Batches
from lshdup.spark.workers.pairs import PAIRS, PAIRS_GIVEN, one_array, ranks, whole_tiles
from lshdup.utils.arrow import batch_of, ragged
from lshdup.utils.ragged import RaggedSets

#: Schemas, as Spark writes them.
ELEMENTS = "bucket bigint, id binary, size bigint, least bigint"
CANDIDATES = "inside binary, holder binary, least bigint"

#: Elements that are handed on at a time.
_ELEMENTS_GIVEN = 1 << 16


def element_rows(plan: SamplePlan, rows: Batches) -> Batches:
    """Return ELEMENTS of samples: a row for each element of each sample.

    bucket : the element.
    size : elements of the sample.
    least : how many of them a sample that is no smaller must have.

    rows : id, and the sample, eight little-endian bytes an element.
    """
    for batch in rows:
        samples = RaggedSets(*ragged(pa.chunked_array([batch.column(1)])))
        sizes = samples.sizes
        least = plan.least_common(sizes)
        for run in runs(sizes, len(sizes), _ELEMENTS_GIVEN):
            some = np.arange(run.start, run.stop)
            document = np.repeat(some, sizes[run])
            values = samples.values[samples.offsets[run.start] : samples.offsets[run.stop]]
            columns = [
                pa.array(values.view(np.int64)),
                batch.column(0).take(pa.array(document)),
                pa.array(sizes[document]),
                pa.array(least[document]),
            ]
            yield batch_of(ELEMENTS, columns)


def candidate_rows(plan: SamplePlan, rows: Batches) -> Batches:
    """Return CANDIDATES: pairs of a tile whose smaller sample is free there.

    Where rows have samples, enough of the smaller one must be in the other. Of equal samples, the
    first id is inside.

    least : how many elements are enough.

    rows : bucket, tile, side, id, size, free, sample (null for all rows of a tile, or for none);
        sorted by bucket, tile and side.
    """
    for table, starts, splits in whole_tiles(rows):
        ids = one_array(table.column("id"))
        order, sizes = ranks(ids), table.column("size").to_numpy()
        free = np.asarray(table.column("free").to_numpy(), bool)
        samples = RaggedSets(*ragged(table.column("sample")))
        is_known = np.asarray(table.column("sample").is_valid().to_numpy(), bool)
        least = plan.least_common(sizes)
        left, right = np.empty(PAIRS, np.uint32), np.empty(PAIRS, np.uint32)
        no_keys, no_offsets = np.zeros(0, np.uint64), np.zeros(len(table) + 1, np.int64)
        state = np.array([0, -1, 0])
        while state[0] < len(splits):
            n = tiles.tile_pairs(no_keys, no_offsets, starts, splits, state, left, right)
            a, b = left[:n], right[:n]
            is_first = (sizes[a] < sizes[b]) | ((sizes[a] == sizes[b]) & (order[a] < order[b]))
            inside, holder = np.where(is_first, (a, b), (b, a))
            met = np.flatnonzero(free[inside])
            inside, holder = inside[met], holder[met]
            checked = np.flatnonzero(is_known[inside])
            if len(checked):
                a, b = inside[checked], holder[checked]
                common = np.rint(containment(samples, a, b).real * sizes[a])
                met = np.ones(len(inside), bool)
                met[checked] = common >= least[a]
                inside, holder = inside[met], holder[met]
            for start in range(0, len(inside), PAIRS_GIVEN):
                a, b = (side[start : start + PAIRS_GIVEN] for side in (inside, holder))
                names = [ids.take(pa.array(side)) for side in (a, b)]
                yield batch_of(CANDIDATES, [*names, pa.array(least[a])])
