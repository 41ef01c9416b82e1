"""Faults of lshdup/text and lshdup/shingling, and of kernels that cut texts into tokens."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "encodings: the charset of a page is looked for in 512 bytes",
        "lshdup/text/decoding.py",
        "html.CHARSET.search(data[:2048])",
        "html.CHARSET.search(data[:512])",
        "tests/text/test_encodings.py -k declaration",
    ),
    Mutant(
        "encodings: the charset of a page is looked for in its text",
        "lshdup/text/decoding.py",
        "html.CHARSET.search(data[:2048])",
        "html.CHARSET.search(data)",
        "tests/text/test_encodings.py -k declaration",
    ),
    Mutant(
        "encodings: the detected encoding is not reported",
        "lshdup/text/decoding.py",
        "return _decode_as(data, name, codec, detected=codec)",
        "return _decode_as(data, name, codec)",
        "tests/text/test_encodings.py tests/documents/test_documents.py -k 'declaration or detected'",
    ),
    Mutant(
        "store: an artifact of another Unicode version is accepted",
        "lshdup/store/store.py",
        "if made != present:",
        "if made == []:",
        "tests/store/test_unicode_version.py",
    ),
    Mutant(
        "collection: the identity is without the Unicode version",
        "lshdup/collection/collection.py",
        "definitions = [self.shingle.to_json(), unicodedata.unidata_version]",
        "definitions = [self.shingle.to_json()]",
        "tests/store/test_unicode_version.py",
    ),
    Mutant(
        "office: a document that takes too long has crashed its reader",
        "lshdup/text/office_processes.py",
        "watch = threading.Timer(seconds, self._kill_late)",
        "watch = threading.Timer(seconds, self._process.kill)",
        "tests/text/test_office.py -k 'matter and stops'",
    ),
    Mutant(
        "symbols: format characters are tokens",
        "lshdup/shingling/char_table.py",
        '_INVISIBLE = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf"))',
        '_INVISIBLE = frozenset(("Zs", "Zl", "Zp", "Cc"))',
        "tests/shingling/test_symbols.py",
    ),
    Mutant(
        "symbols: a tilde in ASCII text is no token",
        "lshdup/kernels/blocks.py",
        "within(document, i, 0, 33, 94)",
        "within(document, i, 0, 33, 93)",
        "tests/shingling/test_symbols.py",
    ),
    Mutant(
        "symbols: no token ends between two words of 64 bits",
        "lshdup/kernels/blocks.py",
        "last_in = (inside >> (used - _1)) & _1",
        "last_in = _0",
        "tests/shingling/test_symbols.py",
    ),
    Mutant(
        "words: a run goes on over the border of 64 bytes",
        "lshdup/kernels/blocks.py",
        "last_join = (joins >> (used - _1)) & _1",
        "last_join = _0",
        "tests/shingling/test_text.py",
    ),
    Mutant(
        "blocks: the leading byte of a character is enough",
        "lshdup/kernels/blocks.py",
        "missing = wanted & ~tails",
        "missing = _0",
        "tests/shingling/test_text.py::test_only_utf8_is_read_as_utf8",
    ),
    Mutant(
        "blocks: a character of three bytes may leave its block",
        "lshdup/kernels/blocks.py",
        "leads = (_ONES >> (_64 - used)) >> _2",
        "leads = _ONES >> (_64 - used)",
        "tests/shingling/test_text.py",
    ),
    Mutant(
        "tokens: a character that becomes several stands for the first only",
        "lshdup/kernels/text.py",
        "for byte in range(o, end):",
        "for byte in range(o, o + _ONE):",
        "tests/report/test_show.py -k tokens_are_where tests/shingling/test_symbols.py",
    ),
    Mutant(
        "filter: a shingle is common from one document fewer on",
        "lshdup/shingling/shingle_filter.py",
        "return max(2, math.floor(most) + 1)",
        "return max(2, math.floor(most))",
        "tests/shingling/test_shingle_filter.py",
    ),
]
