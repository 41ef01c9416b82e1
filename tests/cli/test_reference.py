"""The generated pages of docs/ are those of the commands and of their listings."""

import pytest

from lshdup.cli.columns import LISTINGS
from lshdup.cli.commands import COMMANDS
from lshdup.cli.reference import DOCS, pages


@pytest.mark.parametrize("name", pages())
def test_a_page_is_up_to_date(name):
    """`python -m lshdup.cli.reference` writes it again."""
    assert (DOCS / name).read_text("utf-8") == pages()[name]


def test_every_command_and_listing_has_its_place():
    for command in COMMANDS:
        assert f"## lshdup {command}\n" in pages()["cli.md"]
    for listing in LISTINGS:
        assert f"## {listing}\n" in pages()["columns.md"]
