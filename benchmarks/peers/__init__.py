"""Scripts with other libraries, all on the same shingles.

    python -m benchmarks.peers.with_datasketch FOLDER THRESHOLD

prints the pairs of near-duplicates below the folder, `name TAB name`.
"""
