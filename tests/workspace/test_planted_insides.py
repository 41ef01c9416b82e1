"""Documents planted in others: all of them are found, and each number is that of brute force."""

import os

import numpy as np
import pytest

from tests import reference

THRESHOLD = 0.8


def quoted(text):
    """A text as a reply quotes it, in lines of ten words."""
    words = text.split()
    lines = (" ".join(words[at : at + 10]) for at in range(0, len(words), 10))
    return "\n".join(f"> {line}" for line in lines)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A folder of texts, and the pairs (inside, holder) that were planted in it."""
    rng = np.random.default_rng(5)
    folder, pairs = tmp_path_factory.mktemp("planted"), set()

    def words(n):
        return " ".join(f"w{i}" for i in rng.integers(0, 5000, n).tolist())

    def write(name, text):
        (folder / name).write_text(text)

    licence = words(300)
    write("licence.txt", licence)
    for i in range(10):
        # A paragraph in a text twenty times as long, whole or without a tenth of its words.
        paragraph = words(100)
        kept = paragraph.split()[: 100 if i % 2 else 90]
        write(f"paragraph-{i}.txt", paragraph)
        write(f"page-{i}.txt", "\n\n".join([words(900), " ".join(kept), words(1000)]))
        pairs.add((f"paragraph-{i}.txt", f"page-{i}.txt"))
        # A licence in one of ten files, under another first line.
        parts = [words(200) for _ in range(9)]
        write(f"source-{i}.txt", "\n\n".join([words(5), licence if i < 5 else words(300), *parts]))
        if i < 5:
            pairs.add(("licence.txt", f"source-{i}.txt"))
        # A mail, a reply that quotes it whole, and a reply to the reply.
        mail = words(40)
        reply = f"{words(30)}\n{quoted(mail)}"
        write(f"mail-{i}.txt", mail)
        write(f"reply-{i}.txt", reply)
        write(f"last-{i}.txt", f"{words(20)}\n{quoted(reply)}")
        pairs |= {
            (f"mail-{i}.txt", f"reply-{i}.txt"),
            (f"mail-{i}.txt", f"last-{i}.txt"),
            (f"reply-{i}.txt", f"last-{i}.txt"),
        }
        # A decoy: the larger half of a text is in another one.
        decoy = words(100)
        write(f"decoy-{i}.txt", decoy)
        write(f"other-{i}.txt", " ".join(decoy.split()[:75]) + words(500))
    return folder, pairs


def test_all_planted_pairs_are_found_and_nothing_else(run, planted):
    folder, pairs = planted
    named = {os.path.basename(name): found for name, found in reference.folder_sets(folder).items()}
    names = sorted(named)
    expected = {
        (names[inside], names[holder]): (containment, similarity)
        for inside, holder, containment, similarity in reference.all_insides(
            [named[name] for name in names], THRESHOLD
        )
    }
    assert set(expected) == pairs
    for jobs in ("1", "4"):
        rows = run(
            "pairs . --measure containment -t", str(THRESHOLD), "--no-store",
            "--format", "tsv", "-j", jobs, cwd=folder,
        ).rows  # fmt: skip
        found = {(a, b): (float(share), float(score)) for a, b, share, score, *_ in rows}
        assert found == expected
        assert len(rows) == len(expected)
