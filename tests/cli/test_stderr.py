"""What commands say on stderr: at most five lines, each looked at."""

import re

import pytest

from tests import golden, running
from tests.conftest import ROOT

#: Typical command lines, by the name of their golden file.
RUNS = {
    "pairs": "pairs sample_corpus", "pairs-again": "pairs -t 0.9",
    "pairs-exact": "pairs sample_corpus --exact -t 0.9",
    "pairs-none": "pairs sample_corpus/odd -t 0.99 --no-store",
    "pairs-against": "pairs sample_corpus/udhr --against sample_corpus/licences -t 0.6 --no-store",
    "pairs-containment": "pairs sample_corpus --measure containment --no-store",
    "clusters": "clusters sample_corpus --no-store",
    "clusters-exact": "clusters sample_corpus --exact --no-store", "query": "query MIT.txt",
    "folders": "folders sample_corpus --no-store", "passages": "passages sample_corpus --no-store",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stderr")
    (folder / "sample_corpus").symlink_to(ROOT / "sample_corpus")
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_few_plain_lines(folder, name):
    before = "lshdup index sample_corpus -q; " if name in ("pairs-again", "query") else ""
    said = running.shell(f"{before}lshdup {RUNS[name]} > /dev/null", folder).stderr
    assert len(said.splitlines()) <= 5
    golden.check(f"stderr/{name}.txt", re.sub(rb"\d+\.\d\d s\b", b"N s", said))
