"""Reading HTML of unknown origin: what a person who opens the page sees of it, as Markdown."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Any

from deerflow.security.text import sanitize

MAX_CHARS = 5_000_000
MAX_ELEMENTS = 30_000
"""Of a page whose main part is looked for; of a larger one all text is taken."""

_UNSEEN = [
    "script",
    "style",
    "noscript",
    "template",
    "iframe",
    "frame",
    "object",
    "embed",
    "applet",
    "svg",
    "math",
    "canvas",
    "audio",
    "video",
    "map",
    "input",
    "select",
    "textarea",
    "button",
    "datalist",
    "dialog",
    "link",
    "meta",
    "base",
]
_HIDING = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|(?:opacity|font-size):0[0.]*[a-z%]*(?:[;!]|$)|transform:scale\(0\)|"
    r"(?:left|top|right|bottom|text-indent|margin-left):-(?:\d{4,}|999)|clip:rect\(0|clip-path:inset\((?:50|100)%|color:transparent"
)
_SPACE_OR_COMMENT = re.compile(r"\s+|/\*.*?(?:\*/|\Z)|\\", re.DOTALL)
_SKIPPED = re.compile(r"[\x00-\x20]+")
"""What browsers skip in an address."""
_BLOCKS = [
    "p",
    "div",
    "br",
    "li",
    "tr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "pre",
    "section",
    "article",
    "td",
    "dd",
    "dt",
]
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w-]{2,40})", re.IGNORECASE)
_CHARSETS = re.compile(
    r"utf-?(?:8|16(?:-?[lb]e)?)|us-ascii|ascii|latin-?1|iso-?8859-\d{1,2}|(?:windows|cp)-?\d{3,4}|koi8-[ru]|gbk|gb2312|gb18030|"
    r"big5(?:-hkscs)?|euc-(?:jp|kr)|shift[-_]jis|sjis|iso-2022-jp|tis-620|macintosh"
)
_MEANT = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs", "iso-8859-1": "cp1252",
          "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-9": "cp1254", "tis-620": "cp874"}  # fmt: skip
"""As browsers read them."""


@dataclass(frozen=True, slots=True)
class Page:
    """A title on one line, maybe empty, and a text in Markdown. Both are sanitized, and still untrusted."""

    title: str
    text: str


def decoded(data: bytes, charset: str = "") -> str:
    """``data`` as text, by its byte order mark, ``charset`` as its server has it, or what its HTML says; else as UTF-8.

    What is no known encoding of text counts for nothing, and what does not fit becomes a replacement character.
    """
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    said = _META_CHARSET.search(data[:4096])
    for name in (charset.lower(), said[1].decode("ascii").lower() if said else ""):
        if _CHARSETS.fullmatch(name):
            try:
                return data.decode(_MEANT.get(name, name), "replace")
            except LookupError:
                continue
    try:
        return data.decode()
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(data[:65536]).best()
        return data.decode(best.encoding if best is not None else "cp1252", "replace")


def readable(html: str, url: str | None = None) -> Page:
    """The main part of a page, without what is hidden from a person who opens it. CPU work: not for an event loop.

    Never raises for what the page holds; of broken pages it gives what there is.
    """
    from lxml import etree  # type: ignore[attr-defined]
    from lxml.html import HTMLParser, document_fromstring

    # Declared encodings count for nothing any more.
    text = sanitize(html, MAX_CHARS).encode()
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
    try:
        tree = document_fromstring(text, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return Page("", "")
    title = " ".join(sanitize(tree.findtext(".//title"), 1000).split())
    elements = _without_the_unseen(tree)
    return Page(title, sanitize(_main_part(tree, url) if elements <= MAX_ELEMENTS else _all_text(tree)).strip())


def _without_the_unseen(tree: Any) -> int:
    """Drop what is not seen, and addresses that run something. Returns how many elements remain, at most."""
    unseen, count = [], 0
    for element in tree.iter():
        count += 1
        if element.tag in _UNSEEN or _is_hidden(element):
            unseen.append(element)
            continue
        for name in ("href", "src"):
            address = _SKIPPED.sub("", (element.get(name) or "")[:100]).lower()
            if address.startswith(("javascript:", "data:", "vbscript:", "file:")):
                del element.attrib[name]
    for element in unseen:
        if element.getparent() is not None:
            element.drop_tree()
    return count


def _is_hidden(element: Any) -> bool:
    attributes = element.attrib
    if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
        return element.tag not in ("html", "body")
    style = attributes.get("style")
    return bool(style) and _HIDING.search(_SPACE_OR_COMMENT.sub("", style.lower()[:10_000])) is not None


def _main_part(tree: Any, url: str | None) -> str:
    import trafilatura

    everything = tree.text_content()
    for element in tree.iter():
        # The library resolves entities in the text that it has made, which has none any more.
        element.text, element.tail = _kept_entities(element.text), _kept_entities(element.tail)
        if href := element.get("href"):
            element.set("href", _kept_entities(href) or "")
    try:
        text = (
            trafilatura.extract(
                tree,
                url=url,
                output_format="markdown",
                include_comments=False,
                include_tables=True,
                include_links=True,
                with_metadata=False,
                favor_recall=True,
                fast=True,
            )
            or ""
        )
    except Exception:  # whatever a page makes of it, its text is there
        text = ""
    return text if len(text) > 200 or len(text) * 3 > len(everything.strip()) else _all_text(tree).replace("&amp;", "&")


def _kept_entities(text: str | None) -> str | None:
    return text and text.replace("&", "&amp;")


def _all_text(tree: Any) -> str:
    for block in tree.iter(*_BLOCKS):
        block.tail = "\n" + (block.tail or "")
    return re.sub(r"\n\s*\n\s*", "\n\n", str(tree.text_content()))
