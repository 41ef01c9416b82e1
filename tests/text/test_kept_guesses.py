"""Guesses of encodings are kept with documents: the next run reads none, and says the same."""

from pathlib import Path

from tests.conftest import killed_behind_segments, open_index, write_files

LATIN = "Die Größe der Bäume überraschte fünf müde Übersetzer. " * 5
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах. " * 5
EXPECTED = {b"d/3latin.txt": "cp1252", b"d/5koi.txt": "koi8_r"}
EXPECTED |= {b"d/cut.txt": "utf-8, 1 byte is not UTF-8"}


def test_a_run_that_was_killed_is_resumed_with_them(here):
    plain = (f"plain words of document {n} and so on {'again ' * n}" for n in range(8))
    write_files("d", {f"{n}.txt": text for n, text in enumerate(plain)})
    contents = {"3latin.txt": LATIN.encode("latin-1"), "5koi.txt": RUSSIAN.encode("koi8_r")}
    contents |= {"cut.txt": LATIN.encode()[:-30] + b"\xc3", "binary": b"\0\1", "empty": b""}
    write_files("d", contents | {"zip": b"PK\x03\x04 but no more"})
    killed_behind_segments("pairs", "d", batch=3, parts=3)
    open_index("undisturbed", [b"d"])
    said = []
    collection = open_index(".lshdup", [b"d"], said.append)[1].collection
    assert any("of an interrupted run are not read again" in line for line in said)
    names = collection.documents.names.strings_at(collection.notes.guess_documents)
    guesses = [guess.decode() for guess in collection.notes.guesses]
    assert dict(zip(names, guesses, strict=True)) == EXPECTED
    for kind in ("signatures", "bands"):
        again, expected = (Path(s, f"{kind}.npz") for s in (".lshdup", "undisturbed"))
        assert again.read_bytes() == expected.read_bytes()
