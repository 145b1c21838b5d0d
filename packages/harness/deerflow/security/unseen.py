"""Style that keeps text from a person's eyes: hidden, tiny, moved away, or in the colour of what is behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Style = Mapping[str, str]
"""Values by property, both in lower case and without spaces."""

MAX_CSS, MAX_RULES, MAX_INLINE = 500_000, 5000, 10_000
_SKIPPED = re.compile(r"\s+|/\*.*?(?:\*/|\Z)|\\", re.DOTALL)
_ZERO = re.compile(r"[-+]?(?:0{1,9}(?:\.0{0,9})?|\.0{1,9})[a-z%]*")
_TINY = re.compile(r"(?:0?\.\d{1,9}|[012](?:\.0{1,9})?|1\.\d{1,9})(?:px|pt)|0?\.0\d{0,9}r?em|[0-9](?:\.\d{1,9})?%")
_AWAY = re.compile(r"-(?:\d{4,}|999|[1-9]\d\d(?:%|v[wh]|r?em))")
_MOVES = ("left", "top", "right", "bottom", "text-indent", "margin-left", "margin-top", "margin", "inset", "translate")
_COLOURS = {"white": (255, 255, 255), "black": (0, 0, 0), "snow": (255, 250, 250), "ivory": (255, 255, 240),
            "whitesmoke": (245, 245, 245), "ghostwhite": (248, 248, 255), "floralwhite": (255, 250, 240), "mintcream": (245, 255, 250),
            "azure": (240, 255, 255), "aliceblue": (240, 248, 255), "seashell": (255, 245, 238)}  # fmt: skip
_PAPER = (255, 255, 255)
_CLOSE = 24
"""How far two colours may be apart, in each of red, green and blue, and still look alike."""
_COMPOUND = re.compile(r"(?P<tag>\*|[a-z][\w-]{0,40})?(?P<rest>(?:[.#][\w-]{1,80}){0,6})", re.IGNORECASE)


def inline_style(text: str | None) -> Style:
    """Return what a ``style`` attribute declares; of a property given twice the last value."""
    if not text:
        return {}
    found: dict[str, str] = {}
    for declaration in _SKIPPED.sub("", text[:MAX_INLINE].lower()).split(";"):
        name, _, value = declaration.partition(":")
        found[name] = value.partition("!")[0]
    return found


def hides(style: Style) -> bool:
    """Whether an element of this style and all in it are not seen, wherever it stands."""
    if not style:
        return False
    get = style.get
    if get("display") == "none" or get("visibility") in ("hidden", "collapse") or get("content-visibility") == "hidden":
        return True
    if _ZERO.fullmatch(get("opacity", "1")) or re.fullmatch(r"0?\.0\d{0,9}|[0-9]%", get("opacity", "1")):
        return True
    size = get("font-size") or get("font", "").partition("/")[0]
    if size and (_ZERO.fullmatch(size) or _TINY.fullmatch(size) or re.search(r"(?:^|[a-z])[012]px", size)):
        return True
    if any(_AWAY.search(get(name, "")) for name in _MOVES) or re.search(
        r"scale[xy3d]{0,2}\(0[,.)]", get("transform", "")
    ):
        return True
    if _AWAY.search(get("transform", "")) or re.match(r"rect\((?:0|1px)", get("clip", "")):
        return True
    if re.match(r"inset\((?:50|[1-9]\d\d)%|circle\(0|polygon\(0(?:px|%)?0(?:px|%)?\)", get("clip-path", "")):
        return True
    if "opacity(0" in get("filter", ""):
        return True
    flat = any(
        re.fullmatch(r"[01](?:px)?", get(name, "auto")) for name in ("height", "width", "max-height", "max-width")
    )
    if flat and get("overflow", get("overflow-x", get("overflow-y", ""))) in ("hidden", "clip"):
        return True
    return get("color") == "transparent" or _alpha(get("color", "")) == 0


def colour_of(text: str) -> tuple[int, int, int] | None:
    """Return red, green and blue of a colour; None: it is not known here."""
    if match := re.fullmatch(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", text):
        digits = match[1] if len(match[1]) > 4 else "".join(digit * 2 for digit in match[1])
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    if text.startswith("rgb"):
        numbers = re.findall(r"\d{1,3}(?:\.\d{1,9})?%?", text)[:3]
        if len(numbers) == 3:
            parts = [float(number[:-1]) * 2.55 if number[-1] == "%" else float(number) for number in numbers]
            return min(255, int(parts[0])), min(255, int(parts[1])), min(255, int(parts[2]))
    if (match := re.fullmatch(r"hsla?\([^,/%]{1,20}[,%]?[\d.]{1,9}%,?(\d{1,3})(?:\.\d+)?%.{0,20}", text)) and int(
        match[1]
    ) in (0, 100):
        return _PAPER if match[1] == "100" else (0, 0, 0)
    return _COLOURS.get(text)


def _alpha(colour: str) -> float | None:
    if match := re.fullmatch(r"#(?:[0-9a-f]{3}(?P<one>[0-9a-f])|[0-9a-f]{6}(?P<two>[0-9a-f]{2}))", colour):
        return int(match["one"] or match["two"], 16)
    match = re.fullmatch(r"(?:rgba?|hsla?)\([^()]{0,60}[,/](0?\.?\d{1,9})%?\)", colour)
    commas = colour.count(",") == 3 or "/" in colour
    return float(match[1]) if match and commas else None


@dataclass(frozen=True, slots=True)
class Ground:
    """What text stands on: the nearest background that an element around it declares; None: one whose colour is not known."""

    colour: tuple[int, int, int] | None = _PAPER

    def below(self, style: Style, bgcolor: str = "") -> Ground:
        """The ground inside an element of this style."""
        declared = style.get("background-color") or style.get("background") or bgcolor.strip().lower()
        picture = style.get("background-image", "none")
        if picture not in ("none", "", "initial", "unset"):
            return Ground(None)
        if not declared or declared in ("none", "transparent", "inherit", "initial", "unset") or _alpha(declared) == 0:
            return self
        return Ground(colour_of(declared))

    def swallows(self, colour: str) -> bool:
        """Whether text of this colour cannot be told from the ground."""
        text = colour_of(colour)
        if text is None or self.colour is None:
            return False
        return all(abs(one - other) <= _CLOSE for one, other in zip(text, self.colour, strict=True))


# sheets: the rules of <style>, for selectors of names, classes and ids ---------------------------------------------------


@dataclass(slots=True)
class Sheet:
    """Rules by the name, class or id that the element itself must have."""

    _rules: dict[str, list[tuple[int, tuple[frozenset[str], ...], Style]]] = field(default_factory=dict)
    _count: int = 0

    def add(self, css: str) -> None:
        """Take in the text of a ``style`` element. What cannot be understood hides nothing."""
        for selectors, body in _rules_of(re.sub(r"/\*.*?(?:\*/|\Z)", " ", css[:MAX_CSS], flags=re.DOTALL)):
            style = inline_style(body)
            for selector in selectors.split(",") if style else ():
                way = _way(selector)
                if way is None or self._count >= MAX_RULES:
                    continue
                self._count += 1
                self._rules.setdefault(min(way[-1]), []).append((self._count, way, style))

    def style(self, names: frozenset[str], around: Iterable[frozenset[str]]) -> Style:
        """Return what the rules declare for an element.

        Args:
            names: its own ``tag``, ``.class`` and ``#id``.
            around: those of the elements around it, the nearest first; looked at where a rule asks for them.
        """
        if not self._rules:
            return {}
        found: list[tuple[int, Style]] = []
        for name in (*names, "*"):
            for number, way, style in self._rules.get(name, ()):
                if way[-1] - {"*"} <= names and _stands_in(way[:-1], around):
                    found.append((number, style))
        merged: dict[str, str] = {}
        for _, style in sorted(found, key=lambda pair: pair[0]):
            merged.update(style)
        return merged


def _stands_in(way: tuple[frozenset[str], ...], around: Iterable[frozenset[str]]) -> bool:
    if not way:
        return True
    left = [*way]
    for names in around:
        if left[-1] - {"*"} <= names:
            left.pop()
            if not left:
                return True
    return False


def _rules_of(css: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Selectors and bodies of rules; of ``@media`` those for every screen."""
    level, start, head = 0, 0, ""
    for match in re.finditer("[{}]", css):
        if match[0] == "{":
            if level == 0:
                head, start = css[start : match.start()].strip(), match.end()
            level += 1
        elif level:
            level -= 1
            if level == 0:
                body = css[start : match.start()]
                start = match.end()
                if not head.startswith("@"):
                    yield head.rpartition(";")[2], body
                elif depth < 3 and re.fullmatch(
                    r"@media\s{0,9}(?:only\s{1,9})?(?:all|screen)?|@(?:layer|supports)\b.{0,200}", head, re.DOTALL
                ):
                    yield from _rules_of(body, depth + 1)
        else:
            start = match.end()


def _way(selector: str) -> tuple[frozenset[str], ...] | None:
    """What a selector asks for, from the outside in; None: more than names, classes and ids."""
    if len(selector) > 300:
        return None
    way: list[frozenset[str]] = []
    for part in selector.replace(">", " ").split():
        match = _COMPOUND.fullmatch(part)
        if match is None:
            return None
        names = re.findall(r"[.#][\w-]+", match["rest"])
        way.append(frozenset([*names, (match["tag"] or "*").lower()] if match["tag"] or not names else names))
    return tuple(way) or None
