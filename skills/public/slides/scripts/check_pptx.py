"""Read a presentation back: print its text, and name slides that are too full, empty or off the page."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from pptx import Presentation
from pptx.util import Emu

POINT = 12700


def width_of(text: str) -> float:
    """In letters of average width; those of Chinese, Japanese and Korean are twice as wide."""
    return sum(2 if char >= "\u2e80" else 1 for char in text)


def needed(frame, width: int, default: float) -> float:
    """About how many points of height the text needs."""
    high = 0.0
    for paragraph in frame.paragraphs:
        sizes = [run.font.size.pt for run in paragraph.runs if run.font.size]
        size = (
            sizes[0]
            if sizes
            else paragraph.font.size.pt
            if paragraph.font.size
            else max(default - 2 * paragraph.level, 12)
        )
        letters = max((width / POINT - 14 - 20 * paragraph.level) / (size * 0.5), 1)
        lines = max(1, -(-width_of("".join(run.text for run in paragraph.runs)) // letters))
        high += lines * size * 1.2 + (8 if paragraph.runs else 0)
    return high


def layout_size(shape) -> float:
    """The size of text that a placeholder inherits."""
    index = shape.placeholder_format.idx
    for other in shape.part.slide_layout.placeholders:
        if other.placeholder_format.idx == index:
            found = re.search(r'<a:lvl1pPr[^>]*>.*?sz="(\d+)"', other._element.xml, re.DOTALL)
            if found:
                return int(found[1]) / 100
    return 30.0 if index == 0 else 20.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("presentation")
    with Path(parser.parse_args().presentation).open("rb") as file:
        deck = Presentation(file)
    problems: list[str] = []
    titles: list[str] = []
    for number, slide in enumerate(deck.slides, 1):
        title = slide.shapes.title.text if slide.shapes.title is not None else ""
        titles.append(title)
        print(f"{number}. {title}  [{slide.slide_layout.name}]")
        words, notes = 0, slide.notes_slide.notes_text_frame.text if slide.has_notes_slide else ""
        for shape in slide.shapes:
            if shape.width and (
                shape.left < 0
                or shape.top < 0
                or Emu(shape.left + shape.width) > deck.slide_width + 20000
                or Emu(shape.top + shape.height) > deck.slide_height + 20000
            ):
                problems.append(f"Slide {number}: {shape.name} reaches beyond the edge.")
            if shape.shape_type == 13 and not shape._element.nvPicPr.cNvPr.get("descr"):
                problems.append(f"Slide {number}: a picture has no alternative text.")
            if shape.has_text_frame:
                text = shape.text_frame.text
                kind = str(shape.placeholder_format.type) if shape.is_placeholder else ""
                if shape.is_placeholder and not text.strip() and "SLIDE_NUMBER" not in kind:
                    problems.append(f"Slide {number}: the placeholder {shape.name!r} is empty.")
                if shape != slide.shapes.title and text and "SLIDE_NUMBER" not in kind:
                    print("   " + text.replace("\n", "\n   "))
                words += len(re.findall(r"\w+", text)) if "SLIDE_NUMBER" not in kind else 0
                default = layout_size(shape) if shape.is_placeholder else 18
                if text.strip() and needed(shape.text_frame, shape.width, default) > shape.height / POINT + 10:
                    problems.append(
                        f"Slide {number}: the text does not fit into {shape.name!r}; shorten it or make two slides."
                    )
                if leftover := re.search(r"\b(TODO|TBD|Lorem ipsum)\b", text, re.IGNORECASE):
                    problems.append(f"Slide {number}: {leftover[0]!r} is left.")
            for cell in shape.table.iter_cells() if shape.has_table else ():
                words += len(re.findall(r"\w+", cell.text))
        if words > 90:
            problems.append(f"Slide {number}: {words} words; say less, or move text to the notes.")
        if notes:
            print(f"   (notes: {len(notes.split())} words)")
    for title in {title for title in titles if title and titles.count(title) > 1}:
        problems.append(f"The title {title!r} stands on {titles.count(title)} slides.")
    for problem in problems:
        print(f"- {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
