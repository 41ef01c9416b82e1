"""What tests of sources share: documents that are found and read."""

import os
from dataclasses import replace

import numpy as np

from lshdup.base.run import Run
from lshdup.params import DocumentParams
from lshdup.sources.finding import find_documents
from lshdup.sources.reading import batches, read_batch


def find(*names, store=None, id_lists=False, **params):
    """Return the documents that names lead to, and what is skipped."""
    skipped = []
    documents = find_documents(
        replace(Run.quiet(), skipped=skipped.append), map(os.fsencode, names),
        DocumentParams(**params), store=store, id_lists=id_lists,
    )  # fmt: skip
    return documents, skipped


def batch_texts(batch):
    """Return the texts of a batch by the numbers of their documents."""
    columns = (batch.indices.tolist(), batch.starts.tolist(), batch.lengths.tolist())
    return {
        index: batch.text[start : start + size].tobytes()
        for index, start, size in zip(*columns, strict=True)
    }


def read(documents, which=None):
    """Return the texts of documents, of all or some numbers, and what is skipped."""
    texts, skipped = {}, []
    which = np.arange(len(documents)) if which is None else np.asarray(which)
    for indices in batches(Run.quiet(), documents, which):
        batch = read_batch(documents, indices)
        texts |= batch_texts(batch)
        skipped += batch.skipped
    return texts, skipped


def reasons(skipped):
    """Return the reasons by which things are skipped, by name."""
    return {each.name: each.reason for each in skipped}
