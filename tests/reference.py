"""The definitions again, slow and obvious, without code of lshdup: what all is held against."""

import hashlib
import html.parser
import os
import struct
import unicodedata
from collections import defaultdict
from functools import partial
from itertools import chain, combinations, product, takewhile
from pathlib import Path

MASK = (1 << 64) - 1
HAN = chain(
    range(0x2E80, 0x2FE0), range(0x3005, 0x3008), range(0x3021, 0x302A), range(0x3038, 0x303D),
    range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00), range(0x20000, 0x40000),
)  # fmt: skip
KANA = chain(
    range(0x3040, 0x3100), range(0x31F0, 0x3200), range(0xFF66, 0xFFA0), range(0x1AFF0, 0x1B170)
)
THAI_TO_MYANMAR = chain(
    range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800), range(0xA9E0, 0xAA00),
    range(0xAA60, 0xAA80), range(0x116D0, 0x11700),
)  # fmt: skip
REACH = {**dict.fromkeys(HAN, 1), **dict.fromkeys(KANA, 3), **dict.fromkeys(THAI_TO_MYANMAR, 5)}

# Default_Ignorable_Code_Point by its definition in Unicode: Other_Default_Ignorable_Code_Point and
# Variation_Selector of PropList.txt, and formats (Cf) without those that can be seen.
OTHER_IGNORABLE = frozenset(chain(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0), range(0xFFF0, 0xFFF9),
    (0xE0000,), range(0xE0002, 0xE0020), range(0xE0080, 0xE0100), range(0xE01F0, 0xE1000),
))  # fmt: skip
VARIATION_SELECTORS = frozenset(chain(
    (0x180B, 0x180C, 0x180D, 0x180F), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0)
))  # fmt: skip
VISIBLE_FORMATS = frozenset(chain(
    range(0xFFF9, 0xFFFC), range(0x13430, 0x13441),
    range(0x0600, 0x0606), (0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD),
))  # fmt: skip


# --- bytes -> text ---


class _Visible(html.parser.HTMLParser):
    BLOCKS = frozenset(
        "address article aside blockquote br caption center dd details dialog dir div dl dt "
        "fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu "
        "nav ol option p pre search section summary table tbody td tfoot th thead tr ul".split()
    )
    SKIPPED = frozenset("head script style template noscript".split())

    def __init__(self):
        super().__init__()
        self.skipping, self.parts = 0, []

    def handle_starttag(self, tag, attrs, change=1):
        self.skipping += change * (tag in self.SKIPPED)
        self.parts += ["\n"] * (tag in self.BLOCKS)

    def handle_endtag(self, tag):
        self.handle_starttag(tag, (), -1)

    def handle_data(self, data):
        if not self.skipping:
            self.parts.append(data)


def visible_text(page):
    parser = _Visible()
    parser.feed(page)
    parser.close()
    return "".join(parser.parts)


# --- text -> tokens -> shingle sets ---


def is_ignorable(c):
    if ord(c) in OTHER_IGNORABLE or ord(c) in VARIATION_SELECTORS:
        return True
    return unicodedata.category(c) == "Cf" and ord(c) not in VISIBLE_FORMATS


def rejoined(text, always=False):
    """The text without hyphens that break words at line ends, if enough lines end so."""
    made, broken, at = "", 0, 0
    while at < len(text):
        if text[at] in "-\u2010\u00ad":
            between, _, after = text[at + 1 :].partition("\n")
            after = after.lstrip(" \t")
            letters = [c.isalnum() and not c.isdecimal() for c in (text[at - 1 : at], after[:1])]
            if between in ("", "\r") and all(letters) and after[0].islower():
                broken, at = broken + 1, len(text) - len(after)
                continue
        made += text[at]
        at += 1
    lines = sum(bool(line.strip(" \t\r\f\v")) for line in text.split("\n"))
    return made if always or broken >= max(3, lines / 20) else text


def is_folded(c, fold):
    """Marks of Hebrew and Arabic that make no other letter; with "accents" also U+0300–036F. Not
    every Python knows those that Unicode 15 and 16 have added.
    """
    is_mark = unicodedata.category(c) == "Mn" and ord(c) not in (0x653, 0x654, 0x655)
    is_mark = is_mark and unicodedata.name(c, "").startswith(("HEBREW", "ARABIC"))
    is_mark = is_mark or c in "\u0897\U00010efd\U00010efe\U00010eff"
    return fold != "none" and (is_mark or (fold == "accents" and 0x300 <= ord(c) <= 0x36F))


def normal_form(text, normalize=True, keep_case=False, fold="none"):
    text = "".join(c for c in text if not is_ignorable(c) and not is_folded(c, fold))
    text = unicodedata.normalize("NFKC", text) if normalize else text
    text = text if keep_case else text.casefold()
    for c in set(text) if fold != "none" and normalize else ():
        parts = unicodedata.normalize("NFD", c)
        kept = "".join(part for part in parts if not is_folded(part, fold))
        text = text.replace(c, unicodedata.normalize("NFC", kept)) if kept != parts else text
    return text


def word_tokens(text, symbols=False):
    """Words; with `symbols`, every other character that can be seen as well."""
    tokens, kind = [], None
    for c in text:
        category = unicodedata.category(c)
        is_other = category[0] not in "LNZ" and category not in ("Cc", "Cf")
        before = kind
        if category[0] == "M":
            kind = before or "run"
        elif (symbols and c != "_" and is_other) or (category[0] in "LN" and ord(c) in REACH):
            kind = "alone"
        else:
            kind = "run" if category[0] in "LN" or c == "_" else None
        if before and (category[0] == "M" or before == kind == "run"):
            tokens[-1] += c
        elif kind:
            tokens.append(c)
    return tokens


def reached(tokens):
    """The tokens that each token counts for: itself, and in some scripts the next of its run."""
    reach = [REACH.get(ord(t[0]), 0) * (unicodedata.category(t[0])[0] in "LN") for t in tokens]
    found = []
    for at, token in enumerate(tokens):
        more = takewhile(lambda i: reach[i], range(at + 1, min(at + reach[at], len(tokens))))
        found.append((token, *(tokens[i] for i in more)))
    return found


def char_tokens(text):
    return list(" ".join(text.split()))


def term_tokens(text):
    """R1, on the normal form."""
    for c in ".,:;'":
        text = text.replace(c, "")
    return [word for word in text.split() if len(word) >= 3 and word != "the"]


symbol_tokens = partial(word_tokens, symbols=True)
TOKENS = {"word": word_tokens, "symbols": symbol_tokens, "char": char_tokens, "terms": term_tokens}


def mix64(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


PUBLIC = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)


def hash_numbers(secret=b""):
    """Seed of tokens, factor of shingles, step of repeats."""
    if not secret:
        return PUBLIC
    digest = hashlib.blake2b(secret, digest_size=32, person=b"lshdup shingles").digest()
    seed, factor, step, _ = struct.unpack("<4Q", digest)
    return seed, factor | 1, step | 1


def token_hash(token, seed=PUBLIC[0]):
    data = token.encode()
    h = seed
    for at in range(0, len(data), 8):
        h = mix64(h ^ int.from_bytes(data[at : at + 8], "little"))
    return h


def shingle_list(
    text, tokens="word", k=3, normalize=True, keep_case=False, hash_="mix64", secret=b"",
    fold="none",
):  # fmt: skip
    kind, tokens = tokens, TOKENS[tokens](normal_form(text, normalize, keep_case, fold))
    if hash_ == "poly31":
        values, factor, mask = [ord(t) for t in tokens], 31, (1 << 32) - 1
    else:
        seed, factor, _ = hash_numbers(secret)
        values, mask = [], MASK
        for each in reached(tokens) if kind in ("word", "symbols") else zip(tokens):
            values.append(token_hash(each[0], seed))
            for token in each[1:]:
                values[-1] = mix64(values[-1] * factor + token_hash(token, seed) & MASK)
    if not values:
        return []
    k = min(k, len(values))
    shingles = []
    for at in range(len(values) - k + 1):
        h = values[at]
        for value in values[at + 1 : at + k]:
            h = h * factor + value
            h = mix64(h & MASK) if secret else h
        shingles.append(h & mask)
    return shingles


def sequence_fingerprint(words, length, seed, factor, rounds):
    """Four lanes take words in turn, as long as there are four; the first takes the rest."""
    lane = 0x9E3779B97F4A7C15
    lanes = [seed, (seed + lane) & MASK, (seed - lane) & MASK, seed ^ MASK]
    for at, word in enumerate(words):
        which = at % 4 if at < 4 * rounds else 0
        product = (word ^ seed) * factor
        x = lanes[which] ^ (product - (product >> 64)) & MASK
        lanes[which] = ((x << 29 | x >> 35) & MASK) * factor & MASK
    h = lanes[0] ^ length
    for other in lanes[1:]:
        h = mix64(h) ^ other
    return max(mix64(h), 1)


def text_fingerprint(
    text, *more, sealed="", tokens="word", normalize=True, keep_case=False, secret=b""
):
    """Of a text, or of its parts: between those with tokens stands a token of two bytes.

    sealed : what counts beside the parts, if they have tokens.
    """
    seed, factor, _ = hash_numbers(secret)
    hashes = []
    for kind, part in [*((0, part) for part in (text, *more)), (1, sealed)]:
        found = TOKENS[tokens](normal_form(part, normalize, keep_case))
        if found and (hashes or not kind):
            hashes += [mix64(seed ^ (0xFF | kind << 8))] if hashes else []
            hashes += [token_hash(token, seed) for token in found]
    n = len(hashes)
    return sequence_fingerprint(hashes, n, seed, factor, n // 4) if n else 0


def byte_fingerprint(data, secret=b""):
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    seed, factor, _ = hash_numbers(secret)
    return sequence_fingerprint(words, len(data), seed, factor, rounds=len(data) // 32)


def as_bag(shingles, secret=b""):
    seen, elements, step = defaultdict(int), set(), hash_numbers(secret)[2]
    for s in shingles:
        elements.add(mix64((s + seen[s] * step) & MASK) if seen[s] else s)
        seen[s] += 1
    return elements


# --- similarity ---


def jaccard(a, b):
    common = len(a & b)
    return common / (len(a) + len(b) - common) if a or b else 0.0


def all_pairs(sets, threshold):
    """(i, j, similarity) of all pairs at or above the threshold; empty sets have none."""
    pairs = combinations([i for i, each in enumerate(sets) if each], 2)
    scored = ((i, j, jaccard(sets[i], sets[j])) for i, j in pairs)
    return [row for row in scored if row[2] >= threshold]


def all_insides(sets, threshold):
    """(inside, holder, containment, similarity) of all pairs with at least this containment."""
    found = []
    for i, j in combinations(range(len(sets)), 2):
        inside, holder = (i, j) if len(sets[i]) <= len(sets[j]) else (j, i)
        share = len(sets[i] & sets[j]) / max(len(sets[inside]), 1)
        if sets[inside] and share >= threshold:
            found.append((inside, holder, share, jaccard(sets[i], sets[j])))
    return sorted(found)


def folder_sets(folder):
    """{name: set of word 3-shingles, as tuples} of a folder of texts in UTF-8 or Latin-1."""
    sets = {}
    for at, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".")]
        for name in (os.path.join(at, file) for file in files):
            data = Path(name).read_bytes()
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                text = data.decode("cp1252")
            text = visible_text(text) if name.endswith(".html") else text
            tokens = reached(word_tokens(normal_form(text)))
            k = min(3, len(tokens))
            sets[name] = {tuple(tokens[i : i + k]) for i in range(len(tokens) - k + 1) if tokens}
    return sets


# --- signatures ---


def fast_signature(elements, perms, salt, offsets, factors):
    """Fast Similarity Sketching by its definition: rows filled round by round, then row by row."""
    if not elements:
        return [0xFFFFFFFF] * perms
    best = [None] * perms
    for r in range(2 * perms):
        for x in elements:
            z = mix64(x ^ salt)
            if r:
                z = (z ^ offsets[r]) * factors[r] & MASK
                z = (z ^ (z >> 32)) * 0xBF58476D1CE4E5B9 & MASK
            if r < perms:
                row, value = (z >> 32) * perms >> 32, (r, z & 0xFFFFFFFF)
            else:
                row, value = r - perms, (r, z >> 32)
            if best[row] is None or value < best[row]:
                best[row] = value
    return [value for _, value in best]


def classic_signature(elements, salt, a, b):
    p = (1 << 31) - 1
    if not elements:
        return [0xFFFFFFFF] * len(a)
    mixed = [mix64(x ^ salt) >> 33 for x in elements]
    return [min((i * x + j) % p for x in mixed) for i, j in zip(a, b, strict=True)]


def linear_signatures(sets, prime, a, b):
    numbers = {}
    for each in sets:
        for x in sorted(each):
            numbers.setdefault(x, len(numbers))

    def least(each, i, j):
        return min(((i * numbers[x] + j) % prime for x in each), default=0xFFFFFFFF)

    return [list(map(least, [each] * len(a), a, b)) for each in sets]


# --- bands ---


def buckets(signatures, bands, rows):
    """Documents with equal rows, for each band."""
    found = defaultdict(list)
    for band, (document, signature) in product(range(bands), enumerate(signatures)):
        found[band, *signature[band * rows : (band + 1) * rows]].append(document)
    return list(found.values())


def candidates(signatures, bands, rows):
    return {pair for each in buckets(signatures, bands, rows) for pair in combinations(each, 2)}


def path_key(name):
    """The rank of a path for --keep shortest-path, before the byte order: small is preferred."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return sum(map(is_named_as_copy, parts)), len(parts), len(name.removeprefix("./"))


def is_named_as_copy(part):
    """Whether a name is one of a copy, or of a folder to park files, in English."""
    part = part.lower()
    whole = part.rstrip("0123456789")
    if whole.endswith((".bak", ".old", ".orig", ".sav", ".save", ".tmp", ".backup", ".copy", "~")):
        return True
    stem, numbered = part, False
    for _ in range(3):
        head, bracket, number = stem.removesuffix(")").rpartition("(")
        if bracket and stem.endswith(")") and number.isdigit() and len(number) < 4:
            stem, numbered = head.rstrip(" "), True
        if stem.endswith(("copy", "backup", "old", "tmp", "temp", "bak")) or numbered:
            return True
        stem = stem.rpartition(".")[0]
    return part in ("desktop", "downloads", "new folder", "untitled folder")
