"""The generated pages of docs/ are those of the commands and of their listings."""

import pytest

from lshdup.cli.reference import DOCS, make_pages


@pytest.mark.parametrize("name", ["commands.md", "options.md", "columns.md"])
def test_a_page_is_up_to_date(name):
    """`python -m lshdup.cli.reference` writes it again."""
    assert (DOCS / name).read_text("utf-8") == make_pages()[name]


def test_an_option_is_described_once():
    """What commands share is on the page of options alone; it is as long as a page may be."""
    pages = make_pages()
    assert pages["options.md"].count("`LSHDUP_HASH_KEY=KEY`") == 1
    assert "LSHDUP_HASH_KEY" not in pages["commands.md"]
    assert pages["commands.md"].count("\n") <= 460
