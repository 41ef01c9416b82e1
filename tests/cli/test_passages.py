"""`lshdup passages` as a person runs it: where passages stand, and what is cut."""

import codecs
import gzip
import json
import os
import random
import re
from collections import defaultdict

import pytest

from lshdup.params import ShingleParams
from tests import reference
from tests.conftest import ROOT, require, write_files
from tests.documents import list_tokens

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
        "a-utf8": (b"", "utf-8"),
        "b-bom": (codecs.BOM_UTF8, "utf-8"),
        "c-utf16": (codecs.BOM_UTF16_LE, "utf-16-le"),
        "d-utf16be": (codecs.BOM_UTF16_BE, "utf-16-be"),
        "e-utf32": (codecs.BOM_UTF32_LE, "utf-32-le"),
        "f-western": (b"", "cp1252"),
        "g-marks": (b"", "utf-8"),
    }
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
    pa = require("parquet", "pyarrow")
    pq = require("parquet", "pyarrow.parquet")
    pq.write_table(pa.table({"m": [{"text": PASSAGE}] * 2}), tmp_path / "r.parquet")
    command = ["passages", "r.parquet", "--text-field", "m.text", "--least", "20", "--no-store"]
    said = run(*command, "--write", "out.parquet").err
    assert "cut: 0 tokens, 0 bytes, from 0 rows" in said
    assert "1 row with repeats is not cut" in said


def test_no_character_is_cut_that_is_also_of_another_word(run, tmp_path):
    """The words of ½ are 1 and 2: the first is no repeat, and stays with the whole character."""
    words = filling(1)
    texts = [f"2 {words} 1", f"a ½ {words} b", f"c2 {words} ½d"]
    write_files(tmp_path, dict(zip("abc", texts, strict=True)))
    (tmp_path / "r.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in texts))
    for command in (["a", "b"], ["a", "c"]):
        [span] = run("passages", *command, "--least", "20", "--emit", "spans").lines
        each = json.loads(span)
        data = (tmp_path / command[1]).read_bytes()
        left = (data[: each["start"]] + data[each["end"] :]).decode()
        assert "½" in left
        assert words.split()[3] not in left
    run("passages r.jsonl --least 20 --write out.jsonl --no-store")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == [texts[0], "a ½ b", "c2 ½d"]


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
    """And what opens it, as the definition says, in rows and in files of UTF-16; never a word that
    is no repeat.
    """
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
    rows = [{"text": text} for text in texts]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
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
    pa, pq = require("parquet", "pyarrow"), require("parquet", "pyarrow.parquet")
    texts = [f"{filling(1)} {PASSAGE} {filling(2)}", filling(3)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "r.parquet")
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


def test_pairs_of_documents_that_share_passages(run, tmp_path):
    """Of one side, of two, and across folders, in the words of each file."""
    shared, other = filling(1, 40), filling(2, 25)
    texts = {
        "d/x/a": f"{filling(3)} {shared} {filling(4)} {other}",
        "d/x/b": f"{other} {filling(5, 9)} {shared}",
        "d/y/c": f"{shared} {filling(6, 60)}",
        "d/y/d": filling(7),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    words = {name: len(text.split()) for name, text in texts.items()}
    rows = [
        ("d/x/a", "d/x/b", 65, 40, 2), ("d/x/b", "d/y/c", 40, 40, 1),
        ("d/x/a", "d/y/c", 40, 40, 1),
    ]  # fmt: skip
    expected = [
        {"a": a, "b": b, "tokens": n, "share_a": n / words[a], "share_b": n / words[b],
         "longest": longest, "passages": passages}
        for a, b, n, longest, passages in rows
    ]  # fmt: skip
    command = ["d", "--least", "20", "--emit", "pairs", "--no-store"]
    for jobs in ("-j1", "-j3"):
        assert passages(run, *command, jobs) == expected
    assert passages(run, *command, "-t", "45%") == expected[:2]
    assert passages(run, *command, "--across", "folder") == expected[1:]
    assert passages(run, "d/x", "--against", "d/y", *command[1:]) == expected[1:]
    said = run("passages", *command, "--max-documents", "2").err
    assert "has 3 places; a larger --max-documents counts more" in said.replace("\n", " ")
    run("passages d/x --least 20")
    assert passages(run, *command[1:-1]) == expected[:1]  # of the last run
    assert run("passages d/x d/y/d --against d/y/c --emit pairs --least 45 --check").out == b""
    assert run("passages", *command, "--check", code=1).rows[0][2] == "65"


def test_documents_that_cover_a_text(run, tmp_path):
    """Most new tokens first; of the store, a file, or standard input; never the text itself."""
    parts = {name: filling(seed, 30) for seed, name in enumerate("abcd")}
    texts = {
        "s/1": "a b c", "s/2": "c x", "s/3": "b c d", "s/4": "d", "s/5": "x", "t": "a b c d y",
    }  # fmt: skip
    parts |= {"x": filling(7, 10), "y": filling(8, 3)}
    (tmp_path / "s").mkdir()
    for name, names in texts.items():
        (tmp_path / name).write_text(" ".join(parts[each] for each in names.split()))
    run("passages s --least 20")
    data = (tmp_path / "t").read_bytes()
    expected = [("s/1", 90, 90 / 123, 90), ("s/3", 30, 30 / 123, 90)]
    columns = "name", "new_tokens", "share", "tokens", "query"
    for word, stdin in (("t", b""), ("-", data)):
        rows = run(f"query {word} --by passages --least 20 --format jsonl", stdin=stdin).lines
        wanted = [dict(zip(columns, (*row, word), strict=True)) for row in expected]
        assert [json.loads(row) for row in rows] == wanted
    run("pairs s -q")  # A later run of another kind.
    found = run("query s/2 s/3 t --by passages --least 20 --top 1").rows
    assert found == [
        ["s/1", "30", "0.75", "30", "s/2"],
        ["s/1", "60", repr(60 / 90), "60", "s/3"],
        ["s/1", "90", repr(90 / 123), "90", "t"],
    ]
    assert run("query s/5 --by passages --least 10 --check", code=1).rows == [
        ["s/2", "10", "1.0", "10"]
    ]
    assert run("query s/5 --by passages --least 11 --check").out == b""
    (tmp_path / "e").write_text("")
    said = run("query e --by passages --check", code=2).err
    assert "e was not checked: it has no tokens" in said
    (tmp_path / "e").write_text("one two three " * 900)
    said = run("query e --by passages --least 20").err.replace("\n", " ")
    assert "what stands in more than 200 places of e is not counted" in said
    (tmp_path / "s/1").unlink()
    assert run("query t --by passages --least 20", code=2).rows[0][:2] == ["s/3", "90"]
