"""A page's tree as Markdown: links absolute, tables whole, captions and descriptions of pictures kept."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

MOST_SPAN = 50
"""Columns or rows that a cell may take."""
MOST_DEPTH = 150
"""Of nested elements; of deeper ones the text is taken as it is."""
_GAPS = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")


def to_markdown(root: Any, url: str | None = None) -> str:
    """Return an lxml element as Markdown; its tree is changed. Raises ImportError without the library."""
    from html_to_markdown import ConversionOptions, convert  # type: ignore[import-not-found]
    from lxml.html import tostring  # type: ignore[import-not-found]

    _prepare(root, url)
    options = ConversionOptions(
        heading_style="atx",
        bullets="-",
        extract_metadata=False,
        code_block_style="backticks",
        highlight_style="none",
        hidden_content="all",  # it has been left out by those who know more of style
        autolinks=False,
        br_in_tables=True,
        compact_tables=True,
        newline_style="backslash",
        sup_symbol="^",
        infer_dimensions=False,
    )
    html = str(tostring(root, encoding="unicode", with_tail=False))
    text = convert(html, options).content or ""
    return _GAPS.sub("\n\n", text.replace("\\\n", "\n")).strip()


def _prepare(root: Any, url: str | None) -> None:
    """Make the tree such that the library keeps all that a person sees of it."""
    depths = {root: 0}
    for element in list(root.iter()):
        parent = element.getparent()
        depth = depths[element] = depths.get(parent, MOST_DEPTH + 1) + 1 if element is not root else 0
        if depth > MOST_DEPTH:
            continue
        if depth == MOST_DEPTH:
            _flatten(element)
        _one(element, url)


def _one(element: Any, url: str | None) -> None:
    for name in ("colspan", "rowspan"):
        if (span := element.get(name)) is not None:
            digits = re.sub(r"\D", "", span)[:6]
            element.set(name, str(max(1, min(int(digits or 1), MOST_SPAN))))
    for name in ("href", "src"):
        if (address := element.get(name)) is not None:
            _absolute(element, name, address.strip(), url)
    tag = element.tag
    if tag == "form":
        element.tag = "div"
    elif tag == "label":
        element.tag = "span"
    elif tag == "dt":
        element.tag = "p"
        _wrap(element, "strong")
    elif tag == "table" and _is_layout(element):
        for inner in [element, *element.iter("tr", "td", "tbody")]:
            if inner is element or next(inner.iterancestors("table"), None) is element:
                inner.tag = "div"
    elif tag == "img" and not (element.get("alt") or "").strip():
        element.drop_tree()


def _absolute(element: Any, name: str, address: str, url: str | None) -> None:
    try:
        absolute = urljoin(url or "", address)
    except ValueError:
        absolute = ""
    if name == "href" and (not absolute or address.startswith("#")):
        element.tag = "span" if element.tag == "a" else element.tag
    element.set(name, absolute)


def _wrap(element: Any, tag: str) -> None:
    inner = element.makeelement(tag)
    inner.text, element.text = element.text, None
    inner.extend(list(element))
    element.append(inner)


def _flatten(element: Any) -> None:
    text, tail = str(element.text_content()), element.tail
    for child in list(element):
        element.remove(child)
    element.text, element.tail = text, tail


def _is_layout(table: Any) -> bool:
    """Return whether a table only arranges a page: it holds others, or whole sections of text."""
    inner = table.find(".//table") is not None
    if next(table.iter("th", "caption", "thead"), None) is not None:
        return inner and table.find("./thead") is None
    if inner:
        return True
    rows = [len(row) for row in table.iter("tr")]
    return not rows or max(rows) < 2 or any(_is_section(cell) for cell in table.iter("td"))


def _is_section(cell: Any) -> bool:
    size = len(" ".join(str(cell.text_content()).split()))
    return (
        size > 600
        or (size > 200 and cell.find(".//p") is not None)
        or next(cell.iter("h1", "h2", "h3"), None) is not None
    )
