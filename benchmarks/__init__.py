"""The benchmark suite: `python -m benchmarks.run`; what it says in the README: `python -m benchmarks.report`."""
