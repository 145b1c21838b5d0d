"""Equations of Office files as LaTeX."""

from __future__ import annotations

from typing import Any

from deerflow.sandbox.converters.parts import local

MOST_DEPTH = 40
_SIGNS = {"∑": "\\sum", "∏": "\\prod", "∫": "\\int"}


def latex(element: Any, depth: int = 0) -> str:
    """Return an equation (``oMath``) as LaTeX; what has no known form is its letters."""
    if depth > MOST_DEPTH:
        return "[equation]"

    def part(name: str) -> str:
        return "".join(latex(child, depth + 1) for child in element if local(child) == name)

    def small(name: str) -> str:
        text = part(name)
        return text if len(text) < 2 else f"{{{text}}}"

    match local(element):
        case "t":
            return element.text or ""
        case "f":
            return f"\\frac{{{part('num')}}}{{{part('den')}}}"
        case "sSup":
            return f"{part('e')}^{small('sup')}"
        case "sSub":
            return f"{part('e')}_{small('sub')}"
        case "sSubSup":
            return f"{part('e')}_{small('sub')}^{small('sup')}"
        case "rad":
            degree = part("deg")
            return f"\\sqrt{f'[{degree}]' if degree else ''}{{{part('e')}}}"
        case "d":
            return f"({', '.join(latex(child, depth + 1) for child in element if local(child) == 'e')})"
        case "nary":
            sign = next(
                (value for each in element.iter() if local(each) == "chr" for value in each.attrib.values()), "∫"
            )
            return f"{_SIGNS.get(sign, sign)}_{small('sub')}^{small('sup')} {part('e')}"
        case "ctrlPr" | "rPr":
            return ""
        case _:
            return "".join(latex(child, depth + 1) for child in element)
