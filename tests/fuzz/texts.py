"""Texts: bytes -> shingle sets, against the slow definitions of tests/reference.py, for all kinds
of tokens and all options.

Each text is tried three times: alone in the kernel between fences, as part of a batch, and as part
of the same batch in another order.
"""

import codecs
import functools
import re

import numpy as np

from lshdup.base.params import ShingleParams
from lshdup.base.skipped import Reason
from lshdup.kernels import flags as flag_kernels
from lshdup.kernels import text as kernels
from lshdup.shingling.shingler import Shingler
from lshdup.text.office_types import recognize_file_type
from lshdup.text.text_batch import TextBatch
from tests import reference
from tests.conftest import ROOT
from tests.fuzz import Tally, mutated
from tests.fuzz.fences import run_fenced

BATCH = 2000
HEADER = re.compile(rb"[A-Za-z0-9_-]{1,75}:|From ")  # how a mail may begin

#: What has gone wrong in somebody's program before: marks of several classes, Maybe characters,
#: jamo, expansions, unspaced scripts, blanks.
SPICY = (
    "aZ9_ \t\n\x0b\x1c\x85\u00a0\u2003\u2028.,:;'-the\u00df\u0130\u0131\u01c5\ufb01\u2126\u212b\u00b2\u2460\ufdfa\u0300\u0301\u0316\u0323"
    "\u0327\u0345\u0390\u03c2\u1fb7\u05b0\u05bc\u064b\u0651\u0654\u0921\u093c\u094d\u0d46\u0d3e\u0d57\u0e01\u0e33\u0e48\u0e40\u0eb3\u1780"
    "\u17d2\u1000\u1039\u3042\u3099\u309a\u30ab\uff76\uff9e\u30fc\u6f22\u3005\u3007\u1100\u1161\u11a8\uac00\uac01\u0344\u0f73\u00b4\u1fbd"
    "\u1e9b\u0958\u200b\u200d\ufeff\ufffe\uffff\ufffd\x00\x7f\u00ad\u034f\U0001d400\U0001f600\U0002f800\U00020000\U0002a6df\U0002a6e0\ue000"
    "\U000e0100\U000e0001\U0001109a\U000110ba\u0378\U0010ffff\U0003ffff\U00040000"
)
WORDS = "the The a an of and x_1 __ 9 ab abc abcdefgh abcdefghi 12345678901234567 don't U.S. e-mail ÆØÅ größe straße ΣΊΣΥΦΟΣ ﬁne".split()
BLOCKS = [(0x80, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x800), (0x900, 0xE00), (0xE00, 0x1000), (0x1000, 0x1200),
          (0x1780, 0x1800), (0x1E00, 0x2000), (0x2000, 0x2E00), (0x3000, 0x3400), (0x4E00, 0x5000), (0xA000, 0xAC00), (0xAC00, 0xD800),
          (0xF900, 0x10000), (0x10000, 0x11000), (0x11000, 0x12000), (0x1D000, 0x1F000), (0x2F800, 0x2FA20), (0xE0000, 0xE0200)]  # fmt: skip
JUNK = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc0\xaf", b"\xc1\x81", b"\xe0\x80\xaf", b"\xe0\x9f\xbf", b"\xf4\x90\x80\x80",
        b"\xf0\x8f\xbf\xbf", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"\xbf\xbf", b"\xf8\x88\x80\x80\x80"]  # fmt: skip
PIECES = [*JUNK, *(c.encode() for c in SPICY)]
BOMS = [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE]  # fmt: skip


@functools.cache
def seeds():
    """Pieces of real texts in many scripts."""
    found = []
    for path in sorted((ROOT / "sample_corpus" / "udhr").glob("*.txt"))[::3]:
        text = path.read_text("utf-8", "replace")
        found += [text[at : at + 40] for at in range(200, 1400, 300)]
    return found


def some_text(rng):
    """A short string of any kind; no lone surrogates."""
    kind = rng.randrange(64)
    if kind == 63:
        return tight(rng)
    kind %= 8
    size = rng.choice((0, 1, 2, 3, 5, 8, 12, 20, 30))
    if kind <= 1:
        return "".join(rng.choices(SPICY, k=size))
    if kind == 2:
        return "".join(map(chr, rng.choices(range(128), k=2 * size)))
    if kind == 3:
        return " ".join(rng.choices(WORDS, k=size // 2 + 1))
    if kind == 4:
        low, high = rng.choice(BLOCKS)
        return "".join(chr(rng.randrange(low, high)) for _ in range(size))
    if kind == 5:
        points = [rng.randrange(0x110000 - 0x800) for _ in range(size)]
        return "".join(chr(c if c < 0xD800 else c + 0x800) for c in points)
    if kind == 6:
        return rng.choice(seeds())
    return rng.choice(SPICY) * size + rng.choice(SPICY)


def tight(rng):
    """What case folding makes about twice as long, which is what there is room for."""
    grows = rng.choice(("\u0390", "\u1fb7", "\ufb03", "\ufdfa"))
    n = rng.randrange(40, 150)
    rest = "a" * rng.randrange(2 * n) + rng.choice(("\u0905", "\U00020000", "b", "\u00e9"))
    return "\u0149" * rng.randrange(4) + grows * n + rest


def some_bytes(rng, corpus):
    data = some_text(rng).encode()
    kind = rng.randrange(10)
    if kind < 3:
        other = [rng.choice(corpus)] if corpus else []
        return mutated(rng, other[0] if other and kind == 0 else data, [*PIECES, *other])
    if kind == 3:
        return rng.choice(BOMS) + data
    if kind == 4:
        codecs_ = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
        bom, codec = rng.choice(list(zip(BOMS[1:], codecs_, strict=True)))
        made = bom + data.decode().encode(codec)
        return mutated(rng, made, JUNK) if rng.randrange(2) else made
    return data


def some_params(rng):
    tokens = rng.choice(("word", "word", "symbols", "symbols", "char", "terms"))
    hash_ = "poly31" if tokens == "char" and rng.randrange(3) == 0 else "mix64"
    secret = rng.randbytes(9) if hash_ == "mix64" and rng.randrange(3) == 0 else b""
    flags = {name: rng.randrange(4) == 0 for name in ("bag", "keep_case", "join_hyphens")}
    k, normalize = rng.choice((0, 1, 2, 3, 5, 40)), rng.randrange(4) > 0
    fold = rng.choice(("none", "none", "marks", "accents")) if normalize else "none"
    return ShingleParams(
        tokens, k, normalize=normalize, fold=fold, hash=hash_, secret=secret, **flags
    )


def expected_set(text, params):
    options = (params.tokens, params.k, params.normalize, params.keep_case, params.hash)
    text = text if params.tokens == "terms" else reference.rejoined(text, params.join_hyphens)
    shingles = reference.shingle_list(text, *options, params.secret, params.fold)
    return sorted(reference.as_bag(shingles, params.secret) if params.bag else set(shingles))


#: What `inspect` takes for a word that is broken at the end of a line.
BREAK = re.compile(
    rb"(?:(?<=[A-Za-z\x80-\xff])-|\xe2\x80\x90|\xc2\xad)\r?\n[ \t]*(?=[a-z\x80-\xff])"
)

#: How a file begins that is no text.
PACKED = (b"PK\x03\x04", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")
FORMATS = (*PACKED, b"%PDF-", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf")


def decoded(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


class Texts:
    """The target, with some of the texts of the batches before."""

    def __init__(self):
        self.corpus = []

    def batch(self, rng, size=BATCH):
        params = some_params(rng)
        return self.compared(rng, [some_bytes(rng, self.corpus) for _ in range(size)], params)

    def compared(self, rng, datas, params):
        tally = Tally()
        shingler = Shingler(params)
        batch = TextBatch.of(range(len(datas)), datas)
        flags = np.zeros(len(datas), np.uint8)
        flag_kernels.inspect(batch.text, batch.starts, batch.lengths, flags)
        sets, outcomes, whole = run_fenced(shingler, batch, flags)
        if not whole:
            tally.found("memory before an array was written", params, datas)
        texts = [decoded(data) for data in datas]
        valid = [i for i, text in enumerate(texts) if text is not None]
        expected = {i: expected_set(texts[i], params) for i in valid}
        trials = zip(datas, texts, outcomes.tolist(), strict=True)
        for i, (data, text, outcome) in enumerate(trials):
            tally.tried += 1
            nul, high = b"\0" in data[:8192], not data.isascii()
            markup = data.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\n\r\x0b\x0c").startswith(b"<")
            header = bool(HEADER.match(data))
            right = nul * flag_kernels.HAS_NUL + high * flag_kernels.HAS_HIGH
            right += markup * flag_kernels.STARTS_MARKUP + header * flag_kernels.STARTS_HEADER
            breaks, lines = len(BREAK.findall(data)), len(re.findall(rb"\S.*", data))
            right += (breaks > 0) * flag_kernels.BREAKS_WORD
            right += (breaks >= max(3, lines / 20)) * flag_kernels.BREAKS_WORDS
            if flags[i] != right:
                tally.found("other flags", data, int(flags[i]))
            if outcome == (kernels.DONE if text is None else kernels.NOT_UTF8):
                tally.found("UTF-8 or not", params, data, outcome)
            elif flags[i] & (
                flag_kernels.BREAKS_WORD if params.join_hyphens else flag_kernels.BREAKS_WORDS
            ):
                pass  # It is decoded; `_all_ways` compares its set.
            elif outcome == kernels.DONE and sets[i].tolist() != expected[i]:
                tally.found("other set", params, data, sets[i].tolist(), expected[i])
            tally.outcomes[("set", "not UTF-8", "to normalise")[outcome]] += 1
        self.corpus = [*self.corpus, *(datas[i] for i in valid[::16])][-20_000:]
        self._all_ways(rng, tally, shingler, [(datas[i], expected[i]) for i in valid])
        self._from_bytes(rng, tally, shingler, datas)
        return tally

    def _all_ways(self, rng, tally, shingler, expected):
        """Normalised where needed; in another order, cut elsewhere."""
        for _ in range(2):
            found = shingler.shingle_texts([text for text, _ in expected])
            for (text, right), each in zip(expected, found, strict=True):
                if each.tolist() != right:
                    what = "other set in a batch"
                    tally.found(what, shingler.params, text, each.tolist(), right)
            rng.shuffle(expected)
            expected = expected[: rng.randrange(len(expected) + 1)]

    def _from_bytes(self, rng, tally, shingler, datas):
        """The whole way, with refusals; of what has to be guessed, which takes milliseconds, a few
        only. Nothing that needs a reader, and nothing with a mark of its encoding.
        """
        texts = [data for data in datas if not (recognize_file_type(data) or _is_markup(data))]
        texts = [data for data in texts if not data.startswith(tuple(BOMS))]
        rng.shuffle(texts)
        known = [data for data in texts if decoded(data) is not None][: -(-len(texts) // 4)]
        tried = known + [data for data in texts if decoded(data) is None][:2]
        made = shingler.shingle(TextBatch.of(range(len(tried)), tried))
        refused = {index: reason for index, reason, _ in made.skipped}
        guessed = dict(made.guesses)
        found = dict(zip(made.indices.tolist(), made.sets.sort(), strict=True))
        for i, data in enumerate(tried):
            right = Reason.FORMAT if data.startswith(FORMATS) else None
            right = right or (Reason.BINARY if b"\0" in data[:8192] else None)
            if right is not None:
                tally.outcomes[str(right)] += 1
                if refused.get(i) != right:
                    tally.found("should be refused", data, right, refused.get(i))
            elif i >= len(known):
                if i not in refused and i not in guessed:
                    tally.found("taken for UTF-8", data)
            elif i not in found or found[i].tolist() != expected_set(
                decoded(data), shingler.params
            ):
                tally.found("other set of bytes", shingler.params, data, refused.get(i))


def _is_markup(data):
    return data.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<") or b"<" in data[:200]
