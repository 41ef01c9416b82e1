"""Samples of shingle sets in the store, by the fingerprints of the sets.

A sample depends on nothing but its set: it serves every collection that has a document with that
set, whatever else was added, changed, renamed or removed.
"""

import unicodedata

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.lsh.samples import sample_sets
from lshdup.params import ShingleParams
from lshdup.store import npz
from lshdup.store.members import Member, check_arrays, damage_explained, declare_sets, refuse_if
from lshdup.store.store import Store

_SAMPLES = {"fingerprints": Member(np.uint64, ("sets",), is_ascending=True), **declare_sets("sets")}

_REMEDY = "delete it: it is made again from the documents"


@dataclass(frozen=True)
class StoredSamples:
    """Samples of shingle sets.

    prints : uint64 array of shape (m,), ascending: the fingerprints of the sets.
    samples : sample i is of the set prints[i].
    rate, seed : of the samples.
    """

    prints: NDArray[np.uint64]
    samples: RaggedSets
    rate: int
    seed: int

    @property
    def part(self) -> tuple[NDArray[np.uint64], RaggedSets]:
        """The fingerprints and the samples."""
        return self.prints, self.samples


def save_samples(store: Store, shingle: ShingleParams, stored: StoredSamples) -> None:
    """Save samples.npz."""
    header = _describe(shingle) | {"rate": stored.rate, "seed": stored.seed}
    arrays: dict[str, npz.Array] = {
        "fingerprints": stored.prints,
        "values": stored.samples.values,
        "offsets": stored.samples.offsets,
    }
    npz.save(store.path("samples"), "samples", header, arrays)


def load_samples(run: Run, store: Store, shingle: ShingleParams) -> StoredSamples | None:
    """Load samples.npz. Return None if it is missing, or of sets with other parameters.

    Raises ArtifactError if it is damaged.
    """
    path = store.path("samples")
    artifact = npz.load(path, "samples", _REMEDY)
    if artifact is None:
        return None
    with damage_explained(path, _REMEDY):
        header = artifact.header
        if any(header[key] != value for key, value in _describe(shingle).items()):
            return None
        rate, seed = header["rate"], header["seed"]
        fits = type(rate) is int and 1 <= rate <= 1 << 32 and type(seed) is int and seed >= 0
        refuse_if(not fits, "its rate or seed is none")
        prints, values, offsets = check_arrays(artifact, _SAMPLES, {}).values()
        samples = RaggedSets(values, offsets)
        whole = sample_sets(run, samples, rate, seed)
        refuse_if(len(whole.values) != len(values), "its samples have elements of another rate")
        is_first = np.zeros(len(values) + 1, bool)
        is_first[offsets] = True
        in_order = (values[1:] > values[:-1]) | is_first[1:-1]
        refuse_if(not in_order.all(), "its samples are not in order")
        return StoredSamples(prints, samples, rate, seed)


def _describe(shingle: ShingleParams) -> dict[str, object]:
    return {"shingle": shingle.to_json(), "unicode": unicodedata.unidata_version}
