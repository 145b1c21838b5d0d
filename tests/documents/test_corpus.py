"""A table of files and right values: twelve contents in fourteen formats, made here, of which nearly all must be read."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from tests.documents import office
from tests.skills.conftest import SkillRunner
from tests.skills.conftest import skill as runner  # noqa: F401 - a fixture

from deerflow.sandbox.converters import Converters, UnreadableError

CONTENTS: dict[str, list[str | int | float | bool]] = {
    "german": ["Größe", "Straße 7", "Übermäßig", "naïve café"],
    "chinese": ["北京市", "销售额", "第一季度", "合计"],
    "russian": ["Москва", "Итого", "счёт", "объём"],
    "japanese": ["東京", "カタカナ", "ひらがな", "売上"],
    "greek": ["Αθήνα", "σύνολο", "πρώτος", "λόγος"],
    "hebrew": ["שלום", "מחיר", "ירושלים", "סכום"],
    "codes": [4006381333931, 9783161484100, 1234567890, 5901234123457],
    "zips": ["01067", "00501", "007", "+49 351 123"],
    "decimals": [0.1, 1234.56, 99.95, -0.25],
    "words": ["NA", "None", "null", "TRUE story"],
    "signs": ["a|b", "x < y", "50 % & more", "3 * 4 * 5"],
    "long": ["the first of many words", "a value that is longer than its column is wide", "end.", "§ 12 (3)"],
}
MAKE = r"""
import email.message, json, sys
import docx, matplotlib, openpyxl, pptx, xlsxwriter
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas
from reportlab.platypus import SimpleDocTemplate, Table, TableStyle

pdfmetrics.registerFont(TTFont("D", matplotlib.get_data_path() + "/fonts/ttf/DejaVuSans.ttf"))
pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
for name, values in json.loads(sys.argv[1]).items():
    font = {"chinese": "STSong-Light", "japanese": "HeiseiMin-W3"}.get(name, "D")
    said = [str(value) for value in values]
    seen = [text[::-1] for text in said] if name == "hebrew" else said
    head = ["One", "Two", "Three", "Four"]

    book = openpyxl.Workbook(); book.active.append(head); book.active.append(values)
    book.create_sheet("Second").append(values); book.save(f"{name}.xlsx")
    book = xlsxwriter.Workbook(f"{name}-writer.xlsx"); sheet = book.add_worksheet(name); sheet.write_row(0, 0, head)
    sheet.write_row(1, 0, values); book.close()
    word = docx.Document(); word.add_heading(name, 1)
    for text in said: word.add_paragraph(text)
    word.save(f"{name}.docx")
    word = docx.Document(); table = word.add_table(2, 4)
    for at, text in enumerate(said): table.cell(0, at).text = head[at]; table.cell(1, at).text = text
    word.sections[0].header.paragraphs[0].text = name; word.save(f"{name}-table.docx")
    deck = pptx.Presentation(); slide = deck.slides.add_slide(deck.slide_layouts[5]); slide.shapes.title.text = said[0]
    cells = slide.shapes.add_table(2, 4, 0, 0, 9, 9).table
    for at, text in enumerate(said): cells.cell(0, at).text = head[at]; cells.cell(1, at).text = text
    slide.notes_slide.notes_text_frame.text = said[-1]; deck.save(f"{name}.pptx")
    pdf = canvas.Canvas(f"{name}.pdf"); pdf.setFont(font, 12)
    for at, text in enumerate(seen): pdf.drawString(72, 760 - 30 * at, text)
    pdf.save()
    style = TableStyle([("FONT", (0, 0), (-1, -1), font, 9), ("GRID", (0, 0), (-1, -1), 0.5, "black")])
    SimpleDocTemplate(f"{name}-table.pdf").build([Table([head, seen, seen], style=style)])
    mail = email.message.EmailMessage(); mail["From"] = "a@example.org"; mail["Subject"] = said[0]
    mail.set_content("\n".join(said)); open(f"{name}.eml", "wb").write(bytes(mail))
    mail = email.message.EmailMessage(); mail["From"] = "a@example.org"; mail["Subject"] = name
    rows = "".join(f"<td>{text.replace('&', '&amp;').replace('<', '&lt;')}</td>" for text in said)
    mail.set_content(f"<table><tr><th>One<th>Two<th>Three<th>Four</tr><tr>{rows}</tr></table>", subtype="html"); open(f"{name}-html.eml", "wb").write(bytes(mail))
    coded = "".join(c if ord(c) < 128 else f"\\u{ord(c)}?" for text in said for c in text + "\\par ")
    open(f"{name}.rtf", "w").write("{\\rtf1\\ansi " + coded + "}")
    codec = {"german": "cp1252", "chinese": "gb18030", "japanese": "shift_jis", "russian": "utf-16", "greek": "utf-8-sig"}.get(name, "utf-8")
    lines = [",".join(f'"{text}"' for text in said)] * 12
    open(f"{name}-text.xlsx", "wb").write("\n".join(lines).encode(codec))
"""
WANTED = 0.95


def written(values: list[str | int | float | bool]) -> dict[str, bytes]:
    """Return the formats that need no library."""
    said = [str(value).replace("&", "&amp;").replace("<", "&lt;") for value in values]
    cells = "".join(
        f"<table:table-cell office:value-type='{'string' if isinstance(value, str) else 'float'}' office:value='{text}'>"
        f"<text:p>{text}</text:p></table:table-cell>"
        if not isinstance(value, str)
        else f"<table:table-cell office:value-type='string'><text:p>{text}</text:p></table:table-cell>"
        for value, text in zip(values, said, strict=True)
    )
    rows = f"<table:table table:name='T'><table:table-row>{cells}</table:table-row></table:table>"
    return {
        ".odt": office.open_document("text", "".join(f"<text:p>{text}</text:p>" for text in said)),
        ".ods": office.open_document("spreadsheet", rows),
        "-web.xls": f"<html><meta charset=utf-8><table><tr>{''.join(f'<td>{text}</td>' for text in said)}</tr></table></html>".encode(),
    }


@pytest.fixture(scope="session")
def corpus(runner: SkillRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    made = tmp_path_factory.mktemp("corpus")
    python = str(runner.image.path() / "bin/python")
    subprocess.run([python, "-c", MAKE, json.dumps(CONTENTS)], cwd=made, check=True)
    for name, values in CONTENTS.items():
        for ending, data in written(values).items():
            (made / f"{name}{ending}").write_bytes(data)
    return made


async def test_right_values_of_a_hundred_and_fifty_files_are_read(corpus: Path, converters: Converters) -> None:
    files = await asyncio.to_thread(lambda: sorted(corpus.iterdir()))
    missed: list[str] = []
    counted = 0
    for file in files:
        data = await asyncio.to_thread(file.read_bytes)
        try:
            text = (await converters.document(data, file.name, "u")).decode().replace("\\", "")
        except UnreadableError as error:
            text = f"unreadable: {error}"
        values = [str(value) for value in CONTENTS[file.stem.partition("-")[0]]]
        counted += len(values)
        missed += [
            f"{file.name}: {value}" for value in values if value not in text and value.replace("<", "< ") not in text
        ]
    right = 1 - len(missed) / counted
    print(f"right values: {right:.1%} of {counted} in {len(files)} files; missed: {missed}")
    assert len(files) >= 150 and counted >= 600
    assert right >= WANTED, missed


@pytest.mark.nightly  # the machine needs LibreOffice
@pytest.mark.parametrize(
    ("made", "source"), [("doc", "german-table.docx"), ("ppt", "german.pptx"), ("xls", "german.xlsx")]
)
async def test_files_of_office_97_are_read_with_libreoffice(
    corpus: Path, converters: Converters, tmp_path: Path, made: str, source: str
) -> None:
    command = ["soffice", "--headless", f"-env:UserInstallation=file://{tmp_path}/profile", "--convert-to", made]
    run = [*command, "--outdir", str(tmp_path), str(corpus / source)]
    await asyncio.to_thread(subprocess.run, run, check=True, capture_output=True)
    file = tmp_path / f"{Path(source).stem}.{made}"
    text = (await converters.document(await asyncio.to_thread(file.read_bytes), file.name, "u")).decode()
    assert [value for value in CONTENTS["german"] if str(value) not in text] == []
