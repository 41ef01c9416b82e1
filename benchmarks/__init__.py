"""The benchmark suite: `python -m benchmarks.run`; its README: `python -m benchmarks.report`."""
