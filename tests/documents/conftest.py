"""Documents made with the tool image, in a thread's uploads."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.skills.conftest import SkillRunner
from tests.skills.conftest import skill as runner  # noqa: F401 - a fixture

from deerflow.config import AppConfig
from deerflow.context import RunContext
from deerflow.context.machine import Machine
from deerflow.sandbox.converters import Converters
from deerflow.sandbox.interface import UPLOADS, Sandbox

MAKE = """
import email.message, io, zipfile
import docx, matplotlib, openpyxl, pptx, pypdf
from PIL import Image
from pptx.chart.data import CategoryChartData
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

pdf = canvas.Canvas("report.pdf")
for number, (title, text) in enumerate([("Harbours", "Ships <!-- page 99 --> come in."), ("Tides", "Water rises."), ("", "The end.")]):
    if title:
        pdf.bookmarkPage(f"b{number}"); pdf.addOutlineEntry(title, f"b{number}", 0)
        pdf.drawString(72, 760, title)
    pdf.drawString(72, 720, text)
    pdf.showPage()
pdf.save()
locked = pypdf.PdfWriter(clone_from="report.pdf"); locked.encrypt("secret"); locked.write("locked.pdf")
open("broken.pdf", "wb").write(open("report.pdf", "rb").read()[:300])
Image.new("L", (300, 400), 128).save("grey.png")
pdf = canvas.Canvas("scan.pdf"); pdf.drawImage("grey.png", 0, 0, 595, 842); pdf.showPage(); pdf.showPage(); pdf.save()
prose = getSampleStyleSheet()["BodyText"]
rows = [["Region", "Units", "EUR"], ["North", "12", "1,200.50"], ["South", "7", ""], ["West", "30", "99.00"]]
SimpleDocTemplate("table.pdf").build([Paragraph("Sales of the year, as they were counted.", prose), Table(rows), Paragraph("That is all.", prose)])
pdf = canvas.Canvas("form.pdf"); pdf.drawString(72, 700, "Name of the applicant")
pdf.acroForm.textfield(name="applicant", value="Anna Berg", x=72, y=650); pdf.save()
pdfmetrics.registerFont(TTFont("D", matplotlib.get_data_path() + "/fonts/ttf/DejaVuSans.ttf"))
pdf = canvas.Canvas("hebrew.pdf"); pdf.setFont("D", 14)
pdf.drawString(300, 700, "שלום עולם"[::-1]); pdf.drawString(72, 650, "Price: " + "מחיר"[::-1] + " 100"); pdf.save()

word = docx.Document(); word.add_heading("Plan", 1); word.add_paragraph("First, measure."); word.add_table(1, 2).cell(0, 0).text = "cell"; word.save("plan.docx")
deck = pptx.Presentation()
for title in ("Start", "Goal"):
    slide = deck.slides.add_slide(deck.slide_layouts[5]); slide.shapes.title.text = title
    if title == "Start":
        cells = slide.shapes.add_table(1, 2, 0, 0, 9, 9).table.rows[0].cells; cells[0].text, cells[1].text = "a", "b|c"
        data = CategoryChartData(); data.categories = ["North", "South"]; data.add_series("Units", (12, 7))
        chart = slide.shapes.add_chart(51, 0, 0, 9, 9, data).chart; chart.has_title = True; chart.chart_title.text_frame.text = "Sales"
        slide.notes_slide.notes_text_frame.text = "Say hello"
slide._element.set("show", "0")
deck.save("deck.pptx")
book = openpyxl.Workbook(); book.active.title = "Sales"; book.active.append(["year", "sum"]); book.active.append([2026, 4711]); book.save("book.xlsx")
open("odd.docx", "wb").write(open("plan.docx", "rb").read()[:500])
with zipfile.ZipFile("bomb.docx", "w", zipfile.ZIP_DEFLATED) as bomb:
    for number in range(6):
        bomb.writestr(f"word/media/{number}.bin", b"0" * (100 << 20))
with zipfile.ZipFile("large.docx", "w", zipfile.ZIP_DEFLATED) as large:
    large.writestr("word/document.xml", b" " * (60 << 20))
Image.new("RGB", (9, 9), "red").save("red.png")
open("page.html", "w").write("<title>Offer</title><h1>Offer</h1><p>Ten deer for sale, all of them healthy.</p><p style='display:none'>SECRET order</p>"
    "<p style='color:#fff'>SECRET white</p><p style='font-size:1px'>SECRET tiny</p><p style='position:absolute;left:-9999px'>SECRET away</p>")
open("secret.docx", "wb").write(bytes.fromhex("d0cf11e0a1b11ae1") + "EncryptedPackage".encode("utf-16-le"))
open("old.doc", "wb").write(bytes.fromhex("d0cf11e0a1b11ae1") + "WordDocument".encode("utf-16-le"))
mail = email.message.EmailMessage(); mail["From"] = "a@example.org"; mail["Subject"] = "The figures"
mail.set_content("<h1>Hello</h1><p>See <b>below</b>.</p>", subtype="html"); mail.add_attachment(b"x", maintype="application", subtype="pdf", filename="sum.pdf")
open("mail.eml", "wb").write(bytes(mail))
"""


@pytest.fixture(scope="session")
def documents(runner: SkillRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    made = tmp_path_factory.mktemp("documents")
    subprocess.run([str(runner.image.path() / "bin/python"), "-c", MAKE], cwd=made, check=True)
    return made


@pytest.fixture(scope="session")
def converters(runner: SkillRunner) -> Iterator[Converters]:  # noqa: F811
    made = Converters(runner.provider, runner.image)
    yield made
    asyncio.run(made.shutdown())


@pytest.fixture
async def context(runner: SkillRunner, documents: Path, converters: Converters) -> RunContext:  # noqa: F811
    """Of a run in a thread with these uploads."""
    policy = await asyncio.to_thread(
        lambda: runner.thread({file.name: file.read_bytes() for file in documents.iterdir()})
    )
    assert policy.home is not None
    name = policy.home.parent.name
    return RunContext(
        name,
        config=AppConfig(),
        machine=Machine(provider=runner.provider, policy=policy, converters=converters),
    )


@pytest.fixture
async def sandbox(context: RunContext) -> AsyncIterator[Sandbox]:
    made = await context.sandbox()
    yield made
    assert context.machine.provider is not None
    await context.machine.provider.release(made.id, destroy=True)


def upload(name: str) -> str:
    return f"{UPLOADS}/{name}"
