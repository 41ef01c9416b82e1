"""The generated pages of docs/ are those of the commands and of their listings."""

import pytest

from lshdup.cli.columns import LISTINGS
from lshdup.cli.commands import COMMANDS
from lshdup.cli.reference import DOCS, make_pages


@pytest.mark.parametrize("name", make_pages())
def test_a_page_is_up_to_date(name):
    """`python -m lshdup.cli.reference` writes it again."""
    assert (DOCS / name).read_text("utf-8") == make_pages()[name]


def test_every_command_and_listing_has_its_place():
    for command in COMMANDS:
        assert f"## lshdup {command}\n" in make_pages()["cli.md"]
    for listing in LISTINGS:
        assert f"## {listing}\n" in make_pages()["columns.md"]
