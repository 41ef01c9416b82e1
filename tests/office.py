"""Small writers of office documents: one text in each format, and damaged ones."""

import hashlib
import io
import struct
import textwrap
import zipfile
import zlib
from email.message import EmailMessage
from xml.sax.saxutils import escape

_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_DUBLIN = "http://purl.org/dc/elements/1.1/"


def zipped(members, stored=()):
    """A zip of name -> text or bytes, in that order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            how = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), content, how)
    return out.getvalue()


def _relations(*links):
    """The relations of a part to others: pairs of a kind and a target, by ids rId1, rId2, …"""
    made = "".join(
        f'<Relationship Id="rId{n}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(links, 1)
    )
    return f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{made}</Relationships>'


def _package(main, kind, parts, links=()):
    """An Office Open XML package whose main part is `main`, with links to others."""
    folder, _, name = main.rpartition("/")
    kind = f"application/vnd.openxmlformats-officedocument.{kind}"
    types = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    types += 'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
    for part, (suffix, _) in parts.items():
        types += f'<Override PartName="/{part}" ContentType="{kind}.{suffix}+xml"/>'
    types = f'{_XML}<Types xmlns="{_PACKAGE}/content-types">{types}</Types>'
    members = {"[Content_Types].xml": types, "_rels/.rels": _relations(("officeDocument", main))}
    if links:
        members[f"{folder}/_rels/{name}.rels"] = _relations(*links)
    return zipped(members | {name: _XML + content for name, (_, content) in parts.items()})


def docx(text, header="", title=""):
    """A paragraph for each line; a page header and a title that are not part of the text."""
    line = '<w:p><w:r><w:t xml:space="preserve">{}</w:t></w:r></w:p>'
    body = "".join(map(line.format, escape(text).splitlines()))
    names = f'xmlns:w="{_WORD}" xmlns:r="{_RELATIONS}"'
    parts, links = {}, []
    if header:
        body += '<w:sectPr><w:headerReference w:type="default" r:id="rId1"/></w:sectPr>'
        links = [("header", "header1.xml")]
        header = line.format(escape(header))
        parts["word/header1.xml"] = ("header", f"<w:hdr {names}>{header}</w:hdr>")
    if title:
        core = f'xmlns:cp="{_PACKAGE}/metadata/core-properties" xmlns:dc="{_DUBLIN}"'
        core = f"<cp:coreProperties {core}><dc:title>{escape(title)}</dc:title></cp:coreProperties>"
        parts["docProps/core.xml"] = ("core", core)
    document = f"<w:document {names}><w:body>{body}</w:body></w:document>"
    parts = {"word/document.xml": ("document.main", document), **parts}
    return _package("word/document.xml", "wordprocessingml", parts, links)


def pptx(text):
    """A slide for every eight lines."""
    lines = text.splitlines()
    slides = [lines[at : at + 8] for at in range(0, len(lines), 8)]
    schemas = "http://schemas.openxmlformats.org"
    names = f'xmlns:a="{schemas}/drawingml/2006/main" xmlns:r="{_RELATIONS}" '
    names += f'xmlns:p="{schemas}/presentationml/2006/main"'
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    main = f"<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    parts = {"ppt/presentation.xml": ("presentation.main", main)}
    for n, slide in enumerate(slides, 1):
        paragraphs = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in slide)
        page = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>'
        page += '<p:grpSpPr/><p:sp><p:nvSpPr><p:cNvPr id="2" name="Frame"/><p:cNvSpPr/><p:nvPr/>'
        page += f"</p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>{paragraphs}</p:txBody></p:sp>"
        page = f"<p:sld {names}><p:cSld><p:spTree>{page}</p:spTree></p:cSld></p:sld>"
        parts[f"ppt/slides/slide{n}.xml"] = ("slide", page)
    links = [("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)]
    return _package("ppt/presentation.xml", "presentationml", parts, links)


def xlsx(text):
    """A row for each line, in one column."""
    sheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rows = "".join(
        f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>{escape(line)}</t></is></c></row>'
        for n, line in enumerate(text.splitlines(), 1)
    )
    book = f'<workbook xmlns="{sheet}" xmlns:r="{_RELATIONS}"><sheets>'
    book += '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>'
    rows = f'<worksheet xmlns="{sheet}"><sheetData>{rows}</sheetData></worksheet>'
    parts = {"xl/workbook.xml": ("sheet.main", book)}
    parts["xl/worksheets/sheet1.xml"] = ("worksheet", rows)
    links = [("worksheet", "worksheets/sheet1.xml")]
    return _package("xl/workbook.xml", "spreadsheetml", parts, links)


def odt(text, title=""):
    names = "urn:oasis:names:tc:opendocument:xmlns"
    office = f'xmlns:office="{names}:office:1.0"'
    body = "".join(f"<text:p>{escape(line)}</text:p>" for line in text.splitlines())
    body = f"<office:body><office:text>{body}</office:text></office:body>"
    meta = f"<office:meta><dc:title>{escape(title)}</dc:title></office:meta>"
    kind = "application/vnd.oasis.opendocument.text"
    entries = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
    entries += '<manifest:file-entry manifest:full-path="content.xml" '
    entries += 'manifest:media-type="text/xml"/>'
    members = {
        "mimetype": kind,
        "content.xml": f'{_XML}<office:document-content {office} xmlns:text="{names}:text:1.0" '
        f'office:version="1.2">{body}</office:document-content>',
        "meta.xml": f'{_XML}<office:document-meta {office} xmlns:dc="{_DUBLIN}" '
        f'office:version="1.2">{meta}</office:document-meta>',
        "META-INF/manifest.xml": f'{_XML}<manifest:manifest xmlns:manifest="{names}:manifest:1.0">'
        f"{entries}</manifest:manifest>",
    }
    return zipped(members, stored=("mimetype",))


def epub(text, title="A title", chapters=1):
    lines = text.splitlines()
    size = max(1, -(-len(lines) // chapters))
    parts = [lines[at : at + size] for at in range(0, len(lines), size)]
    item = '<item id="c{0}" href="c{0}.xhtml" media-type="application/xhtml+xml"/>'
    items = "".join(map(item.format, range(len(parts))))
    spine = "".join(map('<itemref idref="c{}"/>'.format, range(len(parts))))
    meta = f'<metadata xmlns:dc="{_DUBLIN}"><dc:title>{escape(title)}</dc:title>'
    meta += '<dc:language>en</dc:language><dc:identifier id="id">urn:x</dc:identifier></metadata>'
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": f'{_XML}<container version="1.0" xmlns="urn:oasis:names:tc:'
        'opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/content.opf" '
        'media-type="application/oebps-package+xml"/></rootfiles></container>',
        "OEBPS/content.opf": f'{_XML}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" '
        f'unique-identifier="id">{meta}<manifest>{items}</manifest><spine>{spine}</spine></package>',
    }
    for n, part in enumerate(parts):
        body = "".join(f"<p>{escape(line)}</p>" for line in part)
        page = f"<head><title>{escape(title)}</title></head><body>{body}</body>"
        page = f'{_XML}<html xmlns="http://www.w3.org/1999/xhtml">{page}</html>'
        members[f"OEBPS/c{n}.xhtml"] = page
    return zipped(members, stored=("mimetype",))


def rtf(text):
    def units(char):
        encoded = char.encode("utf-16-le")
        return struct.unpack(f"<{len(encoded) // 2}h", encoded)

    escaped = {char: f"\\{char}" for char in "\\{}"}
    escaped |= {c: "".join(f"\\u{unit}?" for unit in units(c)) for c in text if not c.isascii()}
    body = text.translate(str.maketrans(escaped | {"\n": "\\par\n"}))
    head = "{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Times New Roman;}}{\\info{\\title Hidden title}}\n"
    return f"{head}{body}\\par}}".encode("ascii")


def eml(text):
    """A mail with MIME headers."""
    message = EmailMessage()
    message["From"], message["To"] = "Ann <ann@example.org>", "Bob <bob@example.org>"
    message["Subject"] = "A subject"
    message["Date"], message["Message-ID"] = "Mon, 01 Jan 2024 10:00:00 +0000", "<1@example.org>"
    message.set_content(text, cte="quoted-printable")
    return message.as_bytes()


# --- PDF ------------------------------------------------------------------------------------------


def pdf(text, width=80, lines_a_page=50, *, header="", title="", password=None, hyphenate=False):
    """Lines broken at `width`, as many pages as needed, Helvetica with WinAnsi codes.

    password : encrypted with RC4, 40 bits.
    """
    lines, break_lines = [], hyphenated if hyphenate else textwrap.wrap
    for paragraph in text.splitlines():
        lines += break_lines(paragraph, width) or [""]
    pages = [lines[at : at + lines_a_page] for at in range(0, len(lines), lines_a_page)] or [[]]
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        4: f"<</Title({title})>>".encode(),
    }
    key = identity = entry = b""
    if password is not None:
        identity = hashlib.md5(b"lshdup").digest()
        key, entry = _encryption(password, identity)
    kids = b" ".join(b"%d 0 R" % (5 + 2 * number) for number in range(len(pages)))
    objects[2] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids)
    for number, page in enumerate(pages):
        at = 6 + 2 * number
        objects[at - 1] = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R" % at
        objects[at - 1] += b"/Resources<</Font<</F1 3 0 R>>>>>>"
        content = b"BT /F1 10 Tf 12 TL 50 730 Td\n"
        if header:
            shown = _pdf_string(header)
            content = b"BT /F1 10 Tf 1 0 0 1 50 770 Tm (%s) Tj ET\n" % shown + content
        content += b"".join(b"(%s) Tj T*\n" % _pdf_string(line) for line in page) + b"ET"
        content = zlib.compress(content)
        if key:
            own = hashlib.md5(key + struct.pack("<I", at)[:3] + b"\0\0").digest()[:10]
            content = rc4(own, content)
        objects[at] = b"<</Length %d/Filter/FlateDecode>>stream\n" % len(content)
        objects[at] += content + b"\nendstream"
    out, places = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), {}
    for number in sorted(objects):
        places[number] = len(out)
        out += b"%d 0 obj%s endobj\n" % (number, objects[number])
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    out += b"".join(b"%010d 00000 n \n" % places[number] for number in range(1, size))
    out += b"trailer<</Size %d/Root 1 0 R/Info 4 0 R%s>>\n" % (size, entry)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def _pdf_string(line):
    return line.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def hyphenated(paragraph, width):
    """Lines of exactly `width` where a word can be cut, with a hyphen at the end."""
    lines, line = [], ""
    for word in paragraph.split():
        while len(line) + len(word) + 1 > width:
            room = width - len(line) - 2
            if room >= 3 and len(word) - room >= 3 and word[: room + 3].isalpha():
                line, word = f"{line} {word[:room]}-", word[room:]
            lines.append(line.strip())
            line = ""
        line += " " + word
    return [*lines, line.strip()]


_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def _encryption(password, identity):
    """Key and trailer entries of the standard security handler, revision 2."""
    padded = (password.encode() + _PADDING)[:32]
    owner = rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + struct.pack("<i", -4) + identity).digest()[:5]
    user = rc4(key, _PADDING)
    entry = b"/Encrypt<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -4>>/ID[<%s><%s>]"
    return key, entry % tuple(each.hex().encode() for each in (owner, user, identity, identity))


def rc4(key, data):
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


# --- OLE (compound files) -------------------------------------------------------------------------


def ole(streams):
    """A compound file of root streams, padded to 4,096 bytes, so that no mini stream is needed."""
    free, end, fat_mark, none = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF
    sizes = [max(4096, -(-len(content) // 512) * 512) for content in streams.values()]
    body = b"".join(map(bytes.ljust, streams.values(), sizes, [b"\0"] * len(sizes)))
    directory_sectors = -(-(len(streams) + 1) // 4)
    fat, starts, at = [fat_mark, *range(2, 1 + directory_sectors), end], [], 1 + directory_sectors
    for size in sizes:
        starts.append(at)
        fat += [*range(at + 1, at + size // 512), end]
        at += size // 512
    assert len(fat) <= 128, "one sector of the table is enough for tests"
    fat += [free] * (128 - len(fat))
    # A tree that is a list: each stream is the right sibling of the one before it, in the order of
    # names (by length, then letters).
    names = list(streams)
    order = sorted(range(len(streams)), key=lambda i: (len(names[i]), names[i].upper()))
    following = dict(zip(order, [each + 1 for each in order[1:]], strict=False))
    entries = [_entry("Root Entry", 5, none, order[0] + 1 if order else none, end, 0)]
    for i, name in enumerate(names):
        entries.append(_entry(name, 2, following.get(i, none), none, starts[i], sizes[i]))
    blank = bytes(66) + struct.pack("<BBIII", 0, 0, none, none, none) + bytes(48)
    entries += [blank] * (4 * directory_sectors - len(entries))
    mark = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    numbers = (0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, end, 0, end, 0)
    head = struct.pack("<8s16sHHHHH6xIIIIIIIII", mark, bytes(16), *numbers)
    head += struct.pack("<109I", 0, *[free] * 108)
    return head + struct.pack("<128I", *fat) + b"".join(entries) + body


def _entry(name, kind, right, child, start, size):
    encoded = name.encode("utf-16-le")
    numbers = (len(encoded) + 2, kind, 1, 0xFFFFFFFF, right, child)
    head = encoded.ljust(64, b"\0") + struct.pack("<HBBIII", *numbers)
    return head + bytes(36) + struct.pack("<IQ", start, size)


def encrypted_docx():
    """What Word makes of a document with a password: a compound file with these two streams."""
    package = struct.pack("<Q", 4000) + bytes(range(256)) * 16
    return ole({"EncryptionInfo": b"\4\0\4\0\x40\0\0\0<encryption/>", "EncryptedPackage": package})


def msg(text):
    """An Outlook message with a body."""
    streams = {"001A": "IPM.Note", "0037": "A subject", "1000": text}
    made = {f"__substg1.0_{at}001F": each.encode("utf-16-le") for at, each in streams.items()}
    return ole({"__properties_version1.0": bytes(32), **made})


def unzipped(data):
    """The members of a zip: name -> bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def xls(text):
    """A workbook of Excel 97: a row for each line, in one column."""

    def record(number, form, *values, text=b""):
        body = struct.pack(form, *values) + text
        return struct.pack("<HH", number, len(body)) + body

    def begin(kind):
        return record(0x809, "<HHHHII", 0x600, kind, 0x0DBB, 0x07CC, 0, 6)

    name, end = b"Sheet1", record(0x0A, "")
    sheet_at = len(begin(0x5)) + 4 + 8 + len(name) + 4
    head = begin(0x5) + record(0x85, "<IBBBB", sheet_at, 0, 0, len(name), 0, text=name) + end
    rows = (
        record(0x204, "<HHHHB", row, 0, 0, len(line), 1, text=line.encode("utf-16-le"))
        for row, line in enumerate(text.splitlines())
    )
    return ole({"Workbook": b"".join([head, begin(0x10), *rows, end])})


def doc(text, encrypted=False):
    """A document of Word 97: a paragraph for each line, in one piece of 16-bit characters."""
    body = "".join(f"{line}\r" for line in text.splitlines()).encode("utf-16-le")
    characters, start = len(body) // 2, 2048
    flags = 0x0200 | (0x0100 if encrypted else 0)
    pieces = struct.pack("<II", 0, characters) + struct.pack("<HIH", 0, start, 0)
    table = b"\2" + struct.pack("<I", len(pieces)) + pieces
    fib = bytearray(start)
    for form, at, *numbers in (
        ("<HHHHHH", 0, 0xA5EC, 0xC1, 0, 0x409, 0, flags),
        ("<II", 0x18, start, start + len(body)),
        *(("<H", 0x20, 14), ("<H", 0x3E, 22), ("<I", 0x4C, characters), ("<H", 0x98, 0x5D)),
        ("<II", 0x1A2, 0, len(table)),
    ):
        struct.pack_into(form, fib, at, *numbers)
    return ole({"WordDocument": bytes(fib) + body, "1Table": table})
