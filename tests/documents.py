"""What tests of sources share: documents that are found and read, and what they are packed in."""

import csv
import gzip
import io
import json
import os
import tarfile
import zipfile
from dataclasses import replace

import numpy as np

from lshdup.base.params import DocumentParams
from lshdup.base.run import Run
from lshdup.shingling.inspection import cut_parts
from lshdup.sources.finding import find_documents
from lshdup.sources.text_batches import batches, read_batch
from tests.conftest import ZSTD, require


def find(*names, store=None, id_lists=False, **params):
    """Return the documents that names lead to, and what is skipped."""
    skipped, params = [], DocumentParams(**params)
    run, names = replace(Run.quiet(), skipped=skipped.append), map(os.fsencode, names)
    return find_documents(run, names, params, store=store, id_lists=id_lists), skipped


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


def listed(*names, **params):
    """Return the texts of the documents that names lead to, by name, and what is skipped."""
    documents, skipped = find(*names, **params)
    texts, more = read(documents)
    skipped += [(documents.names[index], reason, detail) for index, reason, detail in more]
    return {documents.names[index]: text for index, text in texts.items()}, skipped


def by_inner_names(path, found):
    """Return what is found below a file, by the names there."""
    prefix = os.fsencode(path) + b"/"
    assert all(name.startswith(prefix) for name in found)
    return {name[len(prefix) :]: each for name, each in found.items()}


def write_rows(path, rows, **parquet):
    """Write rows, {column: cell}, in the form of the ending. parquet : options of pyarrow."""
    if path.suffix == ".parquet":
        pa, pq = require("parquet", "pyarrow"), require("parquet", "pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(rows), path, **parquet)
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    else:
        # Of every other row the letters are escaped.
        lines = (json.dumps(row, ensure_ascii=at % 2 == 0) + "\n" for at, row in enumerate(rows))
        data = "".join(lines).encode()
        packers = {
            ".gz": gzip.compress,
            ".zst": lambda data: require("parquet", ZSTD).compress(data),
        }
        path.write_bytes(packers.get(path.suffix, bytes)(data))


def tar_of(members, mode="w"):
    """Return an archive of members: pairs of a name or a TarInfo, and bytes."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode, errors="surrogateescape") as archive:
        for name, content in members:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if member.isreg():
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def zip_of(members, **options):
    """Return an archive of members: pairs of a name or a ZipInfo, and bytes."""
    file = io.BytesIO()
    options = {"compression": zipfile.ZIP_DEFLATED} | options
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def warc_record(kind, uri, block):
    """Return a record of a crawl."""
    fields = f"WARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    header = f"WARC/1.0\r\n{fields}Content-Length: {len(block)}\r\n\r\n"
    return header.encode() + block + b"\r\n\r\n"


def wiki_dump(pages, before=""):
    """Return a dump of pages: pairs of a title and texts of revisions, as XML."""
    made = "".join(
        f"<page><title>{title}</title><ns>0</ns>"
        + "".join(f"<revision><text bytes='1'>{text}</text></revision>" for text in texts)
        + "</page>\n"
        for title, texts in pages
    )
    root = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" xml:lang="en">'
    return f"{before}{root}<siteinfo/>{made}</mediawiki>".encode()


def list_tokens(text, params):
    """Return the tokens of a text in normal form and its shingles, both in order and with repeats.

    Ids have no order: their tokens are the numbers, ascending.
    """
    parts = cut_parts(text, params)
    tokens = [token for part in parts for token in part.tokens()]
    return tokens, np.concatenate([part.shingles for part in parts])
