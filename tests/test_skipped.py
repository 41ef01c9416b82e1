"""Which tests may be skipped where LSHDUP_REQUIRE says what must be there."""

import pytest

from tests.conftest import MAY_BE_SKIPPED, may_be_skipped
from tests.running import ROOT


@pytest.mark.parametrize(
    ("reason", "required", "may"),
    [
        ("no pyspark: pip install 'lshdup[spark]'", ["formats"], True),
        ("no pyspark: pip install 'lshdup[spark]'", ["formats", "spark"], False),
        ("fish is not here", ["formats"], False),
        *((reason, ["formats"], True) for reason in MAY_BE_SKIPPED),
    ],
)
def test_a_skip_is_for_an_extra_or_of_the_list(reason, required, may):
    assert may_be_skipped(reason, required) is may


@pytest.mark.parametrize("reason", MAY_BE_SKIPPED)
def test_every_reason_of_the_list_is_used(reason):
    """No reason stays when its test is gone; one is pytest's own."""
    sources = (path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    used = sum(source.count(f'"{reason}"') for source in sources)
    assert used >= 2 or reason.endswith("+SKIP option")
