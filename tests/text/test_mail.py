"""Mails: recognised by content, the text that a person reads in them, and mails that are not."""

import base64
import contextlib
import email
import email.header
import email.policy
import quopri
import random
import time
from email.message import EmailMessage
from itertools import product

import pytest

from lshdup.base import mbox
from lshdup.base.forms import Form, split_parts, visible_text
from lshdup.base.params import FormatLimits, ShingleParams
from lshdup.base.skipped import Reason
from lshdup.text import html, mail
from lshdup.text import office_processes as processes
from lshdup.text.decoding import decode, decode_record
from lshdup.text.mail import HEADER_WINDOW, MailRules, is_mail, mail_form, read_mail
from tests.conftest import WHOLE, part

#: Parameters by which every document that begins with mail headers is a mail.
EVERY_MAIL = ShingleParams(mail=True)

HEAD = b"From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: a question\n"
ONE = b"From ann Thu Aug 22 12:36:23 2002\n" + HEAD + b"\nbody\n"


def text_of(data, **rules):
    return visible_text(read_mail(data, MailRules(**rules))).decode()


def words(data, **rules):
    return text_of(data, **rules).split()


def made(subject, body, *attached, page=None):
    """Return a mail with a subject, a body, the same as a page, and what is attached and how."""
    message = EmailMessage()
    message["Subject"] = subject
    message.set_content(body)
    if page is not None:
        message.add_alternative(page, subtype="html")
    for content, how in attached:
        message.add_attachment(content, **how)
    return message


ATTACHED = (b"ATTACHED", {"maintype": "application", "subtype": "x"})


# --- recognised ---------------------------------------------------------------------------------

MAIL_HEADS = {
    "two fields": b"Subject: x\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n\nbody",
    "CRLF": b"From: a@b.c\r\nTo: d@e.f\r\n\r\nbody\r\n", "no body": HEAD.rstrip(),
    "continued": b"Received: from a\n\tby b\n  for c\nMessage-ID: <1@b>\n\nbody",
    "mbox": b"From ann@example.org  Thu Aug 22 12:36:23 2002\n" + HEAD + b"\nbody",
    "mbox without a date": b"From ann\n" + HEAD + b"\nbody",
    "quoted From": b"From ann Thu Aug 22 12:36:23 2002\n>From bob\n" + HEAD + b"\nbody",
    "news": b"Path: a!b!c\nNewsgroups: comp.lang.misc\nLines: 3\n\nbody",
    "Enron": b"Message-ID: <1.JavaMail.evans@thyme>\nDate: Mon, 14 May 2001\nX-From: A\n\nbody",
    "capitals": b"FROM: a@b.c\nSUBJECT: x\n\nbody",
    "small letters": b"from: a@b.c\nmessage-id: <1@b>\nto: c@d.e\n\nbody",
    "another charset": HEAD + b"X-Name: \xe4\xf6\n\n\xe4\xf6\xfc",
    "an empty field": b"From: a\nTo:\nSubject:\n\nbody",
    "a long header": b"X-Many: " + b"x" * (2 << 20) + b"\n" + HEAD,
    "a long known header": b"From: a@b.c\nSubject: " + b"x" * (3 << 20) + b"\nTo: b@c.d\n\nbody",
}  # fmt: skip
NO_MAILS = {
    "empty": b"", "one field": b"Subject: x\nNote: y\n\nbody",
    "prose": b"Note: this is a text.\nIt goes on.\n\nFrom: here\nTo: there\n",
    "twice the same": b"Subject: x\nSubject: y\n\nbody", "redirections": b"from: /old\nto: /new\n",
    "a line between": b"From: a\nTo: b\nhello bob\nSubject: c\n\nbody",
    "not at the beginning": b"\n" + HEAD + b"\nbody", "no empty line": HEAD + b"body at once\n",
    "YAML": b"---\ntitle: x\ndate: 2024-01-01\nsubject: y\n---\n\ntext",
    "YAML without marks": b"title: x\ndate: 2024-01-01\nsubject: y\n",
    "Pelican": b"Title: My post\nDate: 2010-12-03 10:20\nCategory: Python\nTags: a, b\n\nText.",
    "a response of HTTP": b"HTTP/1.1 200 OK\r\nDate: Mon, 1 Jan 2024\r\nFrom: x\r\n\r\n<html>",
    "headers of HTTP": b"Date: Mon, 1 Jan 2024\r\nServer: x\r\nContent-Type: text/html\r\n\r\nx",
    "a request of HTTP": b"GET / HTTP/1.1\r\nHost: a\r\nFrom: b\r\nSubject: c\r\n\r\n",
    "a copyright file": b"Format: https://d.org/doc/\nSource: y\n\nFiles: *\nLicense: MIT\n",
    "a control file": b"Package: x\nVersion: 1\nMaintainer: A <a@b.c>\nDescription: y\n z\n\n",
    "a patch": b"Description: x\nAuthor: A <a@b.c>\nOrigin: upstream\n\n--- a\n+++ b\n",
    "a patch that was sent": b"From: A <a@b.c>\nDate: today\nSubject: y\n---\n a | 1 +\n\n",
    "a changelog": b"x (1.0-1) unstable; urgency=low\n\n  * Fix.\n\n -- A <a@b.c>  Mon, 1 Jan\n",
    "a changelog of Perl": b"Date: 2024\n  * Fix this: that\nAuthor: A\n\n1.0\n",
    "Python": b"from os import path\nTo: str\nSubject: str\n\n",
    "classes": b"class A:\n    From: int\n    To: int\n\n",
    "a log": b"INFO: from: a to: b\nINFO: done\n\n",
    "notes without a body": b"Date: 1\nSubject: weekly report\nNotes: words and words\n",
    "a record": b"Date: 2002-01-02\nPath: /usr/lib\nDescription: words\n\n",
    "a dialogue": b"ANN: Where is it?\nBOB: From: there.\n\nANN: Oh.",
}  # fmt: skip


@pytest.mark.parametrize("kind", MAIL_HEADS)
def test_a_mail_is_known_by_its_first_lines(kind):
    data = MAIL_HEADS[kind]
    assert is_mail(data)
    assert is_mail(data[:HEADER_WINDOW])
    assert decode(data, b"a.txt", EVERY_MAIL).form == Form.MAIL
    # A text that begins like a mail is one where its source says so, or if it begins a mailbox.
    begins_mailbox = mbox.starts_mailbox(data)
    assert decode(data, b"a.txt").form == (Form.MAIL if begins_mailbox else Form.HEADERS)
    assert decode(data, b"a.eml").form == Form.MAIL
    assert decode_record(data, EVERY_MAIL).form == Form.MAIL
    text = decode_record(data, ShingleParams())
    assert text.form == Form.HEADERS
    assert data.isascii() is (text.utf8 == data)


@pytest.mark.parametrize("kind", NO_MAILS)
def test_a_text_that_looks_a_little_like_a_mail_is_none(kind):
    assert not is_mail(NO_MAILS[kind])
    assert decode(NO_MAILS[kind], b"a.txt", EVERY_MAIL).office == ""


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.eml", "Subject: x\nMIME-Version: 1.0\n\nbody", True),
        ("A.EML", "Subject: x\r\nContent-Type: text/plain;\r\n\tcharset=utf-8\r\n\r\nbody", True),
        ("a.txt", "Subject: x\nMIME-Version: 1.0\n\nbody", False),
        ("a.eml", "From me\nMIME-Version: 1.0\n\nbody", True),
        ("a.eml", "Note: milk\n\nbody", True), ("a.eml", "Note: milk\n", False),
        ("a.eml", "Note: milk\nis out", False), ("a.emlx", "11 \nTo: b\n\nbody<?xml?>", True),
        ("a.emlx", "To: b\n\nbody", True), ("a.eml", "a note on MIME-Version: 1.0\n\nbody", False),
        ("a.eml", "Subject: x\nMIME-Version: 1.0\nbody without an empty line", False),
    ],
)  # fmt: skip
def test_a_name_makes_up_for_a_known_field(name, head, expected):
    name, data = name.encode(), head.encode()
    assert (mail_form(data, name, ShingleParams()) == Form.MAIL) is expected
    assert expected or decode(data, name).utf8 == data


# --- the text -----------------------------------------------------------------------------------


def test_the_text_is_the_subject_and_the_body():
    data = HEAD + b"X-Secret: hidden\n\nfirst line\nsecond line\n"
    assert text_of(data) == "a question\n\nfirst line\nsecond line\n"
    assert words(data, headers=True) == data.decode().split()


#: Texts, and charsets that have their letters.
CHARSETS = [(text, charset) for text, charsets in {
    "Größe = 3 €": "utf-8 iso-8859-15 utf-7 utf-16 utf-32", "Привет": "koi8-r windows-1251",
    "日本語": "iso-2022-jp shift_jis iso-2022-jp-2 iso-2022-jp-3", "中文": "hz gb2312 big5",
    "한국어": "euc-kr iso-2022-kr",
}.items() for charset in charsets.split()]  # fmt: skip
TRANSFERS = {"8bit": bytes, "base64": base64.encodebytes, "quoted-printable": quopri.encodestring}


@pytest.mark.parametrize(("text", "charset"), CHARSETS)
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_charsets_and_transfer_encodings_are_decoded(text, charset, transfer):
    if charset in ("utf-16", "utf-32") and transfer == "8bit":
        return
    head = f'Content-Type: Text/Plain; format=flowed; charset="{charset}"\n'
    head += f"Content-Transfer-Encoding: {transfer}\n\n"
    whole = HEAD + head.encode() + TRANSFERS[transfer](text.encode(charset))
    assert words(whole) == ["a", "question", *text.split()]
    assert words(bytes(made(text, text, ATTACHED))) == text.split() * 2


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (b"=?utf-8?q?Gr=C3=B6=C3=9Fe?= 3", "Größe 3"), (b"=?no-such?q?a=E4?=", "aä"),
        (b"Re: =?ISO-8859-1?Q?a=E4?=\n =?ISO-8859-1?Q?b=F6?=", "Re: aäbö"),
        (b"=?gb2312?b?1tDOxA==?=", "中文"), (b"=?utf-8?b?broken=", "=?utf-8?b?broken="),
        (b"=?utf-8?b?A?=", "=?utf-8?b?A?="), (b"\xe4 raw", "ä raw"), ("größe".encode(), "größe"),
        # Bytes in a field that says no charset have that of the body.
        (b"\xd0\xf0\nContent-Type: text/plain; charset=koi8-r", b"\xd0\xf0".decode("koi8-r")),
    ],
)  # fmt: skip
def test_encoded_words_of_the_subject(subject, expected):
    assert text_of(b"From: a@b.c\nSubject: %b\nTo: b@c.d\n\n" % subject).strip() == expected


OF_TEXT, PACKED = "text/plain; charset=", "\nContent-Transfer-Encoding: base64"

#: What a mail or its part says of its content, the content, and the words that are read.
CONTENTS = [
    # charsets that do not exist, or do not fit
    (OF_TEXT + "no-such", b"fine \xe4", "fine ä"), (OF_TEXT + "utf-8", b"gr\xf6\xdfe", "größe"),
    (OF_TEXT + "us-ascii", "größe".encode(), "größe"), (OF_TEXT + "zip", b"abc", "abc"),
    (OF_TEXT + "us-ascii", b"gr\xf6\xdfe", "größe"), (OF_TEXT + "punycode", b"abc-xyz", "abc-xyz"),
    (OF_TEXT + "iso-2022-jp", "größe".encode(), "größe"),
    (OF_TEXT + "iso-8859-1", b"\x93quoted\x94", "“quoted”"),
    (OF_TEXT + "'utf-8'", "größe".encode(), "größe"),
    (OF_TEXT + "big5", b"\xa4\xa4\xff x", b"\xa4\xa4\xff x".decode("big5", "replace")),
    # parameters that name the charset, and others that have its name
    *((f"text/plain; {parameters}", "Привет".encode("koi8-r"), "Привет") for parameters in (
        "charset*=us-ascii''koi8-r", "charset*=\"utf-8'en'koi8-r\"",
        "x-charset=utf-8; charset=koi8-r", 'name="a; charset=big5"; charset="koi8-r"',
        'name="unfinished; charset=koi8-r', "charset=; charset=koi8-r",
    )),
    # letters of two or four bytes, each of which is ASCII, and letters that only say so
    *((f"{OF_TEXT}{charset}{PACKED}", base64.encodebytes("hello".encode(codec)), "hello")
      for charset in ("utf-16le", "utf-16be", "utf-32")
      for codec in (charset.replace("32", "32le"), "ascii")),
    # no text, unknown kinds, an old encoding
    *((kind + PACKED, b"AAAA", "") for kind in ("application/pdf", "image/png", "audio/x")),
    *((kind, b"words", "words") for kind in ("text/x-other", "nonsense")),
    ("a/b/c\nContent-Transfer-Encoding: x-uuencode", b"begin 644 a\n%:&5L;&\\*\n \nend\n", "hello"),
    # What is damaged is read as far as it goes; without the boundary it names, as one text.
    ("text/plain" + PACKED, b"aGVsbG8gd29ybGQ!!gYW5kIG1vc\n", "hello world and mop"),
    ("multipart/mixed; boundary=never", b"some words", "some words"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "content", "expected"), CONTENTS)
def test_contents_are_read_by_what_is_said_of_them(kind, content, expected):
    whole = f"Content-Type: {kind}\n\n".encode() + content
    for before in (HEAD, HEAD + b"Content-Type: multipart/mixed; boundary=x\n\n--x\n"):
        assert words(before + whole) == ["a", "question", *expected.split()]


def test_texts_of_every_kind_are_read_unless_they_are_attached():
    for subtype in ("plain", "x-patch", "calendar", "csv"):
        second = ("of the second part", {"subtype": subtype, "disposition": "inline"})
        whole = made("SUBJECT", "the body", second, ("ATTACHED", {"subtype": subtype}))
        assert words(bytes(whole)) == ["SUBJECT", *"the body of the second part".split()]


def test_mails_in_mails_are_read():
    inner = made("INNER", "the inner body")
    inner["From"] = "nobody"
    data = bytes(made("OUTER", "the outer body", (inner, {})))
    assert parts_of(data) == [
        ["OUTER"], ["the", "outer", "body"], ["INNER"], ["the", "inner", "body"],
    ]  # fmt: skip
    assert "nobody" in words(data, headers=True)
    digest = data.replace(b"multipart/mixed", b"multipart/digest")
    assert parts_of(digest.replace(b"Content-Type: message/rfc822\n", b"")) == parts_of(data)
    assert parts_of(ONE + b"\n" + ONE) == [["a", "question"], ["body"]] * 2


def test_what_is_attached_counts_for_sameness():
    def attached(content, disposition="attachment"):
        how = {"maintype": "application", "subtype": "octet-stream", "disposition": disposition}
        return bytes(made("x", "the body", (content, how), page="<p>another version"))

    texts = [read_mail(attached(content)) for content in (b"1", b"2", b"1")]
    assert texts[0] == texts[2] != texts[1]
    assert read_mail(attached(b"1", "inline")) == texts[0]
    assert read_mail(attached(b"1").replace(b"\n", b"\r\n")).replace(b"\r", b"") == texts[0]
    without = read_mail(b"Subject: x\n\nthe body\n")
    assert without not in texts
    assert {visible_text(each) for each in texts} == {visible_text(without)}
    pictures = [HEAD + b"Content-Type: image/png\n\n" + picture for picture in (b"1", b"2")]
    assert read_mail(pictures[0]) != read_mail(pictures[1])
    quoted = [attached(content).replace(b"the body", b"> the body") for content in (b"1", b"2")]
    assert len({read_mail(text, MailRules(quotes=False)) for text in quoted}) == 2


ENVELOPE = {
    "From": "Ann Lee <a@b.c>", "To": '"Doe, Jo" <d@e.f>, g@h.i',
    "Cc": "=?utf-8?q?J=C3=B6rg?= <j@k.l>", "Date": "Mon, 1 Jan 2024 10:00:00 +0000",
    "Subject": "minutes",
}  # fmt: skip
SAME = [
    {}, {"To": 'g@h.i,\n "Doe, Jo"  <d@e.f>'}, {"Message-ID": "<1@b.c>", "Reply-To": "x@y.z"},
    {"From": '"Ann Lee" <a@b.c>', "Cc": "J\xf6rg <j@k.l>"},
    {"Subject": "=?utf-8?b?bWludXRlcw==?="},
]  # fmt: skip
OTHERS = [
    *({"From": "Ann Lee <a@b.d>"}, {"To": "g@h.i"}, {"Cc": ""}),
    *({"Date": "Tue, 2 Jan 2024 10:00:00 +0000"}, {"Subject": "Minutes"}),
]


@pytest.mark.parametrize("changed", [*SAME, *OTHERS])
def test_the_same_mail_has_the_same_envelope(changed):
    """Only sameness looks at it: the text of these mails is equal but for the subject."""

    def mail(fields):
        head = "".join(f"{name}: {value}\n" for name, value in fields.items())
        return read_mail(f"{head}\nthe body\n".encode())

    one, other = mail(ENVELOPE), mail(ENVELOPE | changed)
    assert (one == other) is (changed in SAME)
    assert visible_text(one).lower() == visible_text(other).lower()
    forwarded = HEAD + b"Content-Type: message/rfc822\n\nFrom: %b\nSubject: x\n\ny"
    assert read_mail(forwarded % b"a") != read_mail(forwarded % b"b")


def test_quotes_and_signatures_can_be_dropped():
    body = b"Hello\n> old\n >> older\nnew > old\n>\nend\n-- \nAnn\n> more\n"
    data = HEAD + b"\n" + body
    assert text_of(data, quotes=True).endswith(body.decode())
    assert words(data, quotes=False) == ["a", "question", "Hello", "new", ">", "old", "end"]
    page = b"Content-Type: text/html\n\n<p>new<blockquote type=cite><p>old</blockquote>end"
    assert words(HEAD + page) == ["a", "question", "new", "old", "end"]
    assert words(HEAD + page, quotes=False) == ["a", "question", "new", "end"]


# --- the email package as the reference -----------------------------------------------------------


def slow_text(data):
    """Subject and text of a mail by Python's email package alone, as is documented."""
    message = email.message_from_bytes(data)
    parts = []

    def type_of(part):
        field = str(part.get("content-type", ""))
        kind, charset = mail._media_type(field)
        return kind if field else part.get_default_type(), charset

    def text(part):
        kind, charset = type_of(part)
        raw = part.get_payload(decode=True) or b""
        if any("Base64Length" in type(each).__name__ for each in part.defects):  # left as it is
            raw = mail._untransferred(raw, "base64")
        shown = mail._decode(raw, charset)
        if kind == "text/html":
            return html.visible_text(shown.encode("utf-8", "replace"), quotes=True).decode()
        return shown

    def walk(part):
        (kind, _), payload = type_of(part), part.get_payload()
        if kind in ("message/rfc822", "message/news", "message/global") and part.is_multipart():
            for inner in payload:
                parts.extend(([subject_of(inner)], []))
                walk(inner)
            parts.append([])
        elif part.get_content_disposition() == "attachment":
            return
        elif part.is_multipart():
            if kind == "multipart/alternative":
                plain = [each for each in payload if type_of(each)[0] == "text/plain"]
                plain = [each for each in plain if (each.get_payload(decode=True) or b"").strip()]
                pages = ("text/html", "multipart/")
                rich = [each for each in payload if type_of(each)[0].startswith(pages)]
                payload = [(plain[:1] or rich[-1:] or payload[-1:])[0]]
            if kind.startswith("multipart/"):
                for each in payload:
                    walk(each)
        elif kind.startswith(("text/", "multipart/")):
            parts[-1].append(text(part))

    def subject_of(part):
        raw = (value for name, value in part.raw_items() if name.lower() == "subject")
        value = str(next(raw, "")).encode("ascii", "surrogateescape")
        value = mail._text_of(value, type_of(part)[1] if part is message else "")
        try:
            decoded = email.header.decode_header(value)
        except ValueError:
            return value
        pieces = (p if isinstance(p, str) else mail._decode(p, code or "") for p, code in decoded)
        return "".join(pieces) if "=?" in value else value

    parts.extend(([subject_of(message)], []))
    walk(message)
    return [" ".join(part) for part in parts]


def parts_of(data):
    """The words of each part that has any."""
    return without_empty(part.decode() for part in split_parts(read_mail(data)))


def without_empty(parts):
    return [words for part in parts if (words := part.split())]


def test_the_fast_way_is_that_of_the_email_package():
    """Mails of any form that a generator writes."""
    source = random.Random(5)
    for _ in range(300 if WHOLE else 100):
        data = bytes(random_mail(source, source.choice([0, 0, 1, 2, 3])))
        assert parts_of(data) == without_empty(slow_text(data)), data


def random_mail(source, depth, top=True):
    policy = email.policy.SMTP if source.random() < 0.3 else email.policy.default
    message = EmailMessage(policy=policy)
    if top or source.random() < 0.2:
        message["From"], message["To"] = "a@example.org", "b@example.org"
        message["Subject"] = random_text(source)[:60].replace("\n", " ")
    if not depth:
        kind = source.choice(["plain", "plain", "html"])
        text = random_text(source)
        text = f"<html><p>{text}</p><script>X</script>" if kind == "html" else text
        charset = source.choice(["utf-8", "iso-8859-15"])
        transfer = source.choice(["8bit", "base64", "quoted-printable"])
        message.set_content(text, subtype=kind, charset=charset, cte=transfer)
        if not top and source.random() < 0.2:
            message["Content-Disposition"] = "attachment"
        return message
    kind = source.choice(["mixed", "alternative", "related", "digest", "rfc822"])
    if kind == "rfc822":
        message.set_content(random_mail(source, depth - 1))
        return message
    message["Content-Type"] = f"multipart/{kind}"
    depths = (source.randrange(depth) for _ in range(source.randrange(1, 4)))
    message.set_payload([random_mail(source, each, top=False) for each in depths])
    return message


def random_text(source):
    return "".join(source.choices("aeiouäöß€ -=.>\n\n", k=source.randrange(200)))


# --- what goes wrong ------------------------------------------------------------------------------


def nested(depth):
    head = b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n'
    parts = [HEAD, *(head % (level, level) for level in range(depth))]
    parts.append(b"Content-Type: text/plain\n\ninnermost\n")
    parts += [b"--b%d--\n" % level for level in reversed(range(depth))]
    return b"".join(parts)


def test_parts_in_parts_have_an_end():
    assert split_parts(decode(nested(60), b"a.eml").utf8) == [b"a question", b"innermost"]
    deep = decode(nested(1000), b"a.eml")
    assert (deep.reason, deep.detail) == (Reason.SPOILT, "its parts are nested too deeply")
    inner = HEAD + b"Content-Type: message/rfc822\n\n" * 1000 + b"innermost\n"
    assert decode(inner, b"a.eml").reason is Reason.SPOILT


PARTS = HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n"

#: Mails on which a careless reader would spend the square of their size: what they begin with, what
#: they have again and again, and their end.
FLOODS = [
    (b"From: a\nSubject: x", b"\n y", b"\n\nbody"), (b"From: a\nSubject: ", b"x", b"\n\nbody"),
    (b"From: a\nSubject: ", b"=?utf-8?q?a", b"\n\nbody"), (b"", b"A:\n", HEAD),
    (HEAD + b"Content-Type: text/plain", b"; a=b", b"\n\nbody"),
    (HEAD + b"Content-Type: multipart/mixed", b'; a="', b"\n\nbody"),
    (HEAD + b"Content-Type: multipart/mixed; boundary=", b"b", b"\n\nbody"),
    (PARTS + b"--b\nContent-Type: a/b", b"; a=b", b"\n\nbody\n--b--\n"),
    (PARTS, b"--b\n\n%b\n" % (b"x" * (1 if WHOLE else 57)), b""),  # Each part takes long.
    (PARTS, b"--b\n", b""), (PARTS + b"--b\n\n", b"--c\n", b""),
    (HEAD + b"Content-Transfer-Encoding: base64\n\n", b"!A=", b""),
    (HEAD + b"Content-Transfer-Encoding: quoted-printable\n\n", b"=\n", b""),
    (b"From a Thu Aug 22 12:36:23 2002\n" + HEAD, b"\nFrom \n", b""),
    (HEAD + b"\n", b">From x\n", b""), (b"Aa: ", b"b:", b"\nFrom: x\nTo: y\n\nbody"),
    (b"From ", b"1:00 ", b"\n" + HEAD + b"\nbody"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("flood", "rules"),
    part(product(FLOODS, [MailRules(), MailRules(headers=True, quotes=False)]), 5),
)
def test_time_grows_with_the_size(flood, rules):
    """Ten times the bytes take about ten times as long, not a hundred times."""
    begin, again, end = flood

    def seconds(size):
        data = begin + again * (size // len(again)) + end
        start = time.process_time()
        with contextlib.suppress(mail.MailError):
            read_mail(data, rules)
        is_mail(data)
        return time.process_time() - start

    seconds(1000)
    short = min(seconds(1 << 18) for _ in range(3))
    assert any(seconds(10 << 18) < 40 * short + 0.3 for _ in range(3))


def test_damaged_mails_are_read_as_far_as_they_go():
    for broken in (b"QUJD=A", b"QUJDR", b"====", b"QUJD\nQ"):
        read_mail(HEAD + b"Content-Transfer-Encoding: base64\n\n" + broken)
    whole = bytes(made("x", "the body", page="<p>page"))
    for end in range(whole.index(b"\n\n") + 2, len(whole)):
        read_mail(whole[:end])
    assert words(whole[: whole.index(b"text/html")]) == ["x", "the", "body"]


def test_a_batch_survives_a_mail_that_its_process_does_not():
    mails = [HEAD + b"\nbody %d" % n for n in range(40)]
    mails[7] = mails[8] = PARTS + b"--b\n\nx\n" * 1_000_000
    kind = processes.mail_type(ShingleParams())
    for at, each in enumerate(processes.extract_all(mails, kind, FormatLimits(seconds=0.5))):
        if at in (7, 8):
            assert each.reason is Reason.SLOW
        else:
            assert visible_text(each.utf8).split()[-1] == b"%d" % at


def test_every_input_is_answered():
    """Any change of a byte leaves something that can be read, or is reported."""
    source = random.Random(7)
    data = bytes(random_mail(source, 3))
    for _ in range(500 if WHOLE else 100):
        changed = bytearray(data)
        for _ in range(source.randrange(1, 9)):
            changed[source.randrange(len(changed))] = source.randrange(256)
        is_mail(bytes(changed))
        with contextlib.suppress(mail.MailError):
            read_mail(bytes(changed))


def test_a_mailbox_is_more_than_one_mail():
    texts = (ONE, HEAD + b"\n" + ONE, ONE + b"\n" + ONE)
    assert [mbox.is_mailbox(text) for text in texts] == [False, False, True]
