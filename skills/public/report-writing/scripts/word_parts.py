"""Parts of Word's XML that python-docx has no call for."""

from __future__ import annotations

import copy

from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from docx.shared import Pt


def field(
    paragraph,
    code: str,
    shown: str | None,
    *,
    size: float | None = None,
    begin_only: bool = False,
    end_only: bool = False,
) -> None:
    """A field, which Word computes; ``shown`` stands there until it does. Long fields begin and end in two calls."""

    def mark(kind: str) -> None:
        run = paragraph.add_run()
        char = OxmlElement("w:fldChar")
        char.set(qn("w:fldCharType"), kind)
        run._r.append(char)

    if not end_only:
        mark("begin")
        run = paragraph.add_run()
        text = OxmlElement("w:instrText")
        text.set(qn("xml:space"), "preserve")
        text.text = f" {code} "
        run._r.append(text)
        mark("separate")
    if shown is not None:
        run = paragraph.add_run(shown)
        if size:
            run.font.size = Pt(size)
    if not begin_only:
        mark("end")


def bookmark(paragraph, name: str, number: int) -> None:
    """A place that links and the table of contents point to."""
    start = parse_xml(f'<w:bookmarkStart {nsdecls("w")} w:id="{number}" w:name="{name}"/>')
    paragraph._p.insert(1 if paragraph._p.pPr is not None else 0, start)
    paragraph._p.append(parse_xml(f'<w:bookmarkEnd {nsdecls("w")} w:id="{number}"/>'))


def east_asian(element, font: str) -> None:
    """The font for Chinese, Japanese and Korean letters of a style; theme fonts would win over it and go."""
    fonts = element.get_or_add_rPr().get_or_add_rFonts()
    for name in [name for name in fonts.attrib if name.endswith("Theme")]:
        del fonts.attrib[name]
    fonts.set(qn("w:eastAsia"), font)
    ascii_font = fonts.get(qn("w:ascii"))
    if ascii_font:
        for name in ("w:hAnsi", "w:cs"):
            fonts.set(qn(name), ascii_font)


def shade(cell, color: str) -> None:
    cell._tc.get_or_add_tcPr().append(
        parse_xml(f'<w:shd {nsdecls("w")} w:val="clear" w:color="auto" w:fill="{color}"/>')
    )


def cell_border(cell, color: str) -> None:
    """A thin line below a cell."""
    line = f'<w:bottom w:val="single" w:sz="4" w:space="0" w:color="{color}"/>'
    properties = cell._tc.get_or_add_tcPr()
    borders = parse_xml(f"<w:tcBorders {nsdecls('w')}>{line}</w:tcBorders>")
    shading = properties.find(qn("w:shd"))
    shading.addprevious(borders) if shading is not None else properties.append(borders)


def numbering(document, style: str) -> int:
    """A list of its own that counts from one; returns its number."""
    part = document.part.numbering_part.element
    used = document.styles[style].element.pPr.numPr.numId.val
    source = next(entry for entry in part.findall(qn("w:num")) if entry.numId == used)
    made = copy.deepcopy(source)
    number = max(entry.numId for entry in part.findall(qn("w:num"))) + 1
    made.set(qn("w:numId"), str(number))
    for old in made.findall(qn("w:lvlOverride")):
        made.remove(old)
    made.append(parse_xml(f'<w:lvlOverride {nsdecls("w")} w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'))
    part.append(made)
    return number
