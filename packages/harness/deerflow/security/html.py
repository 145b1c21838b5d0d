"""Reading HTML of unknown origin: what a person who opens the page sees of it, as Markdown."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin

from deerflow.security.encodings import marked, text_of
from deerflow.security.head import NOTHING_SAID, Head, head_of
from deerflow.security.main_part import main_part
from deerflow.security.markdown import to_markdown
from deerflow.security.text import sanitize
from deerflow.security.unseen import Ground, Sheet, Style, hides, inline_style

MAX_CHARS = 5_000_000
MAX_ELEMENTS = 80_000
"""Of a page whose main part is looked for; of a larger one all text is taken."""
FEW_LETTERS = 100
MAX_LINKS, MAX_ADDRESS = 5000, 2000

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
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "frame",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
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
    links: tuple[str, ...] = ()
    """Addresses that the page's own links lead to, absolute and without fragment, once each, as far as they are seen."""
    head: Head = NOTHING_SAID
    """The page's own description of itself."""
    plain: bool = False
    """It is no page but text as it came."""
    scripted: bool = False
    """It shows next to nothing before its scripts have run."""


def decoded(data: bytes, charset: str = "") -> str:
    """``data`` as text, by its byte order mark, ``charset`` as its server has it, or what its HTML says; else as its bytes tell.

    What is no known encoding of text counts for nothing, and what does not fit becomes a replacement character.
    """
    if marked(data) is not None:
        return text_of(data)
    said = _META_CHARSET.search(data[:4096])
    for name in (charset.lower(), said[1].decode("ascii").lower() if said else ""):
        if _CHARSETS.fullmatch(name):
            try:
                return data.decode(_MEANT.get(name, name), "replace")
            except LookupError:
                continue
    return text_of(data)


def readable(html: str, url: str | None = None) -> Page:
    """The main part of a page, without what is hidden from a person who opens it. CPU work: for a converter.

    Never raises for what the page holds; of broken pages it gives what there is. Without lxml it is all text of the page.
    """
    text = sanitize(html, MAX_CHARS)
    try:
        tree = _tree(text)
    except ImportError:
        return _plain(text, url)
    if tree is None:
        return Page("", "")
    if tree is _TOO_DEEP:
        return _plain(text, url)
    head, scripts = head_of(tree), next(tree.iter("script"), None) is not None
    base = next((found for element in tree.iter("base") if (found := element.get("href"))), "")
    elements = _without_the_unseen(tree)
    links = _links((element.get("href") for element in tree.iter("a", "area")), url, base)
    main = sanitize(_main_part(tree, _joined(url, base)) if elements <= MAX_ELEMENTS else _all_text(tree)).strip()
    first, _, rest = main.partition("\n")
    if first == f"# {head.title}" and rest.strip():  # it stands above the text already
        main = rest.lstrip()
    return Page(head.title, main, links, head, scripted=scripts and len(main) < FEW_LETTERS)


def markdown_of(html: str) -> str:
    """Return all of a text in HTML that a person who opens it sees, as Markdown; of a letter or a chapter. Raises ImportError."""
    text = sanitize(html, MAX_CHARS)
    tree = _tree(text)
    if tree is None:
        return ""
    if tree is _TOO_DEEP:
        return _plain(text, None).text
    _without_the_unseen(tree)
    body = tree.find("body")
    return sanitize(to_markdown(body if body is not None else tree)).strip()


_TOO_DEEP: Any = object()


def _tree(text: str) -> Any:
    from lxml import etree  # type: ignore[attr-defined]
    from lxml.html import HTMLParser as LxmlParser
    from lxml.html import document_fromstring

    # Declared encodings count for nothing any more.
    parser = LxmlParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
    try:
        tree = document_fromstring(text.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None
    # What lies deeper is missing in the tree.
    return _TOO_DEEP if any("depth" in each.message for each in parser.error_log) else tree


def _joined(url: str | None, base: str) -> str:
    try:
        return urljoin(url or "", base)
    except ValueError:
        return url or ""


def _links(addresses: Iterable[str | None], url: str | None, base: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for address in addresses:
        if address and len(found) < MAX_LINKS:
            try:
                absolute = urldefrag(urljoin(urljoin(url or "", base), address.strip())).url
                if absolute.startswith(("http://", "https://")) and len(absolute) <= MAX_ADDRESS:
                    found[absolute] = None
            except ValueError:
                continue
    return tuple(found)


def _without_the_unseen(tree: Any) -> int:
    """Drop what is not seen, and addresses that run something. Returns how many elements remain, at most."""
    sheet, count = Sheet(), 0
    for element in tree.iter("style"):
        sheet.add(str(element.text or ""))
    unseen: list[Any] = []
    around: list[tuple[Any, frozenset[str], Ground]] = []
    skipped: Any = None
    for element in tree.iter():
        count += 1
        parent = element.getparent()
        while around and around[-1][0] is not parent:
            if around.pop()[0] is skipped:
                skipped = None
        names = _names(element.tag, element.attrib)
        ground = around[-1][2] if around else Ground()
        if skipped is None:
            style = {**sheet.style(names, (one[1] for one in reversed(around))), **inline_style(element.get("style"))}
            ground = ground.below(style, element.get("bgcolor") or "")
            if _is_unseen(element.tag, element.attrib, style, ground):
                unseen.append(element)
                skipped = element
        around.append((element, names, ground))
        for name in ("href", "src"):
            address = _SKIPPED.sub("", (element.get(name) or "")[:100]).lower()
            if address.startswith(("javascript:", "data:", "vbscript:", "file:")):
                del element.attrib[name]
    for element in unseen:
        if element.getparent() is not None:
            element.drop_tree()
    return count


def _names(tag: Any, attributes: Mapping[str, Any]) -> frozenset[str]:
    """What selectors know an element by."""
    names = [str(tag)]
    if classes := attributes.get("class"):
        names += [f".{name}" for name in str(classes)[:2000].split()[:50]]
    if own := attributes.get("id"):
        names.append(f"#{own}"[:100])
    return frozenset(names)


def _is_unseen(tag: Any, attributes: Mapping[str, Any], style: Style, ground: Ground) -> bool:
    if tag in _UNSEEN:
        return True
    if tag in ("html", "body"):  # often hidden until a script runs
        return False
    if "hidden" in attributes or (attributes.get("aria-hidden") or "").strip().lower() == "true":
        return True
    colour = style.get("color") or (attributes.get("color") or "").strip().lower() * (tag == "font")
    return hides(style) or (bool(colour) and ground.swallows(colour))


def _main_part(tree: Any, url: str) -> str:
    whole, spare = len(str(tree.text_content()).strip()), copy.deepcopy(tree)
    text = to_markdown(main_part(tree), url)
    # Where next to nothing is left, the page was none of the kinds that are known.
    return text if len(text) > 200 or len(text) * 10 > whole else to_markdown(spare, url)


def _all_text(tree: Any) -> str:
    for block in tree.iter(*_BLOCKS):
        block.tail = "\n" + (block.tail or "")
    return re.sub(r"\n\s*\n\s*", "\n\n", str(tree.text_content()))


class _Plain(HTMLParser):
    """Collects all text that is seen, with Python's own library."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title, self.links, self.base = list[str](), list[str | None](), ""
        self._text = list[str]()
        self._open: list[tuple[str, bool, Ground]] = []
        self._sheet, self._css = Sheet(), list[str]()

    @property
    def text(self) -> str:
        return re.sub(r"\n\s*\n\s*", "\n\n", "".join(self._text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        hidden, ground = (self._open[-1][1], self._open[-1][2]) if self._open else (False, Ground())
        style = {**self._sheet.style(_names(tag, attributes), ()), **inline_style(attributes.get("style"))}
        ground = ground.below(style, attributes.get("bgcolor", ""))
        hidden = hidden or (tag in _UNSEEN or _is_unseen(tag, attributes, style, ground))
        if tag == "base" and not self.base:
            self.base = attributes.get("href", "")
        if tag in ("a", "area") and not hidden:
            self.links.append(attributes.get("href"))
        if tag in _BLOCKS and not hidden:
            self._text.append("\n")
        if tag not in _VOID and len(self._open) < 1000:
            self._open.append((tag, hidden, ground))

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self._sheet.add("".join(self._css))
            self._css.clear()
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == tag:
                del self._open[index:]
                break
        if tag in _BLOCKS and not (self._open and self._open[-1][1]):
            self._text.append("\n")

    def handle_data(self, data: str) -> None:
        tag, hidden, _ = self._open[-1] if self._open else ("", False, None)
        if tag == "title":
            self.title.append(data)
        elif tag == "style":
            self._css.append(data)
        elif not hidden:
            self._text.append(data)


def _plain(html: str, url: str | None) -> Page:
    """All text of a page that is seen, for where there is no library for more."""
    parser = _Plain()
    parser.feed(html)
    parser.close()
    title = " ".join(sanitize("".join(parser.title), 1000).split())
    return Page(title, sanitize(parser.text).strip(), _links(parser.links, url, parser.base))
