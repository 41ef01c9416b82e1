"""Documents in crawls and wiki dumps."""

import bz2
import gzip
import os
import zlib

import pytest

from lshdup.base.skipped import Reason
from tests.documents import by_inner_names, listed, reasons
from tests.documents import warc_record as record
from tests.documents import wiki_dump as dump

PAGE = "<html><body><p>{}</body></html>"


def write_warc(path, pages, *, packed=True, fields=()):
    """Write a crawl: a request and a response for each page, by URI; each record packed alone."""
    fields = [("Content-Type", "text/html"), *fields]
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    records = [record("warcinfo", "", b"software: test\r\n")]
    for uri, body in pages:
        records.append(record("request", uri, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
        block = f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body
        records.append(record("response", uri, block))
    path.write_bytes(b"".join(gzip.compress(each) if packed else each for each in records))


PAGES = [(f"http://x.org/{n}?a=b//c", PAGE.format(f"page {n}").encode()) for n in range(20)]


@pytest.mark.parametrize("packed", ["", "by record", "as one stream"])
def test_responses_of_a_crawl_are_documents(tmp_path, packed):
    path = tmp_path / ("x.warc.gz" if packed else "x.warc")
    write_warc(path, PAGES, packed=packed == "by record")
    if packed == "as one stream":
        path.write_bytes(gzip.compress(path.read_bytes()))
    found, skipped = listed(path)
    assert by_inner_names(path, found) == {uri.encode(): body for uri, body in PAGES}
    assert not skipped


def chunked(body):
    parts = [body[at : at + 7] for at in range(0, len(body), 7)]
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


BODY = PAGE.format("a body").encode()
PACKED_BODY = gzip.compress(BODY, mtime=0)


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ([("Transfer-Encoding", "chunked")], chunked(BODY)),
        ([("Transfer-Encoding", "chunked")], BODY),  # a crawler that has joined the chunks
        ([("Content-Encoding", "deflate")], zlib.compress(BODY)),
        ([("Content-Encoding", "deflate")], zlib.compress(BODY)[2:-4]),
        ([("Content-Encoding", "br")], BODY),
        ([("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")], chunked(PACKED_BODY)),
    ],
    ids=["chunked", "joined", "deflate", "deflate without its head", "br", "gzip in chunks"],
)
def test_bodies_are_unpacked(tmp_path, fields, body):
    """But for gzip: what is packed by it is read like a packed file."""
    write_warc(tmp_path / "x.warc.gz", [("http://x/", body)], fields=fields)
    (found,) = listed(tmp_path / "x.warc.gz")[0].values()
    assert (gzip.decompress(found) if fields[0][1] == "gzip" else found) == BODY


def test_a_body_that_cannot_be_unpacked_is_skipped(tmp_path):
    bomb = zlib.compress(bytes(100_001))
    cases = ("br", b"\xff\x0f", Reason.FORMAT), ("deflate", bomb, Reason.TOO_LARGE)
    for encoding, body, reason in cases:
        path, fields = tmp_path / "x.warc", [("Content-Encoding", encoding)]
        write_warc(path, [("http://x/", body)], fields=fields)
        found, skipped = listed(path, max_bytes=100_000)
        assert not any(found.values())
        assert [each[1] for each in skipped] == [reason]


def test_texts_of_a_crawl_are_documents(tmp_path):
    path = tmp_path / "x.warc.wet.gz"
    texts = (record("conversion", f"http://x/{n}", f"the text of {n}".encode()) for n in "abca")
    path.write_bytes(b"".join(map(gzip.compress, texts)))
    found = by_inner_names(path, listed(path)[0])
    assert sorted(found) == [b"http://x/a", b"http://x/a:2", b"http://x/b", b"http://x/c"]
    assert found[b"http://x/a:2"] == b"the text of a"


@pytest.mark.parametrize("cut", [5, 300, 1000])
def test_a_crawl_that_is_cut_off_is_read_up_to_there(tmp_path, cut):
    path = tmp_path / "x.warc"
    write_warc(path, PAGES, packed=False)
    path.write_bytes(path.read_bytes()[:-cut])
    found, skipped = listed(path)
    assert len(PAGES) - 3 <= len(found) < len(PAGES)
    assert Reason.DAMAGED in reasons(skipped).values()


def test_lies_in_headers_do_no_harm(tmp_path):
    fields = b"WARC-Type: response\r\nWARC-Target-URI: http://x/\r\n"
    lies = [b"Content-Length: 99999999999999999999", b"Content-Length: -5", b"X: y", b"x" * 100_000]
    for lie in lies:
        path = tmp_path / "x.warc"
        path.write_bytes(b"WARC/1.0\r\n" + fields + lie + b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx")
        found, skipped = listed(path)
        assert not found
        assert reasons(skipped) == {os.fsencode(path): Reason.DAMAGED}


# --- wiki dumps -----------------------------------------------------------------------------------

ROSE = ("Rose &amp; Co", ["old", "a &lt;b&gt;rose&lt;/b&gt; Größe"])
WIKI = [ROSE, ("Talk:X", [""]), ("A/B", ["x"])]


def test_pages_of_a_wiki_are_documents(tmp_path):
    for ending, pack in (("", bytes), (".bz2", bz2.compress), (".gz", gzip.compress)):
        path = tmp_path / f"dump.xml{ending}"
        path.write_bytes(pack(dump(WIKI)))
        found, skipped = listed(path)
        assert sorted(found.values()) == [b"", "a <b>rose</b> Größe".encode(), b"x"]
        assert not skipped
    assert len(listed(tmp_path, archives=True)[0]) == 9
    assert len(listed(tmp_path)[0]) == 3


LAUGHS = """<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>"""


def test_entities_are_refused(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text("<a><page><title>t</title></page></a>", "utf-8")
    assert list(listed(path)[0]) == [os.fsencode(path)]  # no dump
    path.write_bytes(dump([("a", ["&c;"])], LAUGHS))
    found, skipped = listed(path)
    assert not found
    assert "entities" in skipped[0].detail


def test_a_title_is_as_long_as_a_name_may_be(tmp_path):
    """One that is longer is cut nowhere: two could get the same name."""
    path, longest = tmp_path / "x.xml", 1 << 16
    path.write_bytes(dump([("a" * longest, ["x"]), ("b" * longest + "&amp;", ["y"])]))
    found, skipped = listed(path)
    assert by_inner_names(path, found) == {b"a" * longest: b"x"}
    assert [each.detail for each in skipped] == [f"a name of more than {longest} bytes"]


def test_a_dump_that_is_cut_off_is_read_up_to_there(tmp_path):
    path = tmp_path / "x.xml"
    path.write_bytes(dump([(f"t{n}", [f"text {n}"]) for n in range(9)])[:-60])
    found, skipped = listed(path)
    assert len(found) == 8
    assert list(reasons(skipped).values()) == [Reason.DAMAGED]
