"""README and the pages of docs/ say what is so: examples run, what they show is what is printed,
links lead somewhere, and pages are short.

In `sh` blocks each line is a command that prints something. In `console` blocks `$ ` begins a
command and its output follows; a line … stands for any number of lines. `python` blocks are run,
`text` blocks are not. All blocks of a page are run in order, in one folder with `sample_corpus`;
some pages compare `docs` too.
"""

import ast
import builtins
import keyword
import re
import shutil
import sys
import unicodedata
from itertools import chain

import pytest

from lshdup.shingling.normalization import IGNORABLE_RANGES, UNSPACED_BLOCKS
from tests.conftest import ROOT, part
from tests.running import shell

#: The pages of the top folder, which are not of the site.
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]

PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]
}

#: Pages that `.ci/reference` makes.
GENERATED = {f"docs/reference/{name}.md" for name in ("commands", "options", "columns")}

#: Words that are not used here, and the field's words for them.
WORDS = {
    "made anew": "rebuilt", "as good as not there": "ignored", "nameless file": "temporary file",
    "near nothing": "has no near-duplicates", "has no meaning with": "cannot be combined with",
    "first copies": "exact duplicates and their representative", "left out": "skipped",
    "rows of files": "records", "gives up": "stops keeping", "whatever": "any",
    "nobody": "no one: name the part that does not",
}  # fmt: skip


def blocks(page, kinds="sh|console|python"):
    return re.findall(rf"^```({kinds})\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)


def without_examples(page):
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)


def prose(page):
    """The page without examples, code and addresses."""
    return re.sub(r"\]\([^)]*\)|`[^`]*`|^    .*$", "", without_examples(page), flags=re.MULTILINE)


#: Pages with examples; of those on a task, which are many, every other one is run every day.
ON_A_TASK = [page for page in PAGES if "/how-to/" in page and blocks(page)]
OTHERS = [page for page in PAGES if "/how-to/" not in page and blocks(page)]


@pytest.mark.parametrize("page", [*OTHERS, *part(ON_A_TASK, 2)])
def test_examples_run(page, corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    if "pairs docs" in PAGES[page] and "mkdir docs" not in PAGES[page]:
        shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for kind, block in blocks(page):
        if kind == "python":
            exec(compile(block, page, "exec"), names)
        elif kind == "console":
            for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, *shown = example.splitlines()
                printed = ran(command, tmp_path).decode().splitlines()
                assert is_shown(steady(printed), steady(shown)), (command, printed)
        else:
            for line in block.splitlines():
                if not line.startswith("python3 -m venv"):  # the set-up commands: CI runs these
                    assert ran(line, tmp_path) or line.startswith("lshdup index"), line


def ran(line, folder):
    process = shell(line, folder)
    assert process.returncode == 0, (line, process.stderr)
    return process.stdout


def steady(lines):
    """The lines without what a clock says."""
    return [re.sub(r"\d+\.\d\d s\b", "# s", line) for line in lines]


def is_shown(printed, shown):
    """Whether the lines that a page shows are what was printed; … stands for any lines."""
    pattern = "\n".join(".*" if line == "…" else re.escape(line) for line in shown)
    return re.fullmatch(pattern, "\n".join(printed), re.DOTALL) is not None


def test_there_are_examples():
    found = [kind for page in PAGES for kind, _ in blocks(page)]
    assert found.count("sh") + found.count("console") >= 20
    assert "python" in found


def test_the_picture_is_what_is_printed():
    """`python -m benchmarks.picture` draws it anew; it is small, and fetches nothing."""
    from benchmarks.picture import PICTURE, TYPED, picture

    drawn = PICTURE.read_text("utf-8")
    assert drawn == picture()
    assert len(drawn) < 20_000
    assert not re.search(r"https?://(?!www\.w3\.org/|www\.textualize\.io)", drawn)
    assert all("lshdup" in line for line, _ in TYPED)


def anchors(page):
    """The anchors of the headings of a page, as mkdocs and forges make them."""
    headings = "\n".join(re.findall(r"^#+ (.*)$", without_examples(page), re.MULTILINE))
    plain = unicodedata.normalize("NFKD", headings).encode("ascii", "ignore").decode()
    lines = (re.sub(r"[^\w\s-]", "", line).strip().lower() for line in plain.split("\n"))
    return {re.sub(r"[-\s]+", "-", line) for line in lines}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    folder = (ROOT / page).parent
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (folder / path).resolve() if path else ROOT / page
        assert target.is_file(), link
        if page.startswith("docs/"):
            assert target.is_relative_to(ROOT / "docs"), f"the site has no {link}"
        if anchor:
            assert anchor in anchors(str(target.relative_to(ROOT))), link


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
@pytest.mark.parametrize("task", ["two-backups", "who-copied"])
def test_a_task_that_people_come_with_is_where_they_come(page, task):
    assert f"how-to/{task}.md)" in PAGES[page]


def test_the_tests_that_hold_guarantees_are_there():
    names = re.findall(r"`([\w/]+)(\.py)?`", PAGES["docs/explanation/guarantees.md"])
    tests = {str(path.relative_to(ROOT)): path for path in (ROOT / "tests").rglob("test_*.py")}
    sources = "\n".join(path.read_text() for path in tests.values())
    defined = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    held = [(name, ending) for name, ending in names if re.search(r"\b(test_|Test)", name)]
    assert len(held) > 30
    for name, ending in held:
        is_file = any(f"/{file}".endswith(f"/{name}.py") for file in tests)
        assert is_file if ending else name in defined, name


def test_every_page_has_its_place_in_the_site():
    listed = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    here = [page for page in PAGES if page.startswith("docs/")]
    assert sorted(f"docs/{each}" for each in listed) == sorted(here)


@pytest.mark.parametrize("page", sorted(set(PAGES) - GENERATED))
def test_a_page_is_short_has_one_title_and_one_word_for_one_thing(page):
    assert PAGES[page].count("\n") <= (200 if page == "README.md" else 250)
    assert page == "README.md" or len(re.findall(r"^# ", without_examples(page), re.M)) == 1
    text = " ".join(prose(page).lower().split())
    assert {old: new for old, new in WORDS.items() if old in text} == {}


def test_set_up_commands():
    lines = "".join(block for _, block in blocks("README.md", "sh")).splitlines()
    first, second = (line for line in lines if line.startswith("python3 -m venv"))
    assert "lshdup pairs sample_corpus --threshold 0.9" in first
    assert "pytest" in second
    assert "README.md" in (ROOT / ".ci/run").read_text()


@pytest.mark.parametrize(
    ("stage", "line"),
    [
        ("", "--hypothesis-seed=$((16#${commit:0:12}))"),
        ("the newest Python", '[ "$newest" ] || { echo "no Python newer'),
        ("the newest Python", "if \"$lint/machine/bin/python\" -c 'import llvmlite'"),
        ("the newest Python", "LSHDUP_REQUIRE=formats,mcp,parquet,plot,prebuilt,zstd"),
        ("the newest Python", "-m pytest $parallel $core tests/kernels"),
        ("the README's", "LSHDUP_REQUIRE=formats,fuzz,kernels,mcp,pandas,parquet,plot,polars,zstd"),
        ("drawn faults", '-m tests.mutants --reached "$lint/reached" --draw 24 --seed "$commit"'),
        ("the lowest versions", "$core tests/cli tests/passages tests/views tests/store tests/"),
        ("what takes long", "--editable '.[test,fuzz]'"),
        ("Spark", 'python3 .ci/lowest.py spark > "$lint/lowest.txt"'),
    ],
)
def test_ci_runs_what_it_must(stage, line):
    """What no other test would miss, in its stage; and the workflow runs the same."""
    stages = re.split(r'^stage "', (ROOT / ".ci/run").read_text(), flags=re.MULTILINE)
    assert any(each.startswith(stage) and line in each for each in stages)
    assert "\n      - run: .ci/run\n" in (ROOT / ".github/workflows/tests.yml").read_text()


def test_scripts_without_spaces_are_those_of_the_tokens():
    section = PAGES["docs/reference/definitions.md"].partition("### Scripts without spaces")[2]
    rows = re.findall(r"^\| .+ \| (.+) \| (\d) \|$", section.partition("\n## ")[0], re.MULTILINE)
    found = [(*block.split("–"), reach) for blocks, reach in rows for block in blocks.split(", ")]
    found = [(int(low, 16), int(high, 16), int(reach)) for low, high, reach in found]
    assert sorted(found) == list(UNSPACED_BLOCKS)


def test_ignorable_characters_are_those_that_are_dropped():
    page = "docs/reference/definitions.md"
    names = {}
    exec(next(block for _, block in blocks(page) if "IGNORABLE" in block), names)
    found = map(ord, names["IGNORABLE"].findall("".join(map(chr, range(sys.maxunicode + 1)))))
    dropped = (range(low, high + 1) for low, high in IGNORABLE_RANGES)
    assert list(found) == list(chain.from_iterable(dropped))


def without_comments(source):
    """Python without docstrings, which are strings in three quotes that begin a line, and comments,
    which begin a line or stand behind two spaces.
    """
    strings = r'(^ *)?"""(.*?)"""'
    text = re.sub(strings, lambda m: m[2] if m[1] is None else "", source, flags=re.S | re.M)
    return re.sub(r"(^ *|  )#.*$", "", text, flags=re.MULTILINE)


class Names:
    """What a name in backticks may mean: identifiers, words in strings, and files."""

    def __init__(self):
        self.files = [
            str(path.relative_to(ROOT))
            for folder in ("lshdup", "tests", "docs", "benchmarks")
            for path in (ROOT / folder).rglob("*")
        ]
        self.files += [path.name for path in ROOT.iterdir()]
        self.words = {*dir(builtins), *keyword.kwlist}
        for path in filter(lambda name: name.endswith(".py"), self.files):
            self.words |= set(path.removesuffix(".py").split("/"))
            source = (ROOT / path).read_text("utf-8")
            self.words.update(re.findall(r"\w+", without_comments(source)))

    def unknown(self, text):
        """Yield the names in backticks that mean nothing."""
        for quoted in re.findall(r"(?<!`)`([\w./]+)(?:\(\))?`(?!`)", text):
            if re.search(r"\.(py|md|js|ir)$", quoted):
                is_there = any(f"/{file}".endswith(f"/{quoted}") for file in self.files)
            else:
                is_there = self.words.issuperset(re.findall(r"\w+", quoted))
            if not is_there:
                yield quoted


def test_names_in_backticks_are_there():
    names, unknown = Names(), []
    for path in sorted((ROOT / "lshdup").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                unknown += [f"{path.relative_to(ROOT)}: {each}" for each in names.unknown(text)]
    for page in (page for page in PAGES if page.startswith("docs/explanation/")):
        unknown += [f"{page}: {each}" for each in names.unknown(PAGES[page])]
    assert unknown == []
    absent = "no_such_" + "name"
    text = f"`compare/similarity.py` `Run` `{absent}()`"
    assert list(names.unknown(text)) == ["compare/similarity.py", absent]
    source = 'def f():\n    """Doc\nstring."""  # comment\n    x = """\nkept\n"""\n    # 1\n    "#"'
    assert re.findall(r"\w+|#", without_comments(source)) == ["def", "f", "x", "kept", "#"]
