"""A presentation of 13.33 × 7.5 inches whose master and layouts carry the look: theme colours, fonts, places."""

from __future__ import annotations

import copy
import re

from lxml import etree
from pptx import Presentation
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls, qn
from pptx.util import Emu, Inches, Pt

LAYOUTS = {"title": 0, "content": 1, "section": 2, "two": 4, "plain": 5, "quote": 7, "picture": 8}
LEFT, WIDTH, TOP, BOTTOM = 0.75, 11.83, 1.75, 6.75
THEMES = {
    "blue": {"dark": "16324F", "accent": "2F6DB5", "second": "E8833A", "soft": "EEF3F9"},
    "green": {"dark": "173A2F", "accent": "2E8B66", "second": "D9A441", "soft": "EDF5F1"},
    "red": {"dark": "40161F", "accent": "B8324A", "second": "3A6EA5", "soft": "FAEFF1"},
    "violet": {"dark": "2A2050", "accent": "6B55C0", "second": "E0785A", "soft": "F2F0FA"},
    "grey": {"dark": "20262C", "accent": "4A5A6A", "second": "C77D2E", "soft": "F1F3F5"},
}
MORE = ["3A9D78", "C8506B", "7B62B3", "B8993A"]
PLACES = {
    "title": {0: (LEFT, 2.3, 10.6, 1.7, 44, "white", "b"), 1: (LEFT, 4.15, 10.2, 1.1, 20, "soft", "t")},
    "section": {0: (LEFT, 2.6, 10.6, 1.4, 38, "white", "b"), 1: (LEFT, 4.1, 10.2, 1.3, 18, "soft", "t")},
    "content": {0: None, 1: (LEFT, TOP, WIDTH, 4.95, 20, "ink", "t")},
    "two": {
        **{0: None, 1: (LEFT, 1.7, 5.6, 0.55, 18, "accent", "b"), 2: (LEFT, 2.4, 5.6, 4.3, 18, "ink", "t")},
        **{3: (6.98, 1.7, 5.6, 0.55, 18, "accent", "b"), 4: (6.98, 2.4, 5.6, 4.3, 18, "ink", "t")},
    },
    "plain": {0: None},
    "quote": {0: (1.6, 1.7, 10.2, 3.0, 32, "dark", "b"), 2: (1.6, 4.95, 10.2, 0.8, 18, "muted", "t")},
    "picture": {0: None, 1: (LEFT, TOP, 7.3, 4.95, 18, "ink", "t"), 2: (8.4, TOP, 4.2, 4.95, 18, "ink", "t")},
}
COLORS = {"white": "bg1", "soft": "bg2", "ink": "tx1", "dark": "tx2", "accent": "accent1", "muted": "accent6"}


def new_deck(theme: dict[str, str]):
    """An empty presentation in these colours: ``name`` of a theme, or ``dark``, ``accent``, ``second``, ``soft``; ``font``."""
    deck = Presentation()
    deck.slide_width, deck.slide_height = Inches(13.333), Inches(7.5)
    colors = {
        **THEMES[theme.get("name", "blue")],
        **{k: v.lstrip("#") for k, v in theme.items() if k not in ("name", "font", "heading_font", "east_asian_font")},
    }
    _theme(deck, colors, theme)
    keep = {deck.slide_layouts[index].name: name for name, index in LAYOUTS.items()}
    for layout in list(deck.slide_layouts):
        if layout.name not in keep:
            deck.slide_layouts.remove(layout)
    _master(deck)
    for layout in deck.slide_layouts:
        _layout(layout, keep[layout.name])
    return deck, {keep[layout.name]: layout for layout in deck.slide_layouts}


def _theme(deck, colors: dict[str, str], fonts: dict[str, str]) -> None:
    part = next(rel.target_part for rel in deck.slide_master.part.rels.values() if rel.reltype.endswith("/theme"))
    root = etree.fromstring(part.blob)
    space = {"a": "http://schemas.openxmlformats.org/drawingml/2006/main"}
    wanted = {
        "dk1": "232B33",
        "lt1": "FFFFFF",
        "dk2": colors["dark"],
        "lt2": colors["soft"],
        "accent1": colors["accent"],
        "accent2": colors["second"],
    }
    wanted |= {
        "accent3": MORE[0],
        "accent4": MORE[1],
        "accent5": MORE[2],
        "accent6": "66727F",
        "hlink": colors["accent"],
        "folHlink": "66727F",
    }
    for name, color in wanted.items():
        holder = root.find(f".//a:clrScheme/a:{name}", space)
        for child in list(holder):
            holder.remove(child)
        etree.SubElement(holder, f"{{{space['a']}}}srgbClr").set("val", color)
    for kind, key in (("majorFont", "heading_font"), ("minorFont", "font")):
        holder = root.find(f".//a:fontScheme/a:{kind}", space)
        holder.find("a:latin", space).set("typeface", fonts.get(key) or fonts.get("font", "Calibri"))
        holder.find("a:ea", space).set("typeface", fonts.get("east_asian_font", "Microsoft YaHei"))
    part._blob = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)


def _put(shape, left: float, top: float, width: float, height: float) -> None:
    shape.left, shape.top, shape.width, shape.height = (Inches(value) for value in (left, top, width, height))


def _master(deck) -> None:
    master = deck.slide_master
    for shape in master.placeholders:
        kind = shape.placeholder_format.type
        name = str(kind)
        if "TITLE" in name:
            _put(shape, LEFT, 0.5, WIDTH, 1.0)
            shape.text_frame._txBody.bodyPr.set("anchor", "b")
        elif "BODY" in name:
            _put(shape, LEFT, TOP, WIDTH, 4.95)
        elif "SLIDE_NUMBER" in name:
            _put(shape, 11.58, 6.95, 1.0, 0.35)
        elif "FOOTER" in name:
            _put(shape, LEFT, 6.95, 8, 0.35)
        else:
            _put(shape, 9, 6.95, 2, 0.35)
    styles = master._element.find(qn("p:txStyles"))
    title = styles.find(qn("p:titleStyle")).find(qn("a:lvl1pPr"))
    title.set("algn", "l")
    _run_style(title, 30, "tx2", bold=True)
    for level, (size, indent) in enumerate(((20, 0.28), (18, 0.56), (16, 0.84), (14, 1.1), (14, 1.36)), 1):
        properties = styles.find(qn("p:bodyStyle")).find(qn(f"a:lvl{level}pPr"))
        properties.set("marL", str(Inches(indent)))
        properties.set("indent", str(-Inches(0.28)))
        for old in properties.findall(qn("a:buClr")):
            properties.remove(old)
        spacing = properties.find(qn("a:spcBef"))
        for child in list(spacing):
            spacing.remove(child)
        spacing.append(parse_xml(f'<a:spcPts {nsdecls("a")} val="{1000 if level == 1 else 400}"/>'))
        spacing.addnext(parse_xml(f'<a:buClr {nsdecls("a")}><a:schemeClr val="accent1"/></a:buClr>'))
        _run_style(properties, size, "tx1")


def _run_style(properties, size: float, color: str, *, bold: bool | None = None) -> None:
    run = properties.find(qn("a:defRPr"))
    if run is None:
        run = parse_xml(f"<a:defRPr {nsdecls('a')}/>")
        properties.append(run)
    run.set("sz", str(int(size * 100)))
    if bold is not None:
        run.set("b", "1" if bold else "0")
    for fill in run.findall(qn("a:solidFill")):
        run.remove(fill)
    run.insert(0, parse_xml(f'<a:solidFill {nsdecls("a")}><a:schemeClr val="{color}"/></a:solidFill>'))


def _layout(layout, name: str) -> None:
    places = PLACES[name]
    for shape in list(layout.placeholders):
        index = shape.placeholder_format.idx
        if index >= 10:  # date, footer, number: those of the master
            for transform in shape._element.spPr.findall(qn("a:xfrm")):
                shape._element.spPr.remove(transform)
        elif index not in places:
            shape._element.getparent().remove(shape._element)
        elif places[index] is None:
            for transform in shape._element.spPr.findall(qn("a:xfrm")):
                shape._element.spPr.remove(transform)
            _plain_style(shape)
        else:
            *box, size, color, anchor = places[index]
            _put(shape, *box)
            _plain_style(shape)
            body = shape.text_frame._txBody
            body.bodyPr.set("anchor", anchor)
            bullets = (color == "ink" and name != "picture") or (name, index) == ("picture", 2)
            properties = parse_xml(f'<a:lvl1pPr {nsdecls("a")} algn="l"/>')
            if not bullets:
                properties.set("marL", "0")
                properties.set("indent", "0")
                properties.append(parse_xml(f"<a:buNone {nsdecls('a')}/>"))
            bold = True if index == 0 or color == "accent" else None
            _run_style(properties, size, COLORS[color], bold=False if name == "quote" else bold)
            body.find(qn("a:lstStyle")).append(properties)
    if name in ("title", "section"):
        color = "tx2" if name == "title" else "accent1"
        background = f'<p:bg {nsdecls("p", "a")}><p:bgPr><a:solidFill><a:schemeClr val="{color}"/></a:solidFill><a:effectLst/></p:bgPr></p:bg>'
        layout._element.cSld.insert(0, parse_xml(background))
        _bar(layout, 0, 0, 0.22, 7.5, "accent2" if name == "title" else "tx2")
    elif name == "quote":
        _bar(layout, 1.1, 1.9, 0.09, 3.7, "accent1")
    else:
        _bar(layout, LEFT + 0.1, 1.52, 0.9, 0.05, "accent2")


def _plain_style(shape) -> None:
    """Forget what the template's layout says about text, so that the master counts."""
    styles = shape.text_frame._txBody.find(qn("a:lstStyle"))
    for child in list(styles):
        styles.remove(child)
    for name in ("anchor", "vert"):
        shape.text_frame._txBody.bodyPr.attrib.pop(name, None)


def _bar(layout, left: float, top: float, width: float, height: float, color: str) -> None:
    number = max(int(value) for value in re.findall(r' id="(\d+)"', etree.tostring(layout._element).decode())) + 1
    box = f'<a:off x="{Inches(left)}" y="{Inches(top)}"/><a:ext cx="{Inches(width)}" cy="{Inches(height)}"/>'
    layout.shapes._spTree.insert(
        2,
        parse_xml(
            f'<p:sp {nsdecls("p", "a")}><p:nvSpPr><p:cNvPr id="{number}" name="Bar"/><p:cNvSpPr/><p:nvPr userDrawn="1"/></p:nvSpPr>'
            f'<p:spPr><a:xfrm>{box}</a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom>'
            f'<a:solidFill><a:schemeClr val="{color}"/></a:solidFill><a:ln><a:noFill/></a:ln></p:spPr></p:sp>'
        ),
    )


def number_slide(slide) -> None:
    """The slide's number, as a placeholder of its layout."""
    for shape in slide.slide_layout.placeholders:
        if "SLIDE_NUMBER" in str(shape.placeholder_format.type):
            slide.shapes._spTree.append(copy.deepcopy(shape._element))


def fit(width: int, height: int, left: float, top: float, wide: float, high: float) -> tuple[Emu, Emu, Emu, Emu]:
    """Where a picture of this size stands in the middle of a box of inches."""
    scale = min(Inches(wide) / width, Inches(high) / height)
    w, h = int(width * scale), int(height * scale)
    return Emu(Inches(left) + (Inches(wide) - w) // 2), Emu(Inches(top) + (Inches(high) - h) // 2), Emu(w), Emu(h)


def size(run, points: float) -> None:
    run.font.size = Pt(points)
