"""pdf and spreadsheets: files open, say what they should, and formulas live."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from PIL import Image
from tests.skills.conftest import PUBLIC, SkillRunner

PDF = "python3 /mnt/skills/public/pdf/scripts/pdf.py"
XLSX = "/mnt/skills/public/spreadsheets/scripts"
OFFICE = shutil.which("soffice", path="/usr/local/bin:/usr/bin:/bin")
"""LibreOffice, as sandboxes see it."""


def test_a_letter_has_text_links_and_bookmarks(skill: SkillRunner):
    code = """
from pypdf import PdfReader
reader = PdfReader("letter.pdf")
answer = [reader.pages[0].extract_text(), [o.title for o in reader.outline if not isinstance(o, list)], [a.get_object()["/A"]["/URI"] for a in reader.pages[0]["/Annots"]]]"""
    text, bookmarks, links = skill.look(skill.example("pdf"), code)
    assert "€118,000" in text and "下一步" in text
    assert bookmarks == ["What happened", "下一步 Next"] and links == ["https://example.org"]


CITED = """---
title: Heat pumps
---

# Heat pumps

They work [1, 2] and [citation:save money](https://example.org/money). `a[1]`

Table: Prices

| a | b |
|---|---|
| x | 1 |

![Sales by year](dot.png)

## Sources

[1] Institute, Field test, 2025. https://example.org/field_(test)?a=1&b=2
[2] Agency, Prices, 2026. https://example.net/prices
"""
DOT = "python3 -c \"from PIL import Image; Image.new('RGB', (20, 20), 'red').save('../uploads/dot.png')\"; "


def test_a_cited_report_has_its_title_once_live_links_and_captions(skill: SkillRunner):
    result = skill(
        f"{DOT}python3 /mnt/skills/public/pdf/scripts/make_pdf.py ../uploads/r.md -o ../outputs/r.pdf",
        files={"r.md": CITED},
    )
    assert result.exit_code == 0, result.output
    code = """
from pypdf import PdfReader
reader = PdfReader("r.pdf")
notes = [a.get_object() for page in reader.pages for a in page.get("/Annots", [])]
answer = ["\\n".join(page.extract_text() for page in reader.pages), [n["/A"]["/URI"] for n in notes if "/URI" in n.get("/A", {})],
    sum("/Dest" in n or n.get("/A", {}).get("/S") == "/GoTo" for n in notes)]"""
    text, links, inside = skill.look(result, code)
    assert text.count("Heat pumps") == 1 and "citation:" not in text and "a[1]" in text
    assert links == [
        "https://example.org/money",
        "https://example.org/field_(test)?a=1&b=2",
        "https://example.net/prices",
    ]
    assert inside == 2, "each number leads to its source"
    assert (
        "Table 1 Prices" in " ".join(text.split())
        and "Figure 1 Sales by year" in " ".join(text.split())
        and "Table:" not in text
    )


def test_pages_are_joined_turned_cut_stamped_and_locked(skill: SkillRunner):
    code = """
from pypdf import PdfReader
locked = PdfReader("locked.pdf")
answer = {
    "both": len(PdfReader("both.pdf").pages), "turned": [p.rotation for p in PdfReader("turned.pdf").pages],
    "parts": [len(PdfReader(f"parts/both-00{n}.pdf").pages) for n in (1, 2)],
    "stamped": [p.extract_text() for p in PdfReader("stamped.pdf").pages], "locked": locked.is_encrypted and not locked.decrypt("wrong") and bool(locked.decrypt("secret")),
}"""
    found = skill.look(skill.example("pdf"), code)
    assert (found["both"], found["turned"], found["parts"], found["locked"]) == (2, [90, 90], [1, 1], True)
    assert "DRAFT" in found["stamped"][0] and "2 / 2" in found["stamped"][1]


def test_tables_text_and_pictures_come_out(skill: SkillRunner):
    example = skill.example("pdf")
    assert example.file("tables/page1-table1.csv").read_text().splitlines()[1] == 'April,"36,200","1,180"'
    assert not (example.directory / "outputs/tables/page1-table2.csv").exists(), "a numbered list is no table"
    assert "--- page 1 ---" in example.file("letter.txt").read_text()
    with Image.open(example.file("pages/page-001.png")) as picture:
        assert picture.size == (497, 702)


def test_a_form_is_filled_and_nothing_is_invented(skill: SkillRunner):
    code = "from pypdf import PdfReader\nanswer = {n: str(f.get('/V')) for n, f in PdfReader('filled.pdf').get_fields().items()}"
    assert skill.look(skill.example("pdf"), code) == {"name": "Ada Lovelace", "newsletter": "/Yes"}
    make = f'python3 /mnt/skills/public/pdf/assets/make_form.py f.pdf; echo \'{{"nmae": "x"}}\' > v.json; {PDF} fill f.pdf --values v.json -o o.pdf'
    result = skill(make)
    assert result.exit_code == 2 and "there is no field 'nmae'; there are name, newsletter" in result.output


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("info no.pdf", "does not exist"),
        ("text ../uploads/a.pdf", "PDF"),
        ("pages f.pdf --pages 9 -o o.pdf", "'9' is not in 1 to 1"),
    ],
)
def test_what_cannot_be_done_with_a_pdf_is_named(command: str, message: str, skill: SkillRunner):
    result = skill(f"python3 /mnt/skills/public/pdf/assets/make_form.py f.pdf; {PDF} {command}", files={"a.pdf": "no"})
    assert result.exit_code == 2 and message in result.output and "Traceback" not in result.output, result.output


def test_a_workbook_has_live_formulas_a_chart_and_no_invented_results(skill: SkillRunner):
    code = """
from openpyxl import load_workbook
live, shown = load_workbook("plan.xlsx"), load_workbook("plan.xlsx", data_only=True)
plan = live["Plan"]
answer = {
    "formulas": [plan["B5"].value, plan["E6"].value, plan["B8"].value], "results": [shown["Plan"][c].value for c in ("B5", "D4", "B8", "F8")],
    "format": plan["F5"].number_format, "input": [live["Assumptions"]["B3"].font.color.rgb, plan["C4"].font.color.rgb], "frozen": plan.freeze_panes,
    "filter": plan.auto_filter.ref, "charts": len(plan._charts), "rules": len(plan.conditional_formatting),
}"""
    example = skill.example("spreadsheets")
    found = skill.look(example, code)
    assert found["formulas"] == ["=B4*(1+Assumptions!$B$3)", "=IF(D6>0,D6*(1-Assumptions!$B$4),D6)", "=SUM(B4:B7)"]
    results = [pytest.approx(129600), -11000, pytest.approx(540733.44), pytest.approx(0.0596, abs=1e-4)]
    assert found["results"] == (results if OFFICE else [None] * 4)
    assert ("not calculated: LibreOffice is not installed here" in example.output) is not bool(OFFICE)
    assert found["format"] == "0.0%" and found["input"] == ["FF0000C0"] * 2
    assert (found["frozen"], found["filter"], found["charts"], found["rules"]) == ("A4", "A3:F7", 1, 1)


def test_without_libreoffice_every_step_says_not_calculated(skill: SkillRunner):
    spec = json.dumps({"sheets": [{"name": "S", "cells": {"A1": 2, "B1": "=A1*2", "C1": "=Nowhere!A1"}}]})
    program = "printf '#!/bin/sh\\nexec %s \"$@\"\\n' $(command -v python3) > alone/python3; chmod +x alone/python3"
    steps = ("make_xlsx.py ../uploads/s.json -o s.xlsx", "recalc.py s.xlsx", "check_xlsx.py s.xlsx --values")
    commands = "; ".join(f"python3 {XLSX}/{step}; echo = $?" for step in steps)
    result = skill(f"mkdir alone; {program}; PATH=$PWD/alone; {commands}", files={"s.json": spec})
    assert result.output.count("not calculated: LibreOffice is not installed here") == 3, result.output
    assert [line for line in result.output.splitlines() if line.startswith("= ")] == ["= 0", "= 3", "= 1"]
    assert (
        '"not calculated"' in result.output and "2 formulas are not calculated in the file: S!B1, S!C1" in result.output
    )
    assert "S!C1 =Nowhere!A1 names the sheet 'Nowhere', which is missing" in result.output
    view = skill.look(
        result,
        "import zipfile\nanswer = zipfile.ZipFile('../workspace/s.xlsx').read('xl/worksheets/sheet1.xml').decode()",
    )
    assert "<f>A1*2</f><v></v>" in view, "xlsxwriter's 0 would be a wrong number"


WRONG = """
from openpyxl import Workbook
book = Workbook()
sheet = book.active
sheet.title = "S"
for row in ([1, "=A1*2", "=B1/0"], [2, "=A2*2", "=D2"], [3, "=A3*3", "=Nowhere!A1"], [4, "=A4*2", "12"]):
    sheet.append(row)
sheet["D2"] = "=C2"
book.save("wrong.xlsx")
"""


def test_what_is_wrong_in_a_workbook_is_found(skill: SkillRunner):
    result = skill(f"python3 ../uploads/wrong.py; python3 {XLSX}/check_xlsx.py wrong.xlsx", files={"wrong.py": WRONG})
    assert result.exit_code == 1
    for problem in (
        "S!C3 =Nowhere!A1 names the sheet 'Nowhere', which is missing",
        "S!C4 '12' is a number stored as text",
        "S!B3 =A3*3 is unlike its neighbours; expected =A3*2",
        *(("S!C1 =B1/0 gives #DIV/0!", "S!C2 =D2 gives #CIRCLE!", "S!D2 =C2 gives #CIRCLE!") if OFFICE else ()),
    ):
        assert problem in result.output, result.output


CHANGED = """
import zipfile
from openpyxl import Workbook, load_workbook
book = Workbook()
sheet = book.active
sheet.append([2, "=A1*2", '=IF(A1>1,"big","small")&"!"', "=A1>1", "=DATE(2026,2,1)", "=B1/0", "=A1+0.1"])
book.save("b.xlsx")
with zipfile.ZipFile("b.xlsx", "a") as file:
    file.writestr("customXml/keep.txt", "kept")
"""


@pytest.mark.nightly  # the machine needs LibreOffice
def test_libreoffice_calculates_a_changed_workbook_in_which_all_else_stays(skill: SkillRunner):
    stale = "import sys; sys.path.insert(0, '/mnt/skills/public/spreadsheets/scripts'); from pathlib import Path; import recalc\n"
    stale += "p = Path('b.xlsx'); recalc.changed(p, Path('../outputs/b.xlsx'), lambda place, cell: recalc.put(cell, recalc.Value('', 'n', '99')))"
    command = f"python3 ../uploads/make.py; python3 -B ../uploads/stale.py; cd ../outputs; python3 {XLSX}/check_xlsx.py b.xlsx; python3 {XLSX}/recalc.py b.xlsx"
    result = skill(command, files={"make.py": CHANGED, "stale.py": stale})
    assert "Sheet!B1 =A1*2 is 4, but the file shows 99." in result.output, result.output
    assert "7 formulas" not in result.output and "6 formulas calculated" in result.output
    code = """
import zipfile
from openpyxl import load_workbook
answer = [[c.value for c in load_workbook("b.xlsx", data_only=True)["Sheet"][1]], load_workbook("b.xlsx")["Sheet"]["B1"].value,
    zipfile.ZipFile("b.xlsx").read("customXml/keep.txt").decode()]"""
    row, formula, kept = skill.look(result, code)
    assert row == [2, 4, "big!", True, 46054, "#DIV/0!", 2.1]
    assert (formula, kept) == ("=A1*2", "kept")


def test_the_example_in_python_changes_a_given_workbook(skill: SkillRunner):
    [code] = re.findall(r"```python\n(.*?)```", (PUBLIC / "spreadsheets/SKILL.md").read_text(), re.DOTALL)
    make = "import openpyxl\nb = openpyxl.Workbook()\nb.active.title = '2026'\nb.save('/mnt/user-data/uploads/budget.xlsx')"
    result = skill(
        "python3 ../uploads/make.py && python3 ../uploads/change.py", files={"make.py": make, "change.py": code}
    )
    assert result.exit_code == 0, result.output
    changed = "from openpyxl import load_workbook\nanswer = load_workbook('budget.xlsx')['2026']['C7'].value"
    assert skill.look(result, changed) == "=SUM(C2:C6)"
