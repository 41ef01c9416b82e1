"""Faults of lshdup/text."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "text: a mark of UTF-8 stays in the text",
        "lshdup/text/decoding.py",
        'utf8 = data.decode(codec).removeprefix("\\ufeff").encode("utf-8")',
        'utf8 = data.decode(codec).encode("utf-8")',
        "tests/documents/test_documents.py::test_a_mark_is_no_text_where_the_encoding_is_forced_either",
    ),
    Mutant(
        "text: the charset is looked for in 512 bytes",
        "lshdup/text/decoding.py",
        "html.CHARSET.search(data[:2048])",
        "html.CHARSET.search(data[:512])",
        "tests/documents/test_documents.py tests/text/test_encodings.py -k 'charset or declare'",
    ),
    Mutant(
        "text: a declared encoding is not asked",
        "lshdup/text/decoding.py",
        'if looks_like_html(data, path or b"") and (declared',
        "if not data and (declared",
        "tests/documents/test_documents.py tests/text/test_encodings.py -k 'charset or declare'",
    ),
    Mutant(
        "text: NUL anywhere makes a file binary",
        "lshdup/text/decoding.py",
        'if b"\\0" in data[: kernels.BINARY_WINDOW]:',
        'if b"\\0" in data:',
        "tests/documents/test_documents.py::test_nul_far_behind_the_beginning_makes_no_binary_page",
    ),
    Mutant(
        "text: packed twice is a text",
        "lshdup/text/decoding.py",
        "    if compression.is_packed(inner):\n",
        "    if not inner:\n",
        "tests/utils/test_compression.py",
    ),
    Mutant(
        "text: the bytes that are not UTF-8 are counted for one",
        "lshdup/text/decoding.py",
        'count = f"{invalid:,} bytes are" if invalid > 1 else "1 byte is"',
        'count = "1 byte is"',
        "tests/text/test_encodings.py",
    ),
]
