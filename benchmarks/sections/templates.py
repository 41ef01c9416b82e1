"""Letters of one form, compared with and without their shared text."""

from benchmarks.letters import letters, name
from benchmarks.measure import precision, recall
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table

COUNT, COPIES = 2000, 200


def section(bench: Bench) -> list[Table]:
    """Find the pairs of all letters: whole, without the form, and without common shingles."""
    made = letters(COUNT, COPIES, bench.seed)
    folder = bench.home / "letters" / "all"
    if not folder.exists():
        made.write(folder)
    true = frozenset(
        (f"letters/all/{name(a)}".encode(), f"letters/all/{name(b)}".encode())
        for a, b in made.pairs
    )
    table = Table(
        f"**Letters of one form**: {COUNT:,} fillings, {COPIES} of them copies of others with a "
        "word changed; threshold 0.8."
    )
    for options in (
        (),
        ("--template", "letters/form.txt"),
        ("--ignore-common", "0.05"),
        ("--ignore-common", "40"),
    ):
        found = bench.fresh("pairs", "letters/all", "-q", *options, keep=True)
        table.add(
            what=f"`pairs {' '.join(options)}`" if options else "`pairs`",
            pairs=found.lines,
            recall=recall(found.pairs, true),
            precision=precision(found.pairs, true),
            seconds=found.seconds,
        )
    bench.forget()
    return [table]
