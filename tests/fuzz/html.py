"""Pages: bytes -> visible text. Mutated pages must give some text or a documented refusal, soon,
and always the same; well-formed ones what the parser of the reference sees.
"""

import signal
from contextlib import contextmanager

from lshdup.base.skipped import Reason
from lshdup.text.decoding import decode
from tests import reference
from tests.conftest import ROOT
from tests.fuzz import Tally, mutated

#: No page of some kilobytes takes longer than so many seconds.
PATIENCE = 5

INLINE = "a b i em span code u small strong".split()
BLOCKS = "div section article blockquote main aside footer".split()
UNSEEN = ("<!-- no > text -->", "<script>if (a<b) c('<p>')</script>", "<style>p {}</style>", "<br>")
REASONS = (None, Reason.BINARY, Reason.FORMAT, Reason.UNDECODABLE, Reason.NO_READER, Reason.SPOILT)
WORDS = "one two Größe 漢字 กำแพง &amp; &lt; &eacute; &#x4e00; &#0; &nbsp; a<b x_1 é".split()
PIECES = (
    b"<|>|</|/>|<!--|-->|<!|<![CDATA[|]]>|<?xml |?>|&|&#|&#xD800;|&#x110000;|&lt|<head>|</head>|<body hidden>|<body>|</body>|<script>|</script>|"
    b"<style>|</style>|<template>|</template>|<noscript>|</noscript>|<div hidden>|</div>|<p>|</p>|<table>|<tr>|<td>|</table>|<select>|<option>|"
    b"<textarea>|<title>|<plaintext>|<svg>|<math>|<frameset>|<script hidden>|<template hidden><script>|<html hidden>|<iframe>|<object>|<form>|<a>|"
    b"<b>|</b>|<br>|<!doctype html>|<meta charset=|utf-7|punycode|idna|hex|undefined|unicode_escape|utf-16|<!---->"
).split(b"|")
PIECES += [b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"<p " + b"a=b " * 30 + b">"]  # fmt: skip


def seeds():
    pages = [path.read_bytes() for path in sorted((ROOT / "sample_corpus" / "udhr").glob("*.html"))]
    return [page[:900] + b"\n" + page[-300:] for page in pages]


def well_formed(rng, depth=0):
    """A page whose text no two parsers disagree about."""
    parts = []
    for _ in range(rng.randrange(1, 5)):
        kind = rng.randrange(5)
        if kind < 2 or depth > 4:
            parts.append(" ".join(w for w in rng.choices(WORDS, k=4) if w not in ("a<b", "&#0;")))
        elif kind == 2:
            tag = rng.choice(INLINE[1:])  # no links: they do not nest
            parts.append(f"<{tag} title='x>y'>{' '.join(rng.choices(['in', 'line'], k=2))}</{tag}>")
        elif kind == 3:
            parts.append(rng.choice(UNSEEN))
        else:
            tag = rng.choice(BLOCKS)
            parts.append(f"<{tag}>{well_formed(rng, depth + 1)}</{tag}>")
    body = "".join(parts)
    head = "<!DOCTYPE html><html><head><title>no text</title></head>"
    return body if depth else f"{head}<body>{body}</body></html>"


@contextmanager
def impatient(seconds=PATIENCE):
    def late(*_):
        raise TimeoutError

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


class Html:
    """The target."""

    def __init__(self):
        self._seeds = [*seeds(), b"<html><body>", b"<!---->" * 40]

    def batch(self, rng, size=200):
        tally = Tally()
        for _ in range(size):
            if rng.randrange(4) == 0:
                self.compared(tally, well_formed(rng))
            else:
                page = mutated(rng, rng.choice(self._seeds), PIECES, (1, 2, 4, 8, 30))[:8000]
                self.survived(tally, page, rng.choice((b"a.html", b"a.txt")))
        return tally

    def compared(self, tally, page):
        tally.tried += 1
        tally.outcomes["compared"] += 1
        shown = decode(page.encode(), b"a.html").utf8.decode()
        found = reference.word_tokens(reference.normal_form(shown))
        expected = reference.word_tokens(reference.normal_form(reference.visible_text(page)))
        if found != expected:
            tally.found("other text", page, found, expected)

    def survived(self, tally, page, name):
        tally.tried += 1
        try:
            with impatient():
                # Guessing takes milliseconds, and is not what is looked for here.
                if b"\xff" in page and page[-1] % 8:
                    page = page.replace(b"\xff", b"")
                text, again = decode(page, name), decode(page, name)
        except TimeoutError:
            tally.found("takes too long", page)
            return
        except Exception as error:
            tally.found("exception", page, error)
            return
        tally.outcomes["text" if text.reason is None else str(text.reason)] += 1
        if text != again:
            tally.found("another text each time", page)
        if text.reason not in REASONS:
            tally.found("a reason that is not documented", page, text)
        try:
            text.utf8.decode("utf-8")
        except UnicodeDecodeError:
            tally.found("no UTF-8", page)
