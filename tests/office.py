"""Small writers of office documents, for tests: one text as PDF, DOCX, ODT, RTF, EPUB, PPTX, XLSX
and mail; and damaged ones.
"""

import hashlib
import io
import struct
import textwrap
import zipfile
import zlib
from xml.sax.saxutils import escape

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def zipped(members, stored=()):
    """A zip of name -> text or bytes, in that order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return out.getvalue()


def _package(main, kind, parts, relations=""):
    """An Office Open XML package whose main part is `main`."""
    overrides = "".join(
        f'<Override PartName="/{name}" ContentType="{kind}.{suffix}+xml"/>'
        for name, (suffix, _) in parts.items()
    )
    return zipped(
        {
            "[Content_Types].xml": f'{_XML}<Types xmlns="{_PACKAGE}/content-types"><Default '
            'Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/'
            '><Default Extension="xml" '
            f'ContentType="application/xml"/>{overrides}</Types>',
            "_rels/.rels": f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship '
            'Id="rId1" '
            f'Type="{_RELATIONS}/officeDocument" Target="{main}"/></Relationships>',
            **({relations[0]: relations[1]} if relations else {}),
            **{name: _XML + content for name, (_, content) in parts.items()},
        }
    )


def docx(text, header="", title=""):
    """A paragraph for each line; a page header and a title that are not part of the text."""
    body = "".join(
        f'<w:p><w:r><w:t xml:space="preserve">{escape(line)}</w:t></w:r></w:p>'
        for line in text.splitlines()
    )
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    section = (
        '<w:sectPr><w:headerReference w:type="default" r:id="rId9"/></w:sectPr>' if header else ""
    )
    parts = {
        "word/document.xml": (
            "document.main",
            f'<w:document xmlns:w="{_WORD}" xmlns:r="{_RELATIONS}"><w:body>{body}{section}</'
            "w:body></w:document>",
        )
    }
    relations = ""
    if header:
        parts["word/header1.xml"] = (
            "header",
            f'<w:hdr xmlns:w="{_WORD}"><w:p><w:r><w:t>{escape(header)}</w:t></w:r></w:p></w:hdr>',
        )
        relations = (
            "word/_rels/document.xml.rels",
            f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId9" '
            f'Type="{_RELATIONS}/header" '
            'Target="header1.xml"/></Relationships>',
        )
    if title:
        core = (
            '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/'
            'metadata/core-properties" '
        )
        core += (
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</'
            "dc:title></cp:coreProperties>"
        )
        parts["docProps/core.xml"] = ("core", core)
    return _package("word/document.xml", kind, parts, relations)


def pptx(text, lines_a_slide=8):
    """A slide for every few lines."""
    lines = text.splitlines()
    slides = [lines[at : at + lines_a_slide] for at in range(0, len(lines), lines_a_slide)]
    drawing, presentation = (
        "http://schemas.openxmlformats.org/drawingml/2006/main",
        "http://schemas.openxmlformats.org/presentationml/2006/main",
    )
    names = f'xmlns:a="{drawing}" xmlns:r="{_RELATIONS}" xmlns:p="{presentation}"'
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    parts = {
        "ppt/presentation.xml": (
            "presentation.main",
            f"<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        )
    }
    links = ""
    for n, slide in enumerate(slides, 1):
        paragraphs = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in slide)
        parts[f"ppt/slides/slide{n}.xml"] = (
            "slide",
            f'<p:sld {names}><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/'
            "><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>"
            '<p:sp><p:nvSpPr><p:cNvPr id="2" name="Frame"/><p:cNvSpPr/><p:nvPr/></'
            f"p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>{paragraphs}"
            f"</p:txBody></p:sp></p:spTree></p:cSld></p:sld>",
        )
        links += (
            f'<Relationship Id="rId{n}" Type="{_RELATIONS}/slide" Target="slides/slide{n}.xml"/>'
        )
    relations = (
        "ppt/_rels/presentation.xml.rels",
        f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>',
    )
    return _package(
        "ppt/presentation.xml",
        "application/vnd.openxmlformats-officedocument.presentationml",
        parts,
        relations,
    )


def xlsx(text):
    """A row for each line, in one column."""
    sheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rows = "".join(
        f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>{escape(line)}</t></is></c></row>'
        for n, line in enumerate(text.splitlines(), 1)
    )
    parts = {
        "xl/workbook.xml": (
            "sheet.main",
            f'<workbook xmlns="{sheet}" xmlns:r="{_RELATIONS}"><sheets><sheet name="Sheet1" '
            'sheetId="1" r:id="rId1"/></sheets></workbook>',
        ),
        "xl/worksheets/sheet1.xml": (
            "worksheet",
            f'<worksheet xmlns="{sheet}"><sheetData>{rows}</sheetData></worksheet>',
        ),
    }
    relations = (
        "xl/_rels/workbook.xml.rels",
        f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_RELATIONS}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
    )
    return _package(
        "xl/workbook.xml",
        "application/vnd.openxmlformats-officedocument.spreadsheetml",
        parts,
        relations,
    )


def odt(text, title=""):
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    body = "".join(f"<text:p>{escape(line)}</text:p>" for line in text.splitlines())
    kind = "application/vnd.oasis.opendocument.text"
    return zipped(
        {
            "mimetype": kind,
            "content.xml": '<?xml version="1.0" encoding="UTF-8"?><office:document-content '
            f'xmlns:office="{office}" '
            'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
            f'office:version="1.2"><office:body><office:text>{body}'
            "</office:text></office:body></office:document-content>",
            "meta.xml": '<?xml version="1.0" encoding="UTF-8"?><office:document-meta '
            f'xmlns:office="{office}" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/" '
            f'office:version="1.2"><office:meta><dc:title>{escape(title)}</dc:title>'
            "</office:meta></office:document-meta>",
            "META-INF/manifest.xml": '<?xml version="1.0" encoding="UTF-8"?><manifest:manifest '
            'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            '<manifest:file-entry manifest:full-path="/" '
            f'manifest:media-type="{kind}"/><manifest:file-entry '
            'manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
            "</manifest:manifest>",
        },
        stored=("mimetype",),
    )


def epub(text, title="A title", chapters=1):
    lines = text.splitlines()
    size = max(1, -(-len(lines) // chapters))
    parts = [lines[at : at + size] for at in range(0, len(lines), size)]
    items = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(parts))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(parts)))
    pages = {
        f"OEBPS/c{n}.xhtml": '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://'
        'www.w3.org/1999/xhtml"><head>'
        f"<title>{escape(title)}</title></"
        f"head><body>{''.join(f'<p>{escape(line)}</p>' for line in part)}</body></html>"
        for n, part in enumerate(parts)
    }
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<?xml version="1.0"?><container version="1.0" '
            'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
            'full-path="OEBPS/content.opf" '
            'media-type="application/oebps-package+xml"/></rootfiles></container>',
            "OEBPS/content.opf": '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/'
            'opf" version="3.0" unique-identifier="id">'
            '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/'
            f'"><dc:title>{escape(title)}</dc:title><dc:language>en</dc:language>'
            f'<dc:identifier id="id">urn:x</dc:identifier></metadata><manifest>{items}</'
            f"manifest><spine>{spine}</spine></package>",
            **pages,
        },
        stored=("mimetype",),
    )


def rtf(text):
    def char(c):
        if c in "\\{}":
            return "\\" + c
        return (
            c
            if ord(c) < 128
            else "".join(
                f"\\u{unit}?"
                for unit in struct.unpack(
                    f"<{len(c.encode('utf-16-le')) // 2}h", c.encode("utf-16-le")
                )
            )
        )

    body = "\\par\n".join("".join(map(char, line)) for line in text.splitlines())
    return (
        "{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Times New Roman;}}{\\info{\\title Hidden title}}\n"
        + body
        + "\\par}"
    ).encode("ascii")


def eml(text, subject="A subject", html=False, base=False):
    """A mail with MIME headers: quoted-printable or base64, plain text and perhaps the same as
    HTML.
    """
    from email.message import EmailMessage

    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = (
        "Ann <ann@example.org>",
        "Bob <bob@example.org>",
        subject,
    )
    message["Date"], message["Message-ID"] = "Mon, 01 Jan 2024 10:00:00 +0000", "<1@example.org>"
    message.set_content(text, cte="base64" if base else "quoted-printable")
    if html:
        message.add_alternative(
            "<html><body>"
            + "".join(f"<p>{escape(line)}</p>" for line in text.splitlines())
            + "</body></html>",
            "html",
        )
    return message.as_bytes()


# --- PDF ------------------------------------------------------------------------------------------


def pdf(
    text,
    width=80,
    lines_a_page=50,
    header="",
    title="",
    password=None,
    hyphenate=False,
    compress=False,
):
    """Lines broken at `width`, as many pages as needed, Helvetica with WinAnsi codes.

    password : encrypted with RC4, 40 bits.
    """
    lines = []
    for paragraph in text.splitlines():
        lines += (
            hyphenated(paragraph, width) if hyphenate else textwrap.wrap(paragraph, width)
        ) or [""]
    pages = [lines[at : at + lines_a_page] for at in range(0, len(lines), lines_a_page)] or [[]]
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    }
    objects[4] = f"<</Title({title})>>".encode()
    key = identity = entry = b""
    if password is not None:
        identity = hashlib.md5(b"lshdup").digest()
        key, entry = _encryption(password, identity)
    kids = []
    for number, page in enumerate(pages):
        at = 5 + 2 * number
        kids.append(b"%d 0 R" % at)
        objects[at] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</"
            b"Font<</F1 3 0 R>>>>>>" % (at + 1)
        )
        content = (
            b"BT /F1 10 Tf 1 0 0 1 50 770 Tm (%s) Tj ET\n" % _pdf_string(header) if header else b""
        )
        content += (
            b"BT /F1 10 Tf 12 TL 50 730 Td\n"
            + b"".join(b"(%s) Tj T*\n" % _pdf_string(line) for line in page)
            + b"ET"
        )
        packed = b""
        if compress:
            content, packed = zlib.compress(content), b"/Filter/FlateDecode"
        if key:
            content = rc4(
                hashlib.md5(key + struct.pack("<I", at + 1)[:3] + b"\0\0").digest()[:10], content
            )
        objects[at + 1] = b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), packed, content)
    objects[2] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), b" ".join(kids))
    out, places = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), {}
    for number in sorted(objects):
        places[number] = len(out)
        out += b"%d 0 obj%s endobj\n" % (number, objects[number])
    start = len(out)
    size = max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size + b"".join(
        b"%010d 00000 n \n" % places[number] for number in range(1, size)
    )
    out += b"trailer<</Size %d/Root 1 0 R/Info 4 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        entry,
        start,
    )
    return bytes(out)


def _pdf_string(line):
    return line.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def hyphenated(paragraph, width):
    """Lines of exactly `width` where a word can be cut: as a typesetter's, with a hyphen at the
    end.
    """
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


_PASSWORD_PADDING = bytes.fromhex(
    "28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A"
)


def _encryption(password, identity):
    """Key and trailer entries of the standard security handler, revision 2."""
    padded = (password.encode() + _PASSWORD_PADDING)[:32]
    owner = rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + struct.pack("<i", -4) + identity).digest()[:5]
    user = rc4(key, _PASSWORD_PADDING)
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
    """A compound file (version 3, 512-byte sectors) of root streams; all are padded to 4,096 bytes,
    so that no mini stream is needed.
    """
    free, end, fat_mark, none = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF
    bodies = [
        content.ljust(max(4096, -(-len(content) // 512) * 512), b"\0")
        for content in streams.values()
    ]
    directory_sectors = -(-(len(streams) + 1) // 4)
    fat, starts, at = [fat_mark], [], 1 + directory_sectors
    fat += [*range(2, 1 + directory_sectors), end]
    for body in bodies:
        count = len(body) // 512
        starts.append(at)
        fat += [*range(at + 1, at + count), end]
        at += count
    assert len(fat) <= 128, "one sector of the table is enough for tests"
    fat += [free] * (128 - len(fat))
    # A tree that is a list: each stream is the right sibling of the one before it, in the order of
    # names (by length, then letters).
    order = sorted(
        range(len(streams)), key=lambda i: (len(list(streams)[i]), list(streams)[i].upper())
    )
    entries = [_entry("Root Entry", 5, none, order[0] + 1 if order else none, end, 0)]
    for i, name in enumerate(streams):
        rank = order.index(i)
        right = order[rank + 1] + 1 if rank + 1 < len(order) else none
        entries.append(_entry(name, 2, right, none, starts[i], len(bodies[i])))
    entries += [bytes(66) + struct.pack("<BBIII", 0, 0, none, none, none) + bytes(48)] * (
        4 * directory_sectors - len(entries)
    )
    head = struct.pack(
        "<8s16sHHHHH6xIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        bytes(16),
        0x3E,
        3,
        0xFFFE,
        9,
        6,
        0,
        1,
        1,
        0,
        4096,
        end,
        0,
        end,
        0,
    )
    head += struct.pack("<109I", 0, *[free] * 108)
    return head + struct.pack("<128I", *fat) + b"".join(entries) + b"".join(bodies)


def _entry(name, kind, right, child, start, size):
    encoded = name.encode("utf-16-le")
    head = encoded.ljust(64, b"\0") + struct.pack(
        "<HBBIII", len(encoded) + 2, kind, 1, 0xFFFFFFFF, right, child
    )
    return head + bytes(36) + struct.pack("<IQ", start, size)


def encrypted_docx():
    """What Word makes of a document with a password: a compound file with these two streams."""
    return ole(
        {
            "EncryptionInfo": b"\4\0\4\0\x40\0\0\0<encryption/>",
            "EncryptedPackage": struct.pack("<Q", 4000) + bytes(range(256)) * 16,
        }
    )


def msg(text, subject="A subject"):
    """An Outlook message with a body."""
    return ole(
        {
            "__properties_version1.0": bytes(32),
            "__substg1.0_001A001F": "IPM.Note".encode("utf-16-le"),
            "__substg1.0_0037001F": subject.encode("utf-16-le"),
            "__substg1.0_1000001F": text.encode("utf-16-le"),
        }
    )


def unzipped(data):
    """The members of a zip: name -> bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def xls(text):
    """A workbook of Excel 97: a row for each line, in one column."""

    def record(number, body):
        return struct.pack("<HH", number, len(body)) + body

    begin = struct.pack("<HHHHII", 0x600, 0x5, 0x0DBB, 0x07CC, 0, 6)
    name = b"Sheet1"
    head = record(0x809, begin)
    sheet_at = len(head) + 4 + 8 + len(name) + 4
    head += record(0x85, struct.pack("<IBBBB", sheet_at, 0, 0, len(name), 0) + name) + record(
        0x0A, b""
    )
    sheet = record(0x809, begin[:2] + struct.pack("<H", 0x10) + begin[4:])
    for row, line in enumerate(text.splitlines()):
        sheet += record(
            0x204, struct.pack("<HHHHB", row, 0, 0, len(line), 1) + line.encode("utf-16-le")
        )
    return ole({"Workbook": head + sheet + record(0x0A, b"")})


def doc(text, encrypted=False):
    """A document of Word 97: a paragraph for each line, in one piece of 16-bit characters."""
    body = "".join(f"{line}\r" for line in text.splitlines()).encode("utf-16-le")
    characters, start = len(body) // 2, 2048
    fib = bytearray(start)
    struct.pack_into(
        "<HHHHHH", fib, 0, 0xA5EC, 0xC1, 0, 0x409, 0, 0x0200 | (0x0100 if encrypted else 0)
    )
    struct.pack_into("<II", fib, 0x18, start, start + len(body))
    struct.pack_into("<H", fib, 0x20, 14)
    struct.pack_into("<H", fib, 0x3E, 22)
    struct.pack_into("<I", fib, 0x4C, characters)
    struct.pack_into("<H", fib, 0x98, 0x5D)
    pieces = struct.pack("<II", 0, characters) + struct.pack("<HIH", 0, start, 0)
    table = b"\2" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<II", fib, 0x1A2, 0, len(table))
    return ole({"WordDocument": bytes(fib) + body, "1Table": table})
