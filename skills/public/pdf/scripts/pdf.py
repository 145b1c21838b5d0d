"""Work on PDF files: text, tables, forms, pages, pictures of pages, passwords."""

from __future__ import annotations

import argparse
import csv
import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2
from pypdf import PdfReader, PdfWriter, Transformation
from pypdf.errors import PyPdfError
from pypdf.generic import NameObject
from reportlab.pdfgen.canvas import Canvas


class PdfError(Exception):
    """The request cannot be done; says what to change."""


def opened(path: str, password: str | None = None) -> PdfReader:
    if not Path(path).is_file():
        raise PdfError(f"{path} does not exist")
    try:
        reader = PdfReader(path)
    except PyPdfError as error:
        raise PdfError(f"{path} is no PDF that can be read: {error}") from None
    if reader.is_encrypted and not reader.decrypt(password or ""):
        raise PdfError(f"{path} is encrypted; give --password")
    return reader


def chosen(text: str | None, count: int) -> list[int]:
    """Page indices of ``1-3,5,8-``, in that order; ``last`` counts too. None: all."""
    if not text:
        return list(range(count))
    found: list[int] = []
    for part in text.replace("last", str(count)).split(","):
        first, dash, last = part.strip().partition("-")
        try:
            start = int(first or 1)
            end = int(last or count) if dash else start
        except ValueError:
            raise PdfError(f"--pages: {part!r} is no page or range; write 1-3,5,8-") from None
        if not 1 <= start <= count or not 1 <= end <= count:
            raise PdfError(f"--pages: {part!r} is not in 1 to {count}")
        found += range(start - 1, end) if start <= end else range(start - 1, end - 2, -1)
    return found


def saved(writer: PdfWriter, path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    writer.write(path)
    print(f"{path}: {len(writer.pages)} pages")


# reading ------------------------------------------------------------------------------------------------------------


def info(options: argparse.Namespace) -> None:
    reader = opened(options.file, options.password)
    page = reader.pages[0].mediabox
    texts = [len((page.extract_text() or "").strip()) for page in reader.pages[:20]]
    facts: dict[str, Any] = {
        "pages": len(reader.pages),
        "size_points": [float(page.width), float(page.height)],
        "encrypted": reader.is_encrypted,
    }
    facts |= {key.lstrip("/").lower(): str(value) for key, value in (reader.metadata or {}).items()}
    facts |= {
        "form_fields": len(reader.get_fields() or {}),
        "has_text": any(texts),
        "pages_without_text": [i + 1 for i, n in enumerate(texts) if n < 10],
    }
    print(json.dumps(facts, ensure_ascii=False, indent=1))


def text(options: argparse.Namespace) -> None:
    reader = opened(options.file, options.password)
    parts = []
    for index in chosen(options.pages, len(reader.pages)):
        found = reader.pages[index].extract_text(extraction_mode="layout" if options.layout else "plain")
        parts.append(f"--- page {index + 1} ---\n{found.rstrip()}")
    result = "\n\n".join(parts) + "\n"
    if options.output:
        Path(options.output).write_text(result, "utf-8")
    else:
        print(result)
    if not any(part.partition("---\n")[2].strip() for part in parts):
        print(
            "There is no text on these pages: they are probably scanned. Use `images` and look at them.",
            file=sys.stderr,
        )


def words(page: Any) -> list[tuple[float, float, float, float, str]]:
    """Pieces of text with their boxes: left, bottom, right, top."""
    source = page.get_textpage()
    found = []
    for index in range(source.count_rects()):
        left, bottom, right, top = source.get_rect(index)
        if content := source.get_text_bounded(left, bottom, right, top).strip():
            found.append((left, bottom, right, top, content))
    return found


def tables_of(page: Any) -> Iterator[list[list[str]]]:
    """Tables are runs of lines whose pieces stand in the same columns."""
    lines: list[list[tuple[float, float, float, float, str]]] = []
    for word in sorted(words(page), key=lambda word: (-(word[1] + word[3]) / 2, word[0])):
        middle = (word[1] + word[3]) / 2
        if lines and abs(middle - (lines[-1][0][1] + lines[-1][0][3]) / 2) < max(3, 0.5 * (word[3] - word[1])):
            lines[-1].append(word)
        else:
            lines.append([word])
    for line in lines:
        line.sort()
        joined = [line[0]]
        for word in line[1:]:
            last = joined[-1]
            if word[0] - last[2] < 0.45 * (word[3] - word[1]):
                joined[-1] = (last[0], min(last[1], word[1]), word[2], max(last[3], word[3]), f"{last[4]} {word[4]}")
            else:
                joined.append(word)
        line[:] = joined
    block: list[list[tuple[float, float, float, float, str]]] = []
    for line in [*lines, []]:
        near = not block or not line or block[-1][0][1] - line[0][3] < 2.6 * (line[0][3] - line[0][1])
        if len(line) >= 2 and near:
            block.append(line)
            continue
        is_list = all(re.fullmatch(r"\W*|\(?\w{1,3}[.)]", row[0][4]) and len(row) == 2 for row in block)
        if len(block) >= 2 and not is_list:
            yield grid(block)
        block = [line] if len(line) >= 2 else []


def grid(block: list[list[tuple[float, float, float, float, str]]]) -> list[list[str]]:
    """Rows with a cell for each column; columns are the spans that pieces of several lines share."""
    spans: list[list[float]] = []
    for left, _, right, _, _ in sorted(word for line in block for word in line):
        if spans and left < spans[-1][1] - 0.5:
            spans[-1][1] = max(spans[-1][1], right)
        else:
            spans.append([left, right])
    rows = []
    for line in block:
        row = [""] * len(spans)
        for left, _, right, _, content in line:
            middle = (left + right) / 2
            index = min(
                range(len(spans)),
                key=lambda i: (
                    0 if spans[i][0] - 1 <= middle <= spans[i][1] + 1 else abs((spans[i][0] + spans[i][1]) / 2 - middle)
                ),
            )
            row[index] = f"{row[index]} {content}".strip()
        rows.append(row)
    return rows


def tables(options: argparse.Namespace) -> None:
    opened(options.file, options.password)
    document = pypdfium2.PdfDocument(options.file, password=options.password)
    target = Path(options.output) if options.output else None
    count = 0
    for index in chosen(options.pages, len(document)):
        for rows in tables_of(document[index]):
            count += 1
            file = io.StringIO()
            csv.writer(file).writerows(rows)
            if target:
                target.mkdir(parents=True, exist_ok=True)
                (target / f"page{index + 1}-table{count}.csv").write_text(file.getvalue(), "utf-8")
            print(
                f"--- page {index + 1}, table {count}: {len(rows)} rows, {len(rows[0])} columns ---\n{file.getvalue()}"
            )
    if not count:
        print("No tables were found; try text --layout.", file=sys.stderr)


def images(options: argparse.Namespace) -> None:
    opened(options.file, options.password)
    document = pypdfium2.PdfDocument(options.file, password=options.password)
    document.init_forms()
    Path(options.output).mkdir(parents=True, exist_ok=True)
    for index in chosen(options.pages, len(document)):
        path = Path(options.output) / f"page-{index + 1:03}.png"
        document[index].render(scale=options.dpi / 72).to_pil().save(path)
        print(path)


# forms --------------------------------------------------------------------------------------------------------------


def fields(options: argparse.Namespace) -> None:
    found = {}
    for name, field in (opened(options.file, options.password).get_fields() or {}).items():
        kind = {"/Tx": "text", "/Btn": "box", "/Ch": "choice", "/Sig": "signature"}.get(str(field.get("/FT")), "group")
        states = [str(state) for state in field.get("/_States_", [])]
        found[name] = {"kind": kind, "value": str(field.get("/V", "")), **({"choices": states} if states else {})}
    print(json.dumps(found, ensure_ascii=False, indent=1))


def fill(options: argparse.Namespace) -> None:
    reader = opened(options.file, options.password)
    values = json.loads(Path(options.values).read_text("utf-8"))
    known = reader.get_fields() or {}
    if unknown := [name for name in values if name not in known]:
        raise PdfError(f"there is no field {unknown[0]!r}; there are {', '.join(known)}")
    for name, value in values.items():
        field = known[name]
        states = [str(state) for state in field.get("/_States_", [])]
        if field.get("/FT") == "/Btn":
            on = next((state for state in states if state != "/Off"), "/Yes")
            values[name] = on if value is True else "/Off" if value in (False, None) else f"/{str(value).lstrip('/')}"
            if states and values[name] not in states:
                raise PdfError(f"{name!r} takes true, false or one of {', '.join(states)}")
    writer = PdfWriter(clone_from=reader)
    for page in writer.pages:
        writer.update_page_form_field_values(page, values, auto_regenerate=False, flatten=options.flatten)
    writer.set_need_appearances_writer(True)
    if options.flatten:
        writer.remove_annotations(subtypes="/Widget")
        writer._root_object.pop(NameObject("/AcroForm"), None)
    saved(writer, options.output)


# pages --------------------------------------------------------------------------------------------------------------


def merge(options: argparse.Namespace) -> None:
    writer = PdfWriter()
    for file in options.files:
        writer.append(opened(file, options.password), outline_item=Path(file).stem)
    saved(writer, options.output)


def pages(options: argparse.Namespace) -> None:
    reader, writer = opened(options.file, options.password), PdfWriter()
    for index in chosen(options.pages, len(reader.pages)):
        page = writer.add_page(reader.pages[index])
        if options.rotate:
            page.rotate(options.rotate)
    saved(writer, options.output)


def split(options: argparse.Namespace) -> None:
    reader = opened(options.file, options.password)
    for start in range(0, len(reader.pages), options.every):
        writer = PdfWriter()
        for page in reader.pages[start : start + options.every]:
            writer.add_page(page)
        saved(writer, f"{options.output}/{Path(options.file).stem}-{start // options.every + 1:03}.pdf")


def stamp(options: argparse.Namespace) -> None:
    reader = opened(options.file, options.password)
    writer = PdfWriter(clone_from=reader)
    for number, page in enumerate(writer.pages, 1):
        width, height = float(page.mediabox.width), float(page.mediabox.height)
        buffer = io.BytesIO()
        canvas = Canvas(buffer, pagesize=(width, height))
        if options.text:
            canvas.setFillGray(0.5, 0.25)
            canvas.translate(width / 2, height / 2)
            canvas.rotate(45)
            canvas.setFont("Helvetica-Bold", min(70, 1.1 * width / max(len(options.text), 4)))
            canvas.drawCentredString(0, 0, options.text)
        if options.numbers:
            canvas.setFont("Helvetica", 9)
            canvas.drawCentredString(width / 2, 24, f"{number} / {len(writer.pages)}")
        canvas.save()
        buffer.seek(0)
        layer = PdfReader(buffer).pages[0]
        page.merge_transformed_page(
            layer, Transformation().translate(float(page.mediabox.left), float(page.mediabox.bottom))
        )
    saved(writer, options.output)


def protect(options: argparse.Namespace) -> None:
    writer = PdfWriter(clone_from=opened(options.file, options.password))
    writer.encrypt(options.new_password, algorithm="RC4-128")
    saved(writer, options.output)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--password", help="of an encrypted file")
    actions = parser.add_subparsers(dest="action", required=True)

    def action(
        run: Any, about: str, *, many: bool = False, output: str | None = "the PDF to write"
    ) -> argparse.ArgumentParser:
        made = actions.add_parser(run.__name__, help=about, description=about)
        made.add_argument("files" if many else "file", **({"nargs": "+"} if many else {}))
        if output:
            made.add_argument("-o", "--output", required="optional" not in output, help=output)
        made.set_defaults(run=run)
        return made

    action(info, "pages, size, metadata, whether there is text", output=None)
    reading = action(text, "extract text", output="optional: a text file")
    reading.add_argument("--layout", action="store_true", help="keep columns in place")
    listing = action(tables, "extract tables as CSV", output="optional: a directory")
    drawing = action(images, "pages as PNG", output="a directory")
    drawing.add_argument("--dpi", type=int, default=110)
    action(fields, "list the fields of a form", output=None)
    filling = action(fill, "fill a form from a JSON object")
    filling.add_argument("--values", required=True, help="a JSON file: name of the field to text, true or false")
    filling.add_argument("--flatten", action="store_true", help="make the values part of the page")
    action(merge, "join files", many=True)
    taking = action(pages, "take, reorder or rotate pages")
    taking.add_argument("--rotate", type=int, choices=[90, 180, 270], default=0)
    for made in (reading, listing, drawing, taking):
        made.add_argument("--pages", help="such as 1-3,5,8- or 3,2,1")
    action(split, "cut into files", output="a directory").add_argument("--every", type=int, default=1)
    marking = action(stamp, "watermark and page numbers")
    marking.add_argument("--text", help="in Latin letters, across each page")
    marking.add_argument("--numbers", action="store_true")
    locking = action(protect, "encrypt with a password")
    locking.add_argument("--new-password", required=True)
    options = parser.parse_args()
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its problems become one line of ours
    try:
        options.run(options)
    except (PdfError, PyPdfError, pypdfium2.PdfiumError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
