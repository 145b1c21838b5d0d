"""Turn a Markdown file into a Word document with real styles, a table of contents, tables, pictures and page numbers."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import markdown
import yaml
from bs4 import BeautifulSoup, NavigableString, Tag
from docx import Document
from docx.enum.section import WD_ORIENT
from docx.enum.style import WD_STYLE_TYPE
from docx.enum.table import WD_TABLE_ALIGNMENT
from docx.enum.text import WD_ALIGN_PARAGRAPH, WD_BREAK
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from docx.shared import Mm, Pt, RGBColor
from word_parts import bookmark, cell_border, east_asian, field, numbering, shade

PAPERS = {"a4": (210, 297), "letter": (215.9, 279.4)}
SIZES = {1: 20, 2: 15, 3: 12.5, 4: 11}
SOURCE = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
CITED = re.compile(r"\[\d+(?:\s*[-–,;]\s*\d+)*\]")
LINKED = re.compile(rf"({CITED.pattern}|https?://[^\s<>]*[\w/])")


class Writer:
    """Writes the parts of one document.

    Args:
        settings: of the front matter: title, subtitle, author, date, toc, cover, paper, font, color, header, number_headings.
        base: where relative paths of pictures start.
    """

    def __init__(self, settings: dict, base: Path) -> None:
        self.settings, self.base = settings, base
        self.document = Document()
        self.color = str(settings.get("color", "1F4E79")).lstrip("#")
        self.font = settings.get("font", "Calibri")
        self.headings: list[tuple[int, str, str]] = []
        self.counts = [0] * 6
        self.captions = {"Figure": 0, "Table": 0}
        self.problems: list[str] = []
        self.sources: set[str] = set()
        self._page()
        self._styles()

    def _page(self) -> None:
        section = self.document.sections[0]
        width, height = PAPERS[str(self.settings.get("paper", "a4")).lower()]
        if self.settings.get("landscape"):
            width, height, section.orientation = height, width, WD_ORIENT.LANDSCAPE
        section.page_width, section.page_height = Mm(width), Mm(height)
        section.left_margin = section.right_margin = Mm(25)
        section.top_margin, section.bottom_margin = Mm(24), Mm(22)
        self.width = section.page_width - section.left_margin - section.right_margin
        section.different_first_page_header_footer = bool(self.settings.get("cover", True))
        header = section.header.paragraphs[0]
        header.text = str(self.settings.get("header", self.settings.get("title", "")))
        header.runs[0].font.size, header.runs[0].font.color.rgb = Pt(9), RGBColor(0x70, 0x78, 0x80)
        footer = section.footer.paragraphs[0]
        footer.alignment = WD_ALIGN_PARAGRAPH.RIGHT
        field(footer, "PAGE", "1", size=9)

    def _styles(self) -> None:
        styles = self.document.styles
        normal = styles["Normal"]
        normal.font.name, normal.font.size = self.font, Pt(10.5)
        normal.paragraph_format.space_after, normal.paragraph_format.line_spacing = Pt(7), 1.18
        east_asian(normal.element, self.settings.get("east_asian_font", "Microsoft YaHei"))
        for level, size in SIZES.items():
            style = styles[f"Heading {level}"]
            style.font.name, style.font.size, style.font.bold = self.font, Pt(size), True
            style.font.color.rgb = RGBColor.from_string(self.color if level < 3 else "333333")
            style.paragraph_format.space_before, style.paragraph_format.space_after = Pt(22 - 4 * level), Pt(5)
            style.paragraph_format.keep_with_next = True
            east_asian(style.element, self.settings.get("east_asian_font", "Microsoft YaHei"))
        for name, size, color in (("Title", 32, self.color), ("Subtitle", 15, "5A6570"), ("Caption", 9, "5A6570")):
            style = styles[name]
            style.font.name, style.font.size, style.font.italic = self.font, Pt(size), False
            style.font.bold, style.font.color.rgb = name == "Title", RGBColor.from_string(color)
            east_asian(style.element, self.settings.get("east_asian_font", "Microsoft YaHei"))
            for border in style.element.iter(qn("w:pBdr")):
                border.getparent().remove(border)
                break
        quote = styles["Intense Quote"]
        quote.font.italic, quote.font.bold, quote.font.color.rgb = False, False, RGBColor(0x33, 0x3D, 0x47)
        code = styles.add_style("Code", WD_STYLE_TYPE.PARAGRAPH)
        code.base_style, code.font.name, code.font.size = normal, "Consolas", Pt(9)
        code.paragraph_format.line_spacing, code.paragraph_format.space_after = 1.0, Pt(0)
        for level in (1, 2, 3):
            style = styles.add_style(f"TOC {level}", WD_STYLE_TYPE.PARAGRAPH)
            style.base_style = normal
            style.paragraph_format.left_indent, style.paragraph_format.space_after = Mm(6 * (level - 1)), Pt(3)
            style.paragraph_format.tab_stops.add_tab_stop(self.width, 2, 1)
            style.font.bold = level == 1

    # the parts ------------------------------------------------------------------------------------------------------

    def write(self, text: str) -> Document:
        self.sources = set(SOURCE.findall(text))
        # Sources in lines of their own are paragraphs of their own.
        text = re.sub(r"^(\[\d+\] .*)\n(?=\[\d+\] )", r"\1\n\n", text, flags=re.MULTILINE)
        text = re.sub(r"\[citation:\s*", "[", text)
        soup = BeautifulSoup(
            markdown.markdown(text, extensions=["tables", "fenced_code", "sane_lists", "footnotes"]), "lxml"
        )
        settings, body = self.settings, soup.body or Tag(name="body")
        core = self.document.core_properties
        core.title, core.author = str(settings.get("title", "")), str(settings.get("author", ""))
        core.subject, core.comments = str(settings.get("subtitle", "")), ""
        first = body.find("h1")
        top = (
            2
            if first is not None and first.get_text() == settings.get("title") and len(body.find_all("h1")) == 1
            else 1
        )
        if top == 2:
            first.decompose()
        for heading in body.find_all(re.compile("^h[1-6]$")):
            level = max(1, int(heading.name[1]) - top + 1)
            name = self._numbered(heading.get_text(), level)
            self.headings.append((level, name, f"_Toc{len(self.headings) + 1:06}"))
        self._cover()
        self._contents()
        rest = iter(self.headings)
        for element in body.children:
            if isinstance(element, Tag):
                self._block(element, rest)
        return self.document

    def _numbered(self, text: str, level: int) -> str:
        if not self.settings.get("number_headings") or level > 3:
            return text
        self.counts[level - 1] += 1
        self.counts[level:] = [0] * (6 - level)
        return ".".join(str(count) for count in self.counts[:level]) + "  " + text

    def _cover(self) -> None:
        settings, document = self.settings, self.document
        if not settings.get("title"):
            return
        cover = settings.get("cover", True)
        title = document.add_paragraph(str(settings["title"]), style="Title")
        title.paragraph_format.space_before = Pt(170 if cover else 0)
        if settings.get("subtitle"):
            document.add_paragraph(str(settings["subtitle"]), style="Subtitle")
        line = " · ".join(str(settings[key]) for key in ("author", "date") if settings.get(key))
        if line:
            paragraph = document.add_paragraph()
            paragraph.add_run(line).font.color.rgb = RGBColor(0x5A, 0x65, 0x70)
            paragraph.paragraph_format.space_before = Pt(10)
        if cover:
            document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)

    def _contents(self) -> None:
        if not self.settings.get("toc", len(self.headings) > 5):
            return
        self.document.add_paragraph(str(self.settings.get("toc_title", "Contents")), style="Subtitle")
        shown = [entry for entry in self.headings if entry[0] <= 3]
        for index, (level, text, mark) in enumerate(shown):
            paragraph = self.document.add_paragraph(style=f"TOC {level}")
            if index == 0:
                field(paragraph, 'TOC \\o "1-3" \\h \\z \\u', None, begin_only=True)
            link = OxmlElement("w:hyperlink")
            link.set(qn("w:anchor"), mark)
            run = paragraph.add_run(f"{text}\t")
            link.append(run._r)
            paragraph._p.append(link)
            field(paragraph, f"PAGEREF {mark} \\h", "…")
            if index == len(shown) - 1:
                field(paragraph, "", None, end_only=True)
        # Word fills in the page numbers when the document is opened.
        self.document.settings.element.append(parse_xml(f'<w:updateFields {nsdecls("w")} w:val="true"/>'))
        self.document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)

    def _block(self, element: Tag, headings, style: str | None = None) -> None:
        name = element.name
        if re.fullmatch("h[1-6]", name):
            level, text, mark = next(headings)
            paragraph = self.document.add_heading(text, min(level, 4))
            bookmark(paragraph, mark, self.headings.index((level, text, mark)) + 1)
        elif name in ("ul", "ol"):
            self._list(element, 0)
        elif name == "table":
            self._table(element)
        elif name == "pre":
            self._code(element.get_text().rstrip("\n"))
        elif name == "blockquote":
            for child in element.find_all("p"):
                self._inline(self.document.add_paragraph(style="Intense Quote"), child)
        elif name == "hr":
            self.document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
        elif name == "div":  # footnotes
            self.document.add_heading(str(self.settings.get("notes_title", "Notes")), 2)
            self._list(element.find("ol"), 0)
        elif element.find("img"):
            for picture in element.find_all("img"):
                self._picture(picture)
        elif text := element.get_text().strip():
            caption = re.match(r"(?:Table|表)[:：]\s*(.+)", text)
            if caption:
                self._caption("Table", caption[1])
            else:
                paragraph = self.document.add_paragraph(style=style)
                if source := SOURCE.match(text):
                    bookmark(paragraph, f"_Source{source[1]}", 10_000 + int(source[1]))
                    paragraph.add_run(source[0])
                    first = next(element.strings)
                    first.replace_with(SOURCE.sub("", first.lstrip(), count=1))
                self._inline(paragraph, element)

    def _inline(self, paragraph, element: Tag, **form: bool) -> None:
        for child in element.children:
            if isinstance(child, NavigableString):
                text = re.sub(r"\s+", " ", str(child))
                for piece in [text] if form.get("code") else LINKED.split(text):
                    if piece.startswith("http") and LINKED.fullmatch(piece):
                        self._link(paragraph, piece, piece)
                        continue
                    for part in re.split(r"(\d+)", piece) if CITED.fullmatch(piece) else [piece] * bool(piece):
                        self._text(paragraph, part, form, cites=piece != part)
            elif child.name == "br":
                paragraph.add_run().add_break()
            elif child.name == "a" and str(child.get("href", "")).startswith(("http", "mailto:")):
                self._link(paragraph, child.get_text(), str(child["href"]))
            elif child.name == "sup":
                paragraph.add_run(child.get_text()).font.superscript = True
            elif child.name not in ("ul", "ol"):
                kinds = {"strong": "bold", "b": "bold", "em": "italic", "i": "italic", "code": "code", "del": "strike"}
                self._inline(paragraph, child, **{**form, **({kinds[child.name]: True} if child.name in kinds else {})})

    def _text(self, paragraph, text: str, form: dict[str, bool], cites: bool) -> None:
        run = paragraph.add_run(text)
        run.bold, run.italic, run.font.strike = form.get("bold"), form.get("italic"), form.get("strike")
        if form.get("code"):
            run.font.name, run.font.size = "Consolas", Pt(9.5)
        if cites and text in self.sources:
            link = OxmlElement("w:hyperlink")
            link.set(qn("w:anchor"), f"_Source{text}")
            link.append(run._r)
            paragraph._p.append(link)

    def _link(self, paragraph, text: str, address: str) -> None:
        link = OxmlElement("w:hyperlink")
        link.set(qn("r:id"), paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
        run = paragraph.add_run(text)
        run.font.color.rgb, run.font.underline = RGBColor(0x1F, 0x5F, 0xB4), True
        link.append(run._r)
        paragraph._p.append(link)

    def _list(self, element: Tag, depth: int) -> None:
        style = "List Number" if element.name == "ol" else "List Bullet"
        number = numbering(self.document, style) if element.name == "ol" else None
        for item in element.find_all("li", recursive=False):
            for back in item.select("a.footnote-backref"):
                back.decompose()
            paragraph = self.document.add_paragraph(style=style if depth == 0 else f"{style} {min(depth + 1, 3)}")
            paragraph.paragraph_format.space_after = Pt(3)
            if number is not None and depth == 0:
                properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
                properties.get_or_add_ilvl().val, properties.get_or_add_numId().val = 0, number
            self._inline(paragraph, item)
            for inner in item.find_all(["ul", "ol"], recursive=False):
                self._list(inner, depth + 1)

    def _table(self, element: Tag) -> None:
        rows = [row.find_all(["th", "td"]) for row in element.find_all("tr")]
        columns = max(map(len, rows))
        table = self.document.add_table(len(rows), columns)
        table.alignment, table.autofit = WD_TABLE_ALIGNMENT.CENTER, False
        longest = [max(len(row[i].get_text()) if i < len(row) else 0 for row in rows) for i in range(columns)]
        weights = [min(max(length, 6), 48) for length in longest]
        for r, row in enumerate(rows):
            for c, source in enumerate(row):
                cell = table.cell(r, c)
                cell.width = int(self.width * weights[c] / sum(weights))
                paragraph = cell.paragraphs[0]
                paragraph.paragraph_format.space_before = paragraph.paragraph_format.space_after = Pt(3)
                self._inline(paragraph, source, bold=r == 0 or None)
                numeric = (
                    r > 0 and c > 0 and re.fullmatch(r"[-+−]?[$€£¥]?[\d.,\s]+ ?[%KMB€]?", source.get_text().strip())
                )
                if numeric or "right" in str(source.get("style", "")):
                    paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
                for run in paragraph.runs:
                    run.font.size = Pt(9.5)
                    if r == 0:
                        run.font.color.rgb = RGBColor(0xFF, 0xFF, 0xFF)
                if r == 0:
                    shade(cell, self.color)
                    if (
                        c
                        and rows[-1][c : c + 1]
                        and re.fullmatch(r"[-+−]?[$€£¥]?[\d.,\s]+ ?[%KMB€]?", rows[-1][c].get_text().strip())
                    ):
                        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
                cell_border(cell, "D5DBE1")
        table.rows[0]._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {nsdecls('w')}/>"))
        for row in table.rows:
            row._tr.get_or_add_trPr().append(parse_xml(f"<w:cantSplit {nsdecls('w')}/>"))
        self.document.add_paragraph().paragraph_format.space_after = Pt(2)

    def _code(self, text: str) -> None:
        cell = self.document.add_table(1, 1).cell(0, 0)
        shade(cell, "F3F5F7")
        for index, line in enumerate(text.split("\n")):
            paragraph = cell.paragraphs[0] if index == 0 else cell.add_paragraph()
            paragraph.style = "Code"
            paragraph.add_run(line)
        self.document.add_paragraph().paragraph_format.space_after = Pt(2)

    def _picture(self, picture: Tag) -> None:
        path = Path(str(picture.get("src", "")))
        path = path if path.is_absolute() else self.base / path
        if not path.is_file():
            self.problems.append(f"The picture {path} does not exist.")
            return
        try:
            shape = self.document.add_picture(str(path))
        except Exception as error:
            self.problems.append(f"The picture {path} cannot be used ({type(error).__name__}); give PNG or JPEG.")
            return
        limit = min(self.width / shape.width, Mm(150) / shape.height, 1)
        shape.width, shape.height = int(shape.width * limit), int(shape.height * limit)
        paragraph = self.document.paragraphs[-1]
        paragraph.alignment, paragraph.paragraph_format.keep_with_next = WD_ALIGN_PARAGRAPH.CENTER, True
        if alt := str(picture.get("alt", "")):
            shape._inline.docPr.set("descr", alt)
            self._caption("Figure", alt)

    def _caption(self, kind: str, text: str) -> None:
        self.captions[kind] += 1
        words = self.settings.get("captions", {})
        paragraph = self.document.add_paragraph(style="Caption")
        paragraph.paragraph_format.keep_with_next = kind == "Table"
        paragraph.alignment = WD_ALIGN_PARAGRAPH.CENTER if kind == "Figure" else WD_ALIGN_PARAGRAPH.LEFT
        paragraph.add_run(f"{words.get(kind.lower(), kind)} ")
        field(paragraph, f"SEQ {kind} \\* ARABIC", str(self.captions[kind]), size=9)
        paragraph.add_run(f"  {text}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="a Markdown file; settings between --- lines at its beginning")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    text, settings = options.source.read_text("utf-8"), {}
    if found := re.match(r"---\n(.*?)\n---\n", text, re.DOTALL):
        settings, text = yaml.safe_load(found[1]) or {}, text[found.end() :]
    writer = Writer(settings, options.source.absolute().parent)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    writer.write(text).save(str(options.output))
    print(json.dumps({"file": str(options.output), "headings": len(writer.headings), **writer.captions}))
    for problem in writer.problems:
        print(problem, file=sys.stderr)
    return 1 if writer.problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
