"""`lshdup passages` as a person runs it: where passages stand, and what is cut."""

import codecs
import gzip
import json
import os
import random
import re
from collections import defaultdict

import pytest

from lshdup.base.params import ShingleParams
from tests import reference
from tests.conftest import ROOT, require, write_files
from tests.documents import list_tokens, write_rows

PASSAGE = (
    "Größe ist nicht alles, aber „ohne sie“ ist manches nichts — sagte der alte Mann am Meer zu "
    "seiner Frau, die ihn, wie so oft, nicht hörte."
)
MARKED = PASSAGE.replace("ö", "o\u0308")  # composed before it is compared


def filling(seed, n=30):
    draw = random.Random(seed)
    return " ".join(f"wörd{draw.randrange(1000, 9999)}" for _ in range(n))


def tokens_of(text):
    return list_tokens(text.encode(), ShingleParams())[0]


def passages(run, *arguments, **more):
    """The rows of `passages` as objects."""
    result = run("passages", *arguments, "--format", "jsonl", **more)
    return [json.loads(line) for line in result.lines]


@pytest.fixture
def texts(tmp_path):
    """A passage in documents of every encoding, at another place in each."""
    (tmp_path / "d").mkdir()
    stored = {}
    forms = {
        "a-utf8": (b"", "utf-8"), "b-bom": (codecs.BOM_UTF8, "utf-8"),
        "c-utf16": (codecs.BOM_UTF16_LE, "utf-16-le"),
        "d-utf16be": (codecs.BOM_UTF16_BE, "utf-16-be"),
        "e-utf32": (codecs.BOM_UTF32_LE, "utf-32-le"),
        "f-western": (b"", "cp1252"), "g-marks": (b"", "utf-8"),
    }  # fmt: skip
    for at, (name, (bom, codec)) in enumerate(forms.items()):
        passage = MARKED if name == "g-marks" else PASSAGE
        before = filling(at, 3 + at)
        text = f"{before}: {passage}\n{filling(at + 100)}"
        (tmp_path / "d" / name).write_bytes(bom + text.encode(codec))
        stored[f"d/{name}"] = codec
    page = f"<html><body><p>{filling(50)}</p><p>{PASSAGE.replace('ß', '&szlig;')}</p></body></html>"
    (tmp_path / "d/h.html").write_text(page)
    (tmp_path / "d/i.gz").write_bytes(gzip.compress(f"{filling(51)} {PASSAGE}".encode(), mtime=0))
    return tmp_path, stored


def test_offsets_are_those_of_the_document_as_it_is_stored(run, texts):
    folder, stored = texts
    rows = passages(run, "d", "--least", "20", "-j1")
    assert passages(run, "d", "--least", "20", "-j2", "--no-store") == rows
    assert {row["passage"] for row in rows} == {1}
    assert {(row["tokens"], row["places"], row["documents"]) for row in rows} == {(26, 9, 9)}
    wanted = tokens_of(PASSAGE)
    for row in rows[:7]:
        data = (folder / row["document"]).read_bytes()[row["start"] : row["end"]]
        text = data.decode(stored[row["document"]])
        assert tokens_of(text) == wanted
        assert text[0] == "G"
        assert text.endswith("rte")
    assert [row["offsets"] for row in rows] == ["bytes"] * 7 + ["text"] * 2
    assert [row["document"] for row in rows] == [*stored, "d/h.html", "d/i.gz"]
    at = [row["token_end"] - row["token_start"] for row in rows]
    assert at == [26] * 9
    assert [row["token_start"] for row in rows[:7]] == list(range(3, 10))
    assert rows[0]["text"] == PASSAGE[:-1]
    assert [row["text"] for row in rows[1:]] == [None] * 8
    packed = gzip.decompress((folder / "d/i.gz").read_bytes())
    assert tokens_of(packed[rows[8]["start"] : rows[8]["end"]].decode()) == wanted


def test_rows_that_are_not_cut_do_not_count_as_cut(run, tmp_path):
    write_rows(tmp_path / "r.parquet", [{"m": {"text": PASSAGE}}] * 2)
    command = ["passages", "r.parquet", "--text-field", "m.text", "--least", "20", "--no-store"]
    said = run(*command, "--write", "out.parquet").err
    assert "cut: 0 tokens, 0 bytes, from 0 rows" in said
    assert "1 row with repeats is not cut" in said


def cut_slowly(texts, rows):
    """The texts without repeats, by definition: of each passage the first place stays; a cut takes
    what opens its first passage and what closes its last one in every place, unless a word stands
    right before that.

    rows : places as `passages --format jsonl` lists them, of documents r.jsonl:1, r.jsonl:2, …
    """
    number = [int(row["document"].rpartition(":")[2]) - 1 for row in rows]
    places = {}
    for row, document in zip(rows, number, strict=True):
        span = document, row["token_start"], row["token_end"]
        places.setdefault(row["passage"], []).append(span)
    spans = [[each.span() for each in re.finditer(r"\w+", text)] for text in texts]

    def behind(document, end):
        after = spans[document][end][0] if end < len(spans[document]) else len(texts[document])
        text = texts[document][spans[document][end - 1][1] : after]
        return re.match(r"[\s.,;:!?)\]”»…。]*", text)[0]

    def before(document, start):
        after = spans[document][start - 1][1] if start else 0
        text = texts[document][after : spans[document][start][0]]
        return re.search(r"(?:[(\[«“„¿][\s(\[«“„¿]*)?$", text)[0]

    made = []
    for document, text in enumerate(texts):
        repeats = {}  # by token: the passages that are cut there
        for passage, found in places.items():
            for each, start, end in sorted(found)[1:]:
                for token in range(start, end) if each == document else ():
                    repeats.setdefault(token, []).append((end - start, start, end, passage))
        cuts, token = [], 0
        while token < len(spans[document]):
            first = token
            while token in repeats:
                token += 1
            if token > first:
                begin, end = spans[document][first][0], spans[document][token - 1][1]
                ending = [each for each in repeats[token - 1] if each[2] == token]
                closings = [behind(each, stop) for each, _, stop in places[max(ending)[3]]]
                beginning = [each for each in repeats[first] if each[1] == first]
                openings = [before(each, at)[::-1] for each, at, _ in places[max(beginning)[3]]]
                opening = os.path.commonprefix(openings)[::-1].lstrip()  # noqa: RUF071 (texts, not paths)
                if not re.match(r"\w", text[: begin - len(opening)][-1:]):
                    begin -= len(opening)
                    end += len(os.path.commonprefix(closings))  # noqa: RUF071 (texts, not paths)
                cuts.append((begin, end))
            token += token == first
        for begin, end in reversed(cuts):
            text = text[:begin] + text[end:]
        made.append(
            (text, [w for at, w in enumerate(tokens_of(texts[document])) if at not in repeats])
        )
    return made


def test_a_cut_takes_what_closes_the_passage_everywhere(run, tmp_path):
    """And what opens it, in rows and files of UTF-16; never a word that is no repeat."""
    draw = random.Random(7)
    pieces = [filling(seed, draw.randrange(20, 30)) for seed in range(12)]
    closings = [". ", ". ", ".", "!” ", "…\n", "。", ") – ", ' "', " ", "\n\n", ", "]
    openings = ["(", "(„", " ¿", "", "", " ", "( ", " « "]
    usual, first = ([draw.choice(some) for _ in pieces] for some in (closings, openings))
    texts = []
    for number in range(60):
        text = filling(1000 + number, draw.randrange(3)) + draw.choice(["", " ", " ("])
        for piece in draw.sample(range(12), draw.randrange(1, 4)):
            words = pieces[piece].split()
            part = " ".join(words[draw.choice([0, 0, 0, 3]) :])
            text += first[piece] if draw.random() < 0.97 else draw.choice(openings)
            text += part + (usual[piece] if draw.random() < 0.97 else draw.choice(closings))
            text += filling(2000 + 9 * number, draw.randrange(2)) + draw.choice([" ", " «"])
        texts.append(text.strip() if number % 2 else text)
    write_rows(tmp_path / "r.jsonl", [{"text": text} for text in texts])
    found = passages(run, "r.jsonl", "--least", "15", "--no-store", "--max-documents", "1000")
    wanted = cut_slowly(texts, found)
    command = ["--least", "15", "--no-store", "--max-documents", "1000"]
    run("passages r.jsonl", *command, "--write", "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    written = [json.loads(line)["text"] for line in lines]
    assert written == [text for text, _ in wanted]
    assert [tokens_of(text) for text in written] == [left for _, left in wanted]
    kept_dots = sum(text.startswith((".", "!", "…", "。")) for text in written)
    assert kept_dots < 5 < sum(a != b for a, b in zip(texts, written, strict=True))
    (tmp_path / "d").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / f"d/{number:02}").write_text(text, encoding="utf-16")
    spans = run("passages d", *command, "--emit", "spans").lines
    for each in map(json.loads, reversed(spans)):
        path = tmp_path / each["document"]
        data = path.read_bytes()
        path.write_bytes(data[: each["start"]] + data[each["end"] :])
    assert [path.read_text("utf-16") for path in sorted((tmp_path / "d").iterdir())] == written
    assert run("passages d", *command).out == b""


def test_only_docs_are_written_whatever_other_is(run, tmp_path):
    pq = require("parquet", "pyarrow.parquet")
    texts = [f"{filling(1)} {PASSAGE} {filling(2)}", filling(3)]
    write_rows(tmp_path / "r.parquet", [{"text": text} for text in texts])
    write_files(tmp_path, {"q.jsonl": json.dumps({"text": PASSAGE}) + "\n", "q.txt": PASSAGE})
    run("index q.txt --store kept")
    command = ["passages", "r.parquet", "--least", "20", "--no-store", "--write", "o.parquet"]
    for other in ("q.jsonl", "q.txt", "kept"):
        assert "from 1 row" in run(*command, "--against", other).err
        written = pq.read_table(tmp_path / "o.parquet").column("text").to_pylist()
        assert [text == old for text, old in zip(written, texts, strict=True)] == [False, True]


def test_the_sample_corpus_against_brute_force(run):
    """Every run of 50 tokens that recurs is in a place, each place repeats, and none is longer."""
    least = 50
    tokens = {}
    for path in sorted((ROOT / "sample_corpus").rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            try:
                text = data.decode()
            except UnicodeDecodeError:
                text = data.decode("cp1252")
            text = reference.visible_text(text) if path.suffix == ".html" else text
            name = str(path.relative_to(ROOT))
            tokens[name] = reference.word_tokens(reference.normal_form(text))
    runs = defaultdict(list)
    for name, words in tokens.items():
        for at in range(len(words) - least + 1):
            runs[tuple(words[at : at + least])].append((name, at))
    expected = {
        (name, at + i)
        for places in runs.values() if len(places) > 1
        for name, at in places for i in range(least)
    }  # fmt: skip
    out = run("passages sample_corpus --no-store --format jsonl", cwd=ROOT).out
    found, passages = set(), defaultdict(list)
    for row in map(json.loads, out.splitlines()):
        if row.get("document"):
            passages[row["passage"]].append((row["document"], row["token_start"], row["token_end"]))
    for places in passages.values():
        texts = {tuple(tokens[name][start:end]) for name, start, end in places}
        assert len(texts) == 1 < len(places)
        before = {tokens[name][start - 1] if start else None for name, start, _ in places}
        behind = {tokens[name][end] if end < len(tokens[name]) else None for name, _, end in places}
        assert len(before) > 1 or None in before
        assert len(behind) > 1 or None in behind
        found |= {(name, at) for name, start, end in places for at in range(start, end)}
    assert found == expected
    assert len(passages) > 200
