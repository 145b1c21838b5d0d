"""Make a PDF from Markdown: headings with bookmarks, lists, tables, pictures, page numbers; Chinese, Japanese, Korean too."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import markdown
import yaml
from bs4 import BeautifulSoup, NavigableString, Tag
from reportlab.lib.colors import HexColor, white
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4, LETTER, landscape
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFError, TTFont
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    Image,
    ListFlowable,
    ListItem,
    PageBreak,
    PageTemplate,
    Paragraph,
    Preformatted,
    Spacer,
    Table,
)

FAMILIES = (
    ("dejavu", "DejaVuSans{}.ttf", ("", "-Bold", "-Oblique")),
    ("liberation*", "LiberationSans-{}.ttf", ("Regular", "Bold", "Italic")),
)
EAST = re.compile(r"([\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60]+)")
SOURCE = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
CITED = re.compile(r"\[\d+(?:\s*[-–,;]\s*\d+)*\]")
LINKED = re.compile(rf"({CITED.pattern}|https?://[^\s<>]*[\w/)])")
INK, MUTED, LINE = HexColor("#1f2933"), HexColor("#66727f"), HexColor("#d5dbe1")


def use_fonts(text: str) -> tuple[str, str]:
    """The fonts for Latin and for East Asian letters. DejaVu or Liberation if they are here, else Helvetica."""
    east = (
        "HYSMyeongJo-Medium"
        if re.search("[\uac00-\ud7af]", text)
        else "HeiseiKakuGo-W5"
        if re.search("[\u3040-\u30ff]", text)
        else "STSong-Light"
    )
    pdfmetrics.registerFont(UnicodeCIDFont(east))
    for folder, pattern, cuts in FAMILIES:
        found = [next(Path("/usr/share/fonts").glob(f"truetype/{folder}/{pattern.format(cut)}"), None) for cut in cuts]
        if found[0] is None or found[1] is None:
            continue
        try:
            for name, path in zip(("Body", "Body-Bold", "Body-Italic"), found, strict=True):
                pdfmetrics.registerFont(TTFont(name, str(path or found[0])))
        except TTFError:
            continue
        pdfmetrics.registerFontFamily(
            "Body", normal="Body", bold="Body-Bold", italic="Body-Italic", boldItalic="Body-Bold"
        )
        return "Body", east
    return "Helvetica", east


class Writer:
    """Turns Markdown into what reportlab places on pages."""

    def __init__(self, settings: dict, base: Path, text: str, width: float) -> None:
        self.settings, self.base, self.width = settings, base, width
        self.font, self.east = use_fonts(text + str(settings))
        bold = "Helvetica-Bold" if self.font == "Helvetica" else f"{self.font}-Bold"
        color = HexColor("#" + str(settings.get("color", "1F4E79")).lstrip("#"))
        self.color = color
        cjk = "CJK" if len(EAST.findall(text)) > 20 else None
        self.body = ParagraphStyle(
            "body", fontName=self.font, fontSize=10, leading=15, textColor=INK, spaceAfter=6, wordWrap=cjk
        )
        self.cell = ParagraphStyle("cell", self.body, fontSize=9, leading=12, spaceAfter=0)
        self.headings = [
            ParagraphStyle(
                f"h{n}",
                self.body,
                fontName=bold,
                fontSize=size,
                leading=size * 1.25,
                textColor=color if n < 3 else INK,
                spaceBefore=size * 0.9,
                spaceAfter=5,
                keepWithNext=1,
            )
            for n, size in ((1, 19), (2, 14.5), (3, 12), (4, 10.5))
        ]
        self.title = ParagraphStyle("title", self.headings[0], fontSize=27, leading=33, spaceBefore=0, spaceAfter=4)
        self.small = ParagraphStyle("small", self.body, fontSize=9, textColor=MUTED, spaceAfter=12)
        self.quote = ParagraphStyle("quote", self.body, leftIndent=12, textColor=MUTED, borderPadding=(2, 2, 2, 10))
        self.problems: list[str] = []
        self.sources: set[str] = set()
        self.captions = {"Figure": 0, "Table": 0}

    def inline(self, element: Tag, *, links: bool = True) -> str:
        """The markup of reportlab for the formatted text of an element. ``links``: numbers of sources and addresses lead there."""
        parts = []
        for child in element.children:
            if isinstance(child, NavigableString):
                text = re.sub(r"\s+", " ", str(child))
                parts += [self.linked(piece) for piece in LINKED.split(text)] if links else [self.plain(text)]
            elif child.name == "br":
                parts.append("<br/>")
            elif child.name == "a":
                address = escape(str(child.get("href", "")), {'"': "&quot;"})
                parts.append(
                    f'<a href="{address}" color="#1f5fb4">{self.inline(child, links=False)}</a>'
                    if address.startswith(("http", "mailto:"))
                    else self.inline(child, links=False)
                )
            elif child.name not in ("ul", "ol"):
                marks = {"strong": "b", "em": "i", "code": 'font face="Courier"', "sup": "super", "del": "strike"}
                mark, inner = marks.get(child.name), self.inline(child, links=links and child.name != "code")
                parts.append(f"<{mark}>{inner}</{mark.split()[0]}>" if mark else inner)
        return "".join(parts)

    def linked(self, piece: str) -> str:
        if CITED.fullmatch(piece):
            return re.sub(
                r"\d+",
                lambda number: (
                    f'<a href="#source-{number[0]}" color="#1f5fb4">{number[0]}</a>'
                    if number[0] in self.sources
                    else number[0]
                ),
                piece,
            )
        if LINKED.fullmatch(piece):
            address, rest = (piece, "") if "(" in piece else (piece.rstrip(")"), ")" * piece.endswith(")"))
            safe = escape(address, {'"': "&quot;"})
            return f'<a href="{safe}" color="#1f5fb4">{safe}</a>{rest}'
        return self.plain(piece)

    def story(self, text: str) -> list:
        self.sources = set(SOURCE.findall(text))
        # Sources in lines of their own are paragraphs of their own.
        text = re.sub(r"^(\[\d+\] .*)\n(?=\[\d+\] )", r"\1\n\n", text, flags=re.MULTILINE)
        text = re.sub(r"\[citation:\s*", "[", text)
        body = BeautifulSoup(
            markdown.markdown(text, extensions=["tables", "fenced_code", "sane_lists"]), "lxml"
        ).body or Tag(name="body")
        parts: list = []
        if self.settings.get("title"):
            first = body.find("h1")
            if first is not None and first.get_text().strip() == str(self.settings["title"]).strip():
                first.decompose()  # it stands above already
            parts.append(Paragraph(self.plain(str(self.settings["title"])), self.title))
            line = " · ".join(
                str(self.settings[key]) for key in ("subtitle", "author", "date") if self.settings.get(key)
            )
            parts.append(Paragraph(self.plain(line), self.small))
        for element in body.children:
            if isinstance(element, Tag):
                parts += self.block(element)
        return parts

    def plain(self, text: str) -> str:
        return EAST.sub(rf'<font name="{self.east}">\1</font>', escape(text))

    def block(self, element: Tag) -> list:
        name = element.name
        if re.fullmatch("h[1-6]", name):
            level = min(int(name[1]), 4)
            paragraph = Paragraph(self.inline(element), self.headings[level - 1])
            paragraph.outline = (element.get_text(), level - 1)  # type: ignore[attr-defined]
            return [paragraph]
        if name in ("ul", "ol"):
            return [self.list(element), Spacer(1, 5)]
        if name == "table":
            return [self.table(element), Spacer(1, 10)]
        if name == "pre":
            style = ParagraphStyle(
                "code",
                fontName="Courier",
                fontSize=8.5,
                leading=11,
                backColor=HexColor("#f3f5f7"),
                borderPadding=6,
                spaceBefore=6,
                spaceAfter=12,
            )
            return [Preformatted(element.get_text().rstrip("\n"), style, maxLineLength=int(self.width / 5.2))]
        if name == "blockquote":
            return [Paragraph(self.inline(child), self.quote) for child in element.find_all("p")]
        if name == "hr":
            return [PageBreak()]
        if element.find("img"):
            return [part for picture in element.find_all("img") for part in self.picture(picture)]
        text = element.get_text().strip()
        if found := re.match(r"(Table|Figure|表|图)[:：]\s*(.+)", text):
            return [self.caption("Table" if found[1] in ("Table", "表") else "Figure", found[2])]
        anchor = f'<a name="source-{source[1]}"/>' if (source := SOURCE.match(text)) else ""
        if source:  # its own number leads nowhere
            first = next(element.strings)
            first.replace_with(first.lstrip().removeprefix(source[0]))
            anchor += source[0]
        return [Paragraph(anchor + self.inline(element), self.body)] if text else []

    def caption(self, kind: str, text: str) -> Paragraph:
        self.captions[kind] += 1
        word = self.settings.get("captions", {}).get(kind.lower(), kind)
        style = ParagraphStyle("caption", self.small, keepWithNext=int(kind == "Table"))
        return Paragraph(self.plain(f"{word} {self.captions[kind]}  {text}"), style)

    def list(self, element: Tag) -> ListFlowable:
        items = []
        for item in element.find_all("li", recursive=False):
            inner = [self.list(child) for child in item.find_all(["ul", "ol"], recursive=False)]
            items.append(
                ListItem([Paragraph(self.inline(item), ParagraphStyle("item", self.body, spaceAfter=3)), *inner])
            )
        numbered = element.name == "ol"
        return ListFlowable(
            items,
            bulletType="1" if numbered else "bullet",
            start=None if numbered else "•",
            bulletFontSize=9.5,
            leftIndent=16,
            bulletFormat="%s." if numbered else None,
            bulletColor=self.color,
        )

    def table(self, element: Tag) -> Table:
        rows = [row.find_all(["th", "td"]) for row in element.find_all("tr")]
        columns = max(map(len, rows))
        rows = [row + [Tag(name="td")] * (columns - len(row)) for row in rows]
        right = [
            all(re.fullmatch(r"[-+−]?[$€£¥]?[\d.,\s]+ ?[%KMB€]?|", row[i].get_text().strip()) for row in rows[1:])
            and i > 0
            for i in range(columns)
        ]
        head = ParagraphStyle("head", self.cell, textColor=white, fontName=self.headings[0].fontName)
        styles = [
            [
                ParagraphStyle("c", head if r == 0 else self.cell, alignment=TA_RIGHT if right[i] else 0)
                for i in range(columns)
            ]
            for r in range(len(rows))
        ]
        cells = [
            [Paragraph(self.inline(cell), styles[r][i]) for i, cell in enumerate(row)] for r, row in enumerate(rows)
        ]
        weights = [min(max(max(len(row[i].get_text()) for row in rows), 6), 45) for i in range(columns)]
        table = Table(cells, colWidths=[self.width * weight / sum(weights) for weight in weights], repeatRows=1)
        table.setStyle(
            [
                ("BACKGROUND", (0, 0), (-1, 0), self.color),
                ("LINEBELOW", (0, 1), (-1, -1), 0.5, LINE),
                ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
                ("TOPPADDING", (0, 0), (-1, -1), 4),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 5),
            ]
        )
        return table

    def picture(self, picture: Tag) -> list:
        path = Path(str(picture.get("src", "")))
        path = path if path.is_absolute() else self.base / path
        if not path.is_file():
            self.problems.append(f"The picture {path} does not exist.")
            return []
        width, height = ImageReader(str(path)).getSize()
        scale = min(self.width / width, 150 * mm / height, 0.75)
        caption = [self.caption("Figure", str(picture["alt"]))] if picture.get("alt") else []
        return [Image(str(path), width * scale, height * scale), *caption]


class Pages(BaseDocTemplate):
    """Pages with a number below, and a bookmark for each heading."""

    def afterFlowable(self, flowable) -> None:
        if outline := getattr(flowable, "outline", None):
            text, level = outline
            level = min(level, getattr(self, "last_level", -1) + 1)
            self.last_level = level
            key = f"h{id(flowable)}"
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(text, key, level=level, closed=level > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "source",
        type=Path,
        help="a Markdown file; settings between --- lines: title, subtitle, author, date, paper, landscape, color",
    )
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    text, settings = options.source.read_text("utf-8"), {}
    if found := re.match(r"---\n(.*?)\n---\n", text, re.DOTALL):
        settings, text = yaml.safe_load(found[1]) or {}, text[found.end() :]
    paper = LETTER if str(settings.get("paper")).lower() == "letter" else A4
    paper = landscape(paper) if settings.get("landscape") else paper
    margin = 22 * mm
    writer = Writer(settings, options.source.absolute().parent, text, paper[0] - 2 * margin)
    options.output.parent.mkdir(parents=True, exist_ok=True)

    def number(canvas, document) -> None:
        canvas.setFont(writer.font, 8.5)
        canvas.setFillColor(MUTED)
        canvas.drawRightString(paper[0] - margin, 12 * mm, str(document.page))

    document = Pages(
        str(options.output),
        pagesize=paper,
        title=str(settings.get("title", "")),
        author=str(settings.get("author", "")),
    )
    frame = Frame(margin, 20 * mm, paper[0] - 2 * margin, paper[1] - 40 * mm, leftPadding=0, rightPadding=0)
    document.addPageTemplates([PageTemplate("page", [frame], onPage=number)])
    document.build(writer.story(text))
    print(f"{options.output}: {document.page} pages")
    for problem in writer.problems:
        print(problem, file=sys.stderr)
    return 1 if writer.problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
