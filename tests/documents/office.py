"""Office files made by hand, part by part, so that each holds what writers' libraries do not write."""

from __future__ import annotations

import io
import struct
import zipfile

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
REL = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
DRAW = (
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"
ODF = " ".join(
    [*(f'xmlns:{name}="{OFFICE}{name}:1.0"' for name in ("office", "text", "table", "style", "presentation")),
     f'xmlns:draw="{OFFICE}drawing:1.0"', 'xmlns:xlink="http://www.w3.org/1999/xlink"', 'xmlns:dc="http://purl.org/dc/elements/1.1/"']
)  # fmt: skip


def packed(parts: dict[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def types(kind: str) -> str:
    return f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override ContentType="{kind}"/></Types>'


def relations(targets: dict[str, tuple[str, bool]]) -> str:
    rows = "".join(
        f'<Relationship Id="{key}" Type="x" Target="{target}"{" TargetMode=" + chr(34) + "External" + chr(34) if external else ""}/>'
        for key, (target, external) in targets.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def p(text: str, about: str = "") -> str:
    return f"<w:p>{f'<w:pPr>{about}</w:pPr>' if about else ''}{text}</w:p>"


def t(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def numbered(text: str, level: int = 0) -> str:
    return p(t(text), f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>')


def word(body: str, **parts: str) -> bytes:
    """``parts``: further ones, by their names without ``.xml``."""
    others = {f"word/{name}.xml": content for name, content in parts.items() if name != "rels"}
    return packed(
        {
            "[Content_Types].xml": types(
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
            ),
            "word/document.xml": f"<w:document {WORD} {REL} {MATH} {DRAW}><w:body>{body}</w:body></w:document>",
            **({"word/_rels/document.xml.rels": parts["rels"]} if "rels" in parts else {}),
            **others,
        }
    )


def full_word() -> bytes:
    row = "<w:tr>{}</w:tr>"
    cell = "<w:tc>{}" + p(t("{}")) + "</w:tc>"
    table = (
        "<w:tbl>"
        + row.format(cell.format('<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>', "Wide a|b"))
        + row.format(cell.format('<w:tcPr><w:vMerge w:val="restart"/></w:tcPr>', "Tall") + cell.format("", "1"))
        + row.format(cell.format("<w:tcPr><w:vMerge/></w:tcPr>", "") + cell.format("", "2"))
        + "</w:tbl>"
    )
    box = (
        "<w:r><mc:AlternateContent><mc:Choice><w:drawing><wp:inline><wp:docPr descr='A box'/><wps:txbx><w:txbxContent>"
        + p(t("In the box"))
        + "</w:txbxContent></wps:txbx></wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><w:txbxContent>"
        + p(t("In the box"))
        + "</w:txbxContent></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    linked = (
        "<w:r><w:drawing><wp:inline><wp:docPr descr='Our logo'/><a:blip r:link='rLogo'/></wp:inline></w:drawing></w:r>"
    )
    body = (
        p(t("Contract"), '<w:pStyle w:val="berschrift1"/>')
        + numbered("First clause")
        + numbered("Inner clause", 1)
        + numbered("Second clause")
        + p(t("The price is ") + "<w:del w:author='Bert'><w:r><w:delText>100</w:delText></w:r></w:del>"
            + "<w:ins w:author='Bert'>" + t("250") + "</w:ins>" + t(" euros.") + "<w:r><w:commentReference w:id='7'/></w:r>")
        + p(t("See ") + "<w:hyperlink r:id='rLink'>" + t("the site") + "</w:hyperlink>" + t(" and the note")
            + "<w:r><w:footnoteReference w:id='2'/></w:r>" + t("."))
        + p("<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath>")
        + p(box) + p(linked) + table
        + p("<w:r><w:t>Odd<w:tab/></w:t></w:r>" + t("control&#x9;end"))
        + "<w:sectPr><w:headerReference r:id='rHead'/></w:sectPr>"
    )  # fmt: skip
    return word(
        body,
        rels=relations(
            {
                "rLink": ("https://example.org/site", True),
                "rLogo": ("https://example.org/logo.png", True),
                "rHead": ("header1.xml", False),
            }
        ),
        header1=f"<w:hdr {WORD}>{p(t('Confidential'))}</w:hdr>",
        footnotes=f"<w:footnotes {WORD}><w:footnote w:id='2'>{p(t('As of May.'))}</w:footnote></w:footnotes>",
        comments=f"<w:comments {WORD}><w:comment w:id='7' w:author='Bert'>{p(t('Too much?'))}</w:comment></w:comments>",
        styles=f"<w:styles {WORD}><w:style w:styleId='berschrift1'><w:name w:val='heading 1'/></w:style></w:styles>",
        numbering=(
            f"<w:numbering {WORD}><w:abstractNum w:abstractNumId='0'>"
            "<w:lvl w:ilvl='0'><w:numFmt w:val='decimal'/><w:lvlText w:val='§ %1.'/></w:lvl>"
            "<w:lvl w:ilvl='1'><w:numFmt w:val='lowerLetter'/><w:lvlText w:val='%1.%2)'/></w:lvl></w:abstractNum>"
            "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num></w:numbering>"
        ),
    )


def workbook(
    sheets: dict[str, str], *, state: dict[str, str] | None = None, formats: tuple[str, ...] = (), **parts: str
) -> bytes:
    """``sheets``: XML of the rows by name. Cells of style n have format n; style 0 is General."""
    about = f"<workbook {SHEET} {REL}><sheets>" + "".join(
        f'<sheet name="{name}" sheetId="{at}" state="{(state or {}).get(name, "visible")}" r:id="s{at}"/>'
        for at, name in enumerate(sheets)
    )
    styles = "".join(f'<numFmt numFmtId="{200 + at}" formatCode="{form}"/>' for at, form in enumerate(formats))
    uses = "".join(f'<xf numFmtId="{200 + at}"/>' for at in range(len(formats)))
    return packed(
        {
            "[Content_Types].xml": types("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"),
            "xl/workbook.xml": f"{about}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(
                {f"s{at}": (f"worksheets/sheet{at}.xml", False) for at in range(len(sheets))}
                | {"st": ("styles.xml", False)}
            ),
            "xl/styles.xml": f'<styleSheet {SHEET}><numFmts>{styles}</numFmts><cellXfs><xf numFmtId="0"/>{uses}</cellXfs></styleSheet>',
            **{
                f"xl/worksheets/sheet{at}.xml": f"<worksheet {SHEET} {REL}>{rows}</worksheet>"
                for at, rows in enumerate(sheets.values())
            },
            **{name.replace("__", "/"): content for name, content in parts.items()},
        }
    )


def text(place: str, value: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def number(place: str, value: str, style: int = 0) -> str:
    return f'<c r="{place}" s="{style}"><v>{value}</v></c>'


def full_workbook() -> bytes:
    rows = (
        "<sheetData><row r='1'>"
        + "".join(text(f"{letter}1", name) for letter, name in zip("ABCDEFGH", ["EAN", "Zip", "Day", "At", "Part", "Long", "Code", "Sum"], strict=True))
        + "</row><row r='2'>"
        + number("A2", "4006381333931") + number("B2", "1067", 1) + number("C2", "45351", 2) + number("D2", "45382.104166666664", 3)
        + number("E2", "0.25", 4) + number("F2", "1.1041666666666667", 5) + text("G2", "NA")
        + "<c r='H2'><f>E3+E4</f></c></row><row r='3' hidden='1'>"
        + number("A3", "12345678901234567890") + number("E3", "0.1") + text("G3", "a|b")
        + "<c r='H3'><f t='shared' ref='H3:H4' si='0'>E3*2</f><v>0.2</v></c><c r='F3' t='b'><v>1</v></c></row><row r='4'>"
        + text("G4", "null") + "<c r='H4'><f t='shared' si='0'/><v>7</v></c><c r='F4' t='e'><v>#DIV/0!</v></c></row>"
        + "<row r='900000'>" + text("A900000", "stray") + "</row></sheetData>"
        + "<mergeCells><mergeCell ref='A1:B1'/></mergeCells><hyperlinks><hyperlink ref='G2' r:id='h'/></hyperlinks>"
    )  # fmt: skip
    comments = f"<comments {SHEET}><authors><author>Bert</author></authors><commentList><comment ref='E2' authorId='0'><text><t>sure?</t></text></comment></commentList></comments>"
    return workbook(
        {"Sales": rows, "Old": "<sheetData><row r='1'>" + text("A1", "secret") + "</row></sheetData>", "None": ""},
        state={"Old": "veryHidden"},
        formats=("00000", "dd.mm.yyyy", "yyyy-mm-dd hh:mm", "0.0%", "[h]:mm"),
        **{
            "xl/worksheets/_rels/sheet0.xml.rels": relations(
                {"h": ("https://example.org/na", True), "c": ("../comments1.xml", False)}
            ),
            "xl/comments1.xml": comments,
        },
    )


def binary_workbook() -> bytes:
    """An ``.xlsb``."""

    def record(kind: int, data: bytes = b"") -> bytes:
        head = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
        return head + bytes([len(data)]) + data

    def wide(value: str) -> bytes:
        return struct.pack("<I", len(value)) + value.encode("utf-16-le")

    book = (
        record(131)
        + record(143)
        + record(156, struct.pack("<II", 0, 1) + wide("rId1") + wide("Stock"))
        + record(144)
        + record(132)
    )
    cells = record(0, struct.pack("<IIHHI", 0, 0, 300, 0, 0) + b"\0")
    cells += record(6, struct.pack("<II", 0, 0) + wide("EAN")) + record(5, struct.pack("<IId", 1, 0, 4006381333931.0))
    sheet = (
        record(129) + record(148, struct.pack("<IIII", 0, 0, 0, 1)) + record(145) + cells + record(146) + record(130)
    )
    return packed(
        {
            "[Content_Types].xml": types("application/vnd.ms-excel.sheet.binary.macroEnabled.main"),
            "xl/workbook.bin": book,
            "xl/_rels/workbook.bin.rels": relations({"rId1": ("worksheets/sheet1.bin", False)}).replace(
                'Type="x"', 'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"'
            ),
            "xl/worksheets/sheet1.bin": sheet,
        }
    )


def open_document(kind: str, body: str, styles: str = "", *, manifest: str = "") -> bytes:
    """``kind``: text, spreadsheet or presentation."""
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:document-content {ODF}><office:automatic-styles>{styles}</office:automatic-styles><office:body>"
            f"<office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
        }
    )


def full_odt() -> bytes:
    return open_document(
        "text",
        "<text:tracked-changes><text:changed-region text:id='c1'><text:deletion><text:p>old</text:p></text:deletion></text:changed-region>"
        "</text:tracked-changes><text:h text:outline-level='2'>Offer</text:h>"
        "<text:p>Two<text:s text:c='2'/>words <text:change text:change-id='c1'/>"
        "<text:change-start text:change-id='c2'/>new<text:change-end text:change-id='c2'/>"
        "<office:annotation><dc:creator>Bert</dc:creator><text:p>why?</text:p></office:annotation>"
        " <text:a xlink:href='https://example.org/'>site</text:a>"
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>As of May.</text:p></text:note-body></text:note></text:p>"
        "<text:list text:style-name='N'><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>inner</text:p></text:list-item>"
        "</text:list></text:list-item><text:list-item><text:p>two</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b|c</text:p>"
        "</table:table-cell></table:table-row></table:table>",
        "<text:list-style style:name='N'><text:list-level-style-number text:level='1'/></text:list-style>",
    )


def full_ods() -> bytes:
    def cell(kind: str, value: str, shown: str, more: str = "") -> str:
        name = {"date": "date-value", "boolean": "boolean-value"}.get(kind, "value")
        return f"<table:table-cell office:value-type='{kind}' office:{name}='{value}' {more}><text:p>{shown}</text:p></table:table-cell>"

    row = (
        cell("float", "4006381333931", "4.01E+12") + cell("date", "2024-02-29T00:00:00", "29.02.24") + cell("percentage", "0.25", "25 %")
        + cell("boolean", "true", "WAHR") + cell("float", "7", "7", "table:formula='of:=[.A1]+1' table:number-columns-repeated='2'")
        + "<table:table-cell table:number-columns-repeated='16000'/>"
    )  # fmt: skip
    return open_document(
        "spreadsheet",
        f"<table:table table:name='Sales'><table:table-row>{row}</table:table-row><table:table-row table:number-rows-repeated='1048000'>"
        "<table:table-cell/></table:table-row></table:table><table:table table:name='Old' table:style-name='H'><table:table-row>"
        "<table:table-cell office:value-type='string'><text:p>secret</text:p></table:table-cell></table:table-row></table:table>",
        "<style:style style:name='H'><style:table-properties table:display='false'/></style:style>",
    )


def full_odp() -> bytes:
    page = "<draw:page draw:style-name='{}'><draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>{}</draw:page>"
    notes = "<presentation:notes><draw:frame><draw:text-box><text:p>Say hello</text:p></draw:text-box></draw:frame></presentation:notes>"
    return open_document(
        "presentation",
        page.format("D", "Start", notes) + page.format("H", "Spare", ""),
        "<style:style style:name='H'><style:drawing-page-properties presentation:visibility='hidden'/></style:style>",
    )


def book() -> bytes:
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container><rootfiles><rootfile full-path='O/c.opf'/></rootfiles></container>",
            "O/c.opf": "<package><metadata><title>Deer</title><creator>Anna Berg</creator></metadata><manifest><item id='b' href='b%20x.xhtml'/>"
            "<item id='a' href='a.xhtml'/></manifest><spine><itemref idref='a'/><itemref idref='b'/></spine></package>",
            "O/a.xhtml": "<html><body><h1>One</h1><p>First chapter.</p></body></html>",
            "O/b x.xhtml": "<html><body><h1>Two</h1><p>Second <b>chapter</b>.</p></body></html>",
        }
    )
