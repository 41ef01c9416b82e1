"""What a person, or a program, gets to see of a listing: its columns by name, a table that fits,
and what is said beside it.
"""

import io
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from lshdup.base.wording import chance, decimal
from lshdup.cli.columns import LISTINGS, describe
from lshdup.cli.commands import COMMANDS
from lshdup.cli.layouts import table
from lshdup.cli.main import lshdup
from tests.conftest import ZSTD, require


def test_every_listing_is_in_the_help_of_its_command():
    said = {}
    for name in COMMANDS:
        epilog = lshdup.get_command(None, name).epilog or ""
        for listing in LISTINGS:
            if re.search(rf"^  {listing}  ", epilog, re.M):
                said[listing] = name
                assert re.sub(r"\s+", " ", epilog).count(describe(listing)) >= 1
    assert set(said) == set(LISTINGS)
    assert all(listing.split("-")[0] == name for listing, name in said.items())


CELLS = st.text(st.sampled_from("aB/-_ .漢é"), min_size=1, max_size=50)


@settings(deadline=None)
@given(st.data(), st.integers(1, 12), st.integers(1, 12), st.integers(40, 120))
def test_a_table_fits_and_shows_all(data, n_columns, n_rows, width):
    """No line is wider than the terminal, and every number stands whole in a line; texts may be
    folded, but nothing of them is lost.
    """
    numbers = [data.draw(st.booleans()) for _ in range(n_columns)]
    number = st.floats(-9999, 9999).map(decimal) | st.integers(0, 10**9).map("{:,}".format)
    rows = [
        [data.draw(number if is_number else CELLS) for is_number in numbers] for _ in range(n_rows)
    ]
    names = [f"column_{at}_of" for at in range(n_columns)]
    lines = list(table(names, rows, numbers, width, color=False, header=True))
    assert all(cell_len(line) <= width for line in lines), lines
    shown = [word for line in lines for word in line.split()]
    for row in rows:
        for cell, is_number in zip(row, numbers, strict=True):
            assert not is_number or cell in shown
    for letter in "漢é":
        assert "".join(lines).count(letter) == sum(
            cell.count(letter) for row in rows for cell in row
        )


def test_a_long_cell_takes_time_in_proportion():
    row, numbers = ["1", "x" * 3_000_000], [True, False]
    lines = table(["shingle", "text"], [row], numbers, 80, color=False, header=True)
    assert "".join(lines).count("x") == 3_000_001  # one is in the heading


@settings(deadline=None)
@given(st.floats(0, 1))
def test_chances_are_readable_and_near(p):
    text = chance(p)
    assert "e" not in text.replace("less", "")
    if " in a billion" in text:
        assert 0 < p < 1e-9
    elif text.startswith("1 in "):
        assert 1e-9 <= p < 1e-4
        assert abs(1 / int(text[5:].replace(",", "")) - p) <= 0.06 * p
    else:
        said = float(text.removesuffix(" %")) / 100
        assert abs(said - p) <= 0.06 * p
        assert (said == 0) == (p == 0)
        assert (said == 1) == (p == 1)


@settings(deadline=None)
@given(st.floats(-1e6, 1e6))
def test_no_number_looks_like_another(x):
    text = decimal(x)
    if text[0] in "<>":
        assert 0 < abs(x) < 0.0001
    else:
        assert abs(float(text.replace(",", "")) - x) <= (0.0001 if abs(x) < 1000 else 0.06)
        assert (float(text.replace(",", "")) == 0) == (x == 0)
        assert x >= 1 or text != "1.0000"


def test_show_names_zstd(run, tmp_path):
    zstd = require("zstd", ZSTD)
    packed = io.BytesIO(zstd.compress(b"one two three four five"))
    (tmp_path / "a").write_bytes(packed.getvalue())
    (tmp_path / "b").write_text("one two three four six")
    assert ", zstd, UTF-8, 5 words" in run("show a b").lines[0]
