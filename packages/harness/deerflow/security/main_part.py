"""The part of a page that people come for: without what stands around it on every page of its site."""

from __future__ import annotations

import re
from typing import Any

PROSE = 50
"""Letters from which on a paragraph counts as prose."""
_AROUND = frozenset(["nav", "footer", "aside"])
_ROLES = frozenset(
    [
        "navigation",
        "contentinfo",
        "complementary",
        "search",
        "banner",
        "menu",
        "menubar",
        "toolbar",
        "dialog",
        "alertdialog",
    ]
)
_BOXES = frozenset(["div", "section", "ul", "ol", "p", "span", "form", "table"])
_NAMES = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|breadcrumbs?|footer|sidebar|cookies?|consent|gdpr|newsletter|social|share|sharing|"
    r"sharedaddy|related|recommend(?:ed|ations?)?|promo|advert\w{0,20}|ads?|banner|popup|modal|subscribe|skip-link|pagination|toolbar|"
    r"widget|outbrain|taboola|masthead|teaser-list|most-?(?:read|popular)|trending|login|signup|mw-editsection|mw-jump-link|navbox|"
    r"toc)(?:$|[\s_-])",
    re.IGNORECASE,
)
_CONSENT = re.compile(r"cookie|consent|gdpr", re.IGNORECASE)
"""A part that asks for it is never the page, however little else there is."""
_WHOLE = frozenset(["p", "pre", "blockquote", "table", "ul", "ol", "td", "dl"])
"""Elements that are never entered on the way down to the prose."""
_LISTS = ("div", "ul", "section", "ol", "aside", "table", "nav")


def main_part(tree: Any) -> Any:
    """Return the element that holds the main part; what is dropped leaves the tree."""
    body = tree.find("body")
    body = body if body is not None else tree
    top = _marked(body, _length(body))
    _drop_around(top)
    measures = _Measures(top)
    if measures.prose[top] > 800 and measures.prose[top] > 0.35 * measures.text[top]:
        return _article(top, measures)
    return top


def _marked(body: Any, whole: int) -> Any:
    """Return the part that the page itself marks as its main one, if that holds enough of it."""
    found = [each for each in body.iter() if each.tag == "main" or (each.get("role") or "").lower() == "main"]
    if not found:
        articles = [each for each in body.iter("article") if next(each.iterancestors("article"), None) is None]
        found = articles if len(articles) == 1 else []
    best = max(found, key=_length, default=None)
    return best if best is not None and _length(best) > max(60, whole * 0.1) else body


def _drop_around(top: Any) -> None:
    have = _length(top)
    for element in [each for each in top.iter() if each is not top and _is_around(each)]:
        if element.getparent() is None:
            continue
        size = _length(element)
        prose = sum(_length(each) for each in element.iter("p")) if size > 1500 else 0
        if size < 1500 and _CONSENT.search(f"{element.get('class') or ''} {element.get('id') or ''}"[:300]):
            element.drop_tree()
            continue
        misnamed = element.tag in ("div", "section", "table") and prose > size * 0.7
        if size <= have * 0.5 and not misnamed:
            element.drop_tree()


def _is_around(element: Any) -> bool:
    tag = element.tag
    if tag in ("html", "body", "main", "article"):
        return False
    if tag in _AROUND or (element.get("role") or "").lower() in _ROLES:
        return True
    if tag == "header":
        return next(element.iterancestors("article", "main", "section"), None) is None
    names = f"{element.get('class') or ''} {element.get('id') or ''}"[:300]
    return tag in _BOXES and _NAMES.search(names) is not None


class _Measures:
    """Letters of prose, of links and in all below each element; one pass from below, so that it is linear."""

    def __init__(self, top: Any) -> None:
        from lxml import etree  # type: ignore[attr-defined]

        self.prose: dict[Any, int] = {}
        self.links: dict[Any, int] = {}
        self.text: dict[Any, int] = {}
        for _, element in etree.iterwalk(top, events=("end",)):
            own = _letters(element.text) + sum(_letters(child.tail) for child in element)
            text = self.text[element] = own + sum(self.text.get(child, 0) for child in element)
            links = text if element.tag == "a" else sum(self.links.get(child, 0) for child in element)
            self.links[element] = links
            inner = max(sum(self.prose.get(child, 0) for child in element), own if own >= 80 else 0)
            is_prose = element.tag in ("p", "pre", "blockquote", "td", "dd") and text - links >= PROSE
            self.prose[element] = text - links if is_prose else inner


def _article(top: Any, measures: _Measures) -> Any:
    """Go down to what holds nearly all of the prose, and drop lists of links in it."""
    found = top
    while True:
        inner = max(found, key=lambda each: measures.prose.get(each, 0), default=None)
        if inner is None or measures.prose.get(inner, 0) < 0.85 * measures.prose[top] or inner.tag in _WHOLE:
            break
        found = inner
    inside = set(found.iter())
    heads = [each for each in top.iter("h1") if each not in inside][:1]
    for element in list(found.iter(*_LISTS)):
        if element is found or element.getparent() is None:
            continue
        text, links = measures.text.get(element, 0), measures.links.get(element, 0)
        few = measures.prose.get(element, 0) < PROSE and links > 0.6 * text
        if text and few and sum(1 for _ in element.iter("a")) > 2:
            element.drop_tree()
    for head in heads:
        found.insert(0, head)
    return found


def _length(element: Any) -> int:
    return len(re.sub(r"\s+", " ", str(element.text_content())))


def _letters(text: str | None) -> int:
    return len(" ".join(text.split())) if text else 0
