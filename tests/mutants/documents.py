"""Faults of lshdup/documents."""

from tests.mutants import Mutant

FINDING = "tests/documents/test_documents.py"

MUTANTS = [
    Mutant(
        "finding: hidden files are documents",
        "lshdup/documents/finding.py",
        'if entry.name.startswith(b".") and not self.params.hidden:',
        'if entry.name.startswith(b"..") and not self.params.hidden:',
        f"{FINDING}::test_hidden_include_exclude",
    ),
    Mutant(
        "finding: links are followed without --follow",
        "lshdup/documents/finding.py",
        "elif link and not self.params.follow:",
        "elif link and is_folder:",
        f"{FINDING} -k links",
    ),
    Mutant(
        "finding: loops of links do not end",
        "lshdup/documents/finding.py",
        "                if identity in self._folders:\n                    continue\n",
        "",
        f"{FINDING} -k links",
    ),
    Mutant(
        "finding: a file as large as --max-bytes is too large",
        "lshdup/documents/finding.py",
        "np.flatnonzero(stats.sizes > params.max_bytes)",
        "np.flatnonzero(stats.sizes >= params.max_bytes)",
        f"{FINDING}::test_large_files_are_reported_not_cut",
    ),
    Mutant(
        "finding: hard links are one document",
        "lshdup/documents/finding.py",
        "            and os.path.realpath(named) == os.path.realpath(path)\n",
        "",
        FINDING,
    ),
    Mutant(
        "finding: the store is a folder like others",
        "lshdup/documents/finding.py",
        "_identity(name) == self._store:\n",
        "_identity(name) != _identity(name):\n",
        f"{FINDING}::test_pipes_sockets_and_the_store_are_left_out",
    ),
    Mutant(
        "finding: names with a dash look like options",
        "lshdup/documents/finding.py",
        'name = prefix + base if prefix or base[0] != dash else b"./" + base',
        "name = prefix + base if dash else base",
        FINDING,
    ),
    Mutant(
        "id lists: a name that stands twice is taken twice",
        "lshdup/documents/id_lists.py",
        "                    if name in found:",
        "                    if name in found and number < 0:",
        f"{FINDING}::test_id_lists",
    ),
    Mutant(
        "finding: arguments that are missing are no error",
        "lshdup/documents/finding.py",
        "if missing and not self._found:",
        "if missing and self._found:",
        FINDING,
    ),
    Mutant(
        "gitignore: a pattern that takes a file back comes too early",
        "lshdup/documents/gitignore.py",
        "for pattern in reversed(rules.patterns):",
        "for pattern in rules.patterns:",
        "tests/documents/test_walking.py -k git_ignores",
    ),
    Mutant(
        "gitignore: patterns for folders hold for files",
        "lshdup/documents/gitignore.py",
        "if (is_folder or not pattern.of_folders) and",
        "if True and",
        "tests/documents/test_walking.py -k git_ignores",
    ),
    Mutant(
        "--max-depth: one folder more is entered",
        "lshdup/documents/finding.py",
        "above.depth == self.params.max_depth",
        "above.depth - 1 == self.params.max_depth",
        "tests/documents/test_walking.py -k depth",
    ),
    Mutant(
        "csv: a row of another number of cells has a text",
        "lshdup/documents/readers/delimited.py",
        "if len(cells) != header.columns:",
        "if len(cells) < header.columns:",
        "tests/documents/test_delimited.py -k broken",
    ),
    Mutant(
        "csv: a quote that never closes takes the rows behind it along",
        "lshdup/documents/readers/delimited.py",
        "is_row = len(_split(row, header.delimiter)) == header.columns",
        "is_row = True",
        "tests/documents/test_delimited.py -k 'broken or bad_rows'",
    ),
    Mutant(
        "csv: the byte-order mark belongs to the first name",
        "lshdup/documents/readers/delimited.py",
        "bom = len(codecs.BOM_UTF8) * head.startswith(codecs.BOM_UTF8)",
        "bom = 0",
        "tests/documents/test_delimited.py -k byte_order",
    ),
    Mutant(
        "rewriting: a part of a row group is counted as if it were the first",
        "lshdup/documents/rewriting/rewrite.py",
        "table = change(table, starts[some] - at, documents[some])",
        "table = change(table, starts[some] - starts[some][0], documents[some])",
        "tests/documents/test_rewriting.py -k 'row_group or parquet'",
    ),
    Mutant(
        "rewriting: a disk without room is found out when it is full",
        "lshdup/documents/rewriting/targets.py",
        "if size > free and not",
        "if size < 0 and not",
        "tests/documents/test_rewriting.py -k no_room",
    ),
    Mutant(
        "cutting: a field begins where the one before it ends",
        "lshdup/documents/rewriting/cutting.py",
        "begin += len(text) + len(PART)",
        "begin += len(text)",
        "tests/documents/test_cutting.py",
    ),
]
