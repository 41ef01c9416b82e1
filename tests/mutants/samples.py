"""Faults of samples of sets, and of what is found and promised by them."""

from tests.mutants import Mutant

LAW, STORE = "tests/lsh/test_samples.py", "tests/workspace/test_containment.py"

MUTANTS = [
    Mutant(
        "samples: one hash too many is kept",
        "lshdup/kernels/samples.py",
        "mix64(values[i] ^ salt) < limit",
        "mix64(values[i] ^ salt) < limit + limit",
        LAW,
    ),
    Mutant(
        "samples: one common element more is needed",
        "lshdup/lsh/sample_plan.py",
        "least[n], fewer[n] = at + 1, below",
        "least[n], fewer[n] = min(at + 2, n), below",
        LAW,
    ),
    Mutant(
        "samples: those of removed documents stay",
        "lshdup/workspace/containment/samples.py",
        "wanted = _find(arrays, stored.prints, in_order)",
        "wanted = np.arange(len(stored.prints))",
        STORE,
    ),
    Mutant(
        "samples: of another rate are used",
        "lshdup/store/samples_io.py",
        "len(whole.values) != len(values)",
        "len(whole.values) > len(values)",
        STORE,
    ),
    Mutant(
        "samples: those across two sides are candidates within one",
        "lshdup/matching/sampled_join.py",
        "jobs, split, on_progress, least",
        "jobs, None, on_progress, least",
        "tests/cli/test_containment.py -k two_sides",
    ),
    Mutant(
        "samples: documents of --against that are gone have none, in silence",
        "lshdup/workspace/against/loading.py",
        "sample_of = partial(sides.sample, source)",
        "sample_of = partial(sides.sample, sides.sets)",
        "tests/cli/test_containment.py -k two_sides",
    ),
    Mutant(
        "samples: candidates are not verified",
        "lshdup/matching/sampled_join.py",
        "keep = scores.real >= threshold",
        "keep = scores.real >= 0",
        STORE,
    ),
    Mutant(
        "samples: on Spark, pairs that are met are not checked",
        "lshdup/spark/workers/samples.py",
        "met[checked] = common >= least[a]",
        "met[checked] = common >= 0",
        "tests/spark/test_worker_samples.py",
    ),
    Mutant(
        "samples: on Spark, a larger sample need not be free",
        "lshdup/spark/workers/samples.py",
        "met = np.flatnonzero(free[inside])",
        "met = np.flatnonzero(free[inside] | free[holder])",
        "tests/spark/test_worker_samples.py",
    ),
]
