"""Whole jobs with public skills: a cited report whose links open in three formats, and a deck from a dirty workbook."""

from __future__ import annotations

import json
import random
import re
import shutil
import threading
import urllib.request
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image
from tests.skills.conftest import SkillRunner

pytestmark = pytest.mark.nightly
PUBLIC = "python3 /mnt/skills/public"
OFFICE = shutil.which("soffice", path="/usr/local/bin:/usr/bin:/bin")
PATHS = ["/plain", "/with_(brackets)", "/q?a=1&b=2", "/umlaut/Gr%C3%B6%C3%9Fe", "/deep/er/page.html", "/under_score_s"]


@pytest.fixture
def web() -> Iterator[dict[str, str]]:
    """Thirty pages: their titles by address."""
    pages = {
        f"{PATHS[n % len(PATHS)]}{'&' if '?' in PATHS[n % len(PATHS)] else '?'}n={n}": f"Study {n}" for n in range(30)
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            title = pages.get(self.path)
            body = f"<title>{title}</title><p>{title} found {self.path[-2:]}%.</p>".encode()
            self.send_response(200 if title else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {f"http://127.0.0.1:{server.server_port}{path}": title for path, title in pages.items()}
        server.shutdown()


def test_every_link_of_a_cited_report_opens_in_markdown_word_and_pdf(skill: SkillRunner, web: dict[str, str]):
    claims = [
        f"{title} measured {n + 3}% in 2026 [citation:{title}]({url})." for n, (url, title) in enumerate(web.items())
    ]
    parts = [" ".join(claims[at : at + 5]) for at in range(0, 30, 5)]
    answer = "---\ntitle: Thirty studies\n---\n\n# Thirty studies\n\n" + "\n\n".join(
        f"## Part {n}\n\n{part}" for n, part in enumerate(parts, 1)
    )
    steps = [
        f"{PUBLIC}/deep-research/scripts/check_citations.py ../uploads/answer.md --number -o ../outputs/report.md",
        f"{PUBLIC}/report-writing/scripts/make_docx.py ../outputs/report.md -o ../outputs/report.docx",
        f"{PUBLIC}/pdf/scripts/make_pdf.py ../outputs/report.md -o ../outputs/report.pdf",
    ]
    result = skill("set -e; " + "; ".join(steps), files={"answer.md": answer})
    assert result.exit_code == 0 and "30 sources, 0 problems" in result.output, result.output
    code = """
from docx import Document
from pypdf import PdfReader
notes = [a.get_object() for page in PdfReader("report.pdf").pages for a in page.get("/Annots", [])]
answer = {"word": [r.target_ref for r in Document("report.docx").part.rels.values() if r.is_external],
    "pdf": [n["/A"]["/URI"] for n in notes if "/URI" in n.get("/A", {})]}"""
    found = skill.look(result, code)
    found["markdown"] = re.findall(r"^\[\d+\].*?(http\S+)$", result.file("report.md").read_text(), re.MULTILINE)
    for form, links in found.items():
        assert {*links} == {*web}, form
        for link in {*links}:
            with urllib.request.urlopen(link) as page:
                assert page.status == 200 and web[link] in page.read().decode(), (form, link)


MAKE = """
import json, openpyxl
from datetime import datetime
rows = json.load(open("../uploads/rows.json"))
book = openpyxl.Workbook(); orders = book.active; orders.title = "Orders"
orders.append(["Export of the shop, 2026"]); orders.append([]); orders.append(["Order", "Region", "Day", "Units", "Price", "Revenue"])
for at, (order, region, day, units, price) in enumerate(rows, 4):
    day = datetime.fromisoformat(day[1:]) if day.startswith("=") else day
    orders.append([order, region, day, units, price, f"=D{at}*E{at}"])
targets = book.create_sheet("Targets"); targets.append(["Region", "Target"])
for region, target in (("North", 900000), ("South", 800000), ("East", 1000000), ("West", 700000)): targets.append([region, target])
sums = book.create_sheet("Summary"); sums["A1"] = "Total"; sums["B1"] = "=SUM(Orders!F4:F2403)"
book.save("shop.xlsx")
"""


def test_a_dirty_workbook_becomes_a_deck_with_the_right_numbers(skill: SkillRunner):
    chance = random.Random(29)
    rows, sums = [], dict.fromkeys(("North", "South", "East", "West"), Decimal())
    for n in range(2400):
        day = date(2026, 1, 1) + timedelta(days=n % 360)
        shown = [
            "=" + day.isoformat(),
            day.strftime("%d.%m.%Y"),
            day.isoformat(),
            "n/a" if n % 97 == 0 else day.isoformat(),
        ][n % 4]
        region, units, price = chance.choice(list(sums)), chance.randint(1, 60), round(chance.uniform(5, 99), 2)
        rows.append([4006381000000 + n, region, shown, units, price])
        sums[region] += units * Decimal(str(price))
    analyze = f"{PUBLIC}/data-analysis/scripts/analyze.py"
    sql = "SELECT Region, sum(Units * Price) AS revenue, any_value(Target) AS target FROM shop_orders JOIN shop_targets USING (Region) GROUP BY 1 ORDER BY 1"
    command = f"set -e; python3 ../uploads/make.py; {analyze} inspect shop.xlsx; {analyze} query shop.xlsx --sql '{sql}' --output ../outputs/r.json"
    first = skill(command, files={"make.py": MAKE, "rows.json": json.dumps(rows)})
    assert first.exit_code == 0, first.output
    assert "1 formulas without results stand outside of the table" in first.output
    assert "Revenue left out: formulas without results" in first.output and "mixed notations of days" in first.output
    assert "(shop.xlsx, sheet Orders; 2400 rows)" in first.output.replace("2,400", "2400"), first.output
    answer = json.loads(first.file("r.json").read_text(), parse_float=Decimal)
    assert {row["Region"]: Decimal(row["revenue"]) for row in answer} == sums, "to the cent"

    names, revenue = [row["Region"] for row in answer], [float(row["revenue"]) for row in answer]
    total = f"{sum(sums.values()):,.2f}"
    table = [
        ["Region", "Revenue", "Target"],
        *([row["Region"], f"{row['revenue']:,.2f}", f"{row['target']:,}"] for row in answer),
    ]
    chart = {
        "type": "column",
        "categories": names,
        "series": {"Revenue": revenue, "Target": [int(row["target"]) for row in answer]},
        "format": "#,##0",
    }
    slides = [{"layout": "title", "title": f"Revenue is {total}", "subtitle": "Shop, 2026"},
              {"layout": "chart", "title": "Each region against its target", "chart": chart},
              {"layout": "table", "title": "Revenue to the cent", "rows": table}]  # fmt: skip
    scripts = f"{PUBLIC}/slides/scripts"
    steps = [
        f"{scripts}/make_pptx.py ../uploads/deck.json -o ../outputs/deck.pptx",
        f"{scripts}/check_pptx.py ../outputs/deck.pptx",
    ]
    if OFFICE:
        steps += ["soffice --headless --convert-to pdf --outdir . ../outputs/deck.pptx", f"{PUBLIC}/pdf/scripts/pdf.py images deck.pdf -o ../outputs/pages",
                  f"{PUBLIC}/pdf/scripts/pdf.py text deck.pdf -o ../outputs/deck.txt"]  # fmt: skip
    deck = skill("set -e; " + "; ".join(steps), files={"deck.json": json.dumps({"title": "Shop", "slides": slides})})
    assert deck.exit_code == 0, deck.output
    code = """
from pptx import Presentation
slides = Presentation("deck.pptx").slides
charts = [s.chart for slide in slides for s in slide.shapes if s.has_chart]
answer = [[list(p.values) for p in c.plots[0].series] + [c.value_axis.tick_labels.number_format] for c in charts]"""
    assert skill.look(deck, code) == [[revenue, [float(row["target"]) for row in answer], "#,##0"]]
    if not OFFICE:
        return
    text = deck.file("deck.txt").read_text()
    assert [cell for row in table for cell in row if cell not in text] == [] and total in text
    pages = sorted((deck.directory / "outputs/pages").glob("*.png"))
    assert len(pages) == 3
    for page in pages:
        with Image.open(page) as picture:
            seen = picture.convert("L").resize((160, 90))
            dark = sum(count for shade, count in enumerate(seen.histogram()) if shade < 200)
        assert 0.01 < dark / (160 * 90) < 0.9 or page == pages[0], f"{page.name} is empty or full"
    print("pages:", *pages)
