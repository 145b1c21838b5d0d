"""Read a Word document back: print its outline, and name what should be corrected."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from docx import Document
from docx.oxml.ns import qn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document")
    with Path(parser.parse_args().document).open("rb") as file:
        document = Document(file)
    problems, level, words, heading = [], 0, 0, ""
    sections: list[tuple[int, str, int]] = []
    for block in document.element.body:
        text = "".join(node.text or "" for node in block.iter(qn("w:t")))
        style = next(iter(block.iter(qn("w:pStyle"))), None)
        name = style.get(qn("w:val")) if style is not None else ""
        if block.tag == qn("w:p") and (found := re.fullmatch(r"Heading(\d)", name or "")):
            if heading:
                sections.append((level, heading, words))
            new = int(found[1])
            if new > level + 1:
                problems.append(f"{text!r} has level {new}, but stands below level {level}.")
            if not text.strip():
                problems.append("A heading is empty.")
            level, heading, words = new, text, 0
        else:
            words += len(re.findall(r"\w+|[\u4e00-\u9fff]", text)) + 5 * len(list(block.iter(qn("w:drawing"))))
        if leftover := re.search(
            r"\b(TODO|TBD|FIXME|XXX|Lorem ipsum)\b|\[(?:insert|placeholder)[^\]]*\]", text, re.IGNORECASE
        ):
            problems.append(f"{leftover[0]!r} is left in: {text[:60]!r}")
        if re.search(r"\*\*\w|^#{1,6} |\]\(http", text):
            problems.append(f"Markdown is left in: {text[:60]!r}")
    sections.append((level, heading, words))
    for index, (depth, name, count) in enumerate(sections):
        print(f"{'  ' * (depth - 1)}{name}  ({count} words)")
        parent = index + 1 < len(sections) and sections[index + 1][0] > depth
        if name and not count and not parent:
            problems.append(f"The section {name!r} is empty.")
    for shape in document.element.body.iter(qn("wp:docPr")):
        if not shape.get("descr"):
            problems.append("A picture has no alternative text.")
    for index, table in enumerate(document.tables, 1):
        if len(table.rows) > 3 and not list(table._tbl.iter(qn("w:tblHeader"))):
            problems.append(f"Table {index} has no header row that repeats.")
    print(
        f"{len(document.tables)} tables, {len(document.inline_shapes)} pictures, {sum(entry[2] for entry in sections):,} words"
    )
    for problem in problems:
        print(f"- {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
