"""data-analysis: tables in files answer questions in SQL, and results become files that open."""

from __future__ import annotations

import csv
import json
import re

import pytest
from tests.skills.conftest import PUBLIC, SkillRunner

ANALYZE = "python3 /mnt/skills/public/data-analysis/scripts/analyze.py"


WORKBOOK = """
from openpyxl import Workbook
book = Workbook()
first, second = book.active, book.create_sheet("Second Sheet")
first.title = "First"
for row in (["Name", "Unit Price", None], ["a", 1.5, None], [None, None, None], ["b", 2.5, None]):
    first.append(row)
for row in (["Name", "n"], ["a", 10], ["b", "many"]):
    second.append(row)
book.save("/mnt/user-data/workspace/Book.xlsx")
"""


def test_the_example_gives_the_revenue_of_each_region(skill: SkillRunner):
    with (PUBLIC / "data-analysis/assets/orders.csv").open() as file:
        paid = [row for row in csv.DictReader(file) if row["paid"] == "yes"]
    expected: dict[str, float] = {}
    for row in paid:
        expected[row["region"]] = expected.get(row["region"], 0) + int(row["units"]) * float(row["price"])
    code = "import openpyxl\ns = openpyxl.load_workbook('revenue.xlsx')['Result']\nanswer = [s.freeze_panes, *s.iter_rows(values_only=True)]"
    frozen, *rows = skill.look(skill.example("data-analysis"), code)
    assert rows[0] == ["region", "revenue", "target", "reached"]
    assert {row[0]: row[1] for row in rows[1:]} == {
        region: pytest.approx(total, abs=0.51) for region, total in expected.items()
    }
    assert frozen == "A2"


def test_sheets_of_a_workbook_are_tables_without_their_empty_rows(skill: SkillRunner):
    command = f"python3 /mnt/user-data/uploads/make.py; {ANALYZE} inspect Book.xlsx; {ANALYZE} query Book.xlsx --sql 'SELECT sum(\"Unit Price\") AS s, count(*) AS n FROM book_first JOIN book_second_sheet USING (Name)'"
    result = skill(command, files={"make.py": WORKBOOK})
    assert "book_first" in result.output and "2 rows" in result.output
    assert "| 4.0 |   2 |" in result.output, result.output
    assert "n: " not in result.output, "two of two values: nothing to say"


CHINESE = '编号,城市,销售额\n1,北京,"1,200.50"\n2,上海,99\n3,广州,3\n4,深圳,7.25\n'.encode("gb18030")
EUROPEAN = (
    "Straße;Preis;Menge;PLZ;EAN;Tag;Betrag;Rabatt\nA-Weg;1,50;1.200;01067;4006381333931;12.03.2026;€ 1.234,50;5 %\n"
    "Öl;2,25;3.400;10115;4006381333948;13.03.2026;€ 7,00;10 %\nC;n/a;;;;2026-03-14;;\n"
).encode("cp1252")
AMERICAN = (
    'name,amount,when,unclear,odd,part,big\na,"1,234",03/13/2026,01/02/2026,12,0.1,12345678901234567890\n'
    'b,"2,345",04/01/2026,03/04/2026,13,0.2,1\nc,5,05/01/2026,05/06/2026,14,0.3,2\nd,6,05/01/2026,05/06/2026,15,0.3,2\n'
    "e,6,05/01/2026,05/06/2026,ca. 5,0.3,2\n"
)
DIRTY = """
import datetime, openpyxl
book = openpyxl.Workbook(); sheet = book.active; sheet.title = "Sales"
sheet["A1"] = "Report 2026"; sheet.append([]); sheet.append(["EAN", "Name", "Price", "Day", "Total", "NA"])
for i in range(4):
    sheet.append([4006381333931 + i, "NA" if i == 2 else f"n{i}", 0.1 * (i + 1), datetime.datetime(2026, 3, i + 1), f"=C{i + 4}*2", "x"])
second = book.create_sheet("Two")
for row in (["x", "y"], ["a", 2], ["Total", 2]): second.append(row)
book.create_sheet("Empty"); book.save("/mnt/user-data/workspace/dirty.xlsx")
"""


def test_cities_of_another_encoding_stay_apart(skill: SkillRunner):
    result = skill(
        f"{ANALYZE} query ../uploads/c.csv --sql 'SELECT 城市, sum(销售额) AS s FROM c GROUP BY 1 ORDER BY 2'",
        files={"c.csv": CHINESE},
    )
    assert re.findall(r"^\| (\S+) +\| +([\d.]+) \|$", result.output, re.MULTILINE) == [
        ("广州", "3.00"), ("深圳", "7.25"), ("上海", "99.00"), ("北京", "1200.50")
    ] and "! read as GB18030" in result.output, result.output  # fmt: skip


def test_decimal_commas_leading_zeros_and_mixed_days_are_read_and_named(skill: SkillRunner):
    output = skill(f"{ANALYZE} inspect ../uploads/e.csv", files={"e.csv": EUROPEAN}).output
    for part in (
        "! read as Windows-1252",
        "! Preis: decimal commas; 1 value is a word for nothing ('n/a'), read as missing",
        "! Menge: 1.200 was read as 1200",
        "! Tag: mixed notations of days: 1 like 2026-03-12, 2 like 12.03.2026",
        "! Betrag: decimal commas; in €",
        "! Rabatt: in %",
    ):
        assert part in output, output
    for row in (r"Preis +\| DECIMAL\(18,2\) +\| +1 \| +2 \| 1.50", r"PLZ +\| VARCHAR .* 01067", r"EAN +\| BIGINT .* 4006381333931", r"Tag +\| DATE .* 2026-03-12",
                r"Betrag +\| DECIMAL\(18,2\) .* 1234.50"):  # fmt: skip
        assert re.search(row, output), output


def test_what_is_doubtful_stays_text_and_sums_are_exact(skill: SkillRunner):
    sql = 'SELECT sum(part) AS p, sum(big) AS b, sum(amount) AS a, 1e20::DOUBLE AS x, max("when") AS w FROM u'
    output = skill(f"{ANALYZE} query ../uploads/u.csv --sql '{sql}'", files={"u.csv": AMERICAN}).output
    assert re.search(r"\| 1\.2 \| 12345678901234567897 \| +3596 \| 100000000000000000000 \| 2026-05-01 \|", output), (
        output
    )
    assert (
        "unclear: stays text: of days such as 01/02/2026 whether the day or the month comes first cannot be told"
        in output
    )
    assert (
        "odd: stays text: 1 of 5 values are no numbers, such as 'ca. 5'" in output
        and "amount: 1,234 was read as 1234" in output
    )


def test_each_sheet_has_its_own_header_and_what_cannot_be_read_is_named(skill: SkillRunner):
    output = skill(f"python3 ../uploads/make.py; {ANALYZE} inspect dirty.xlsx; {ANALYZE} query dirty.xlsx --sql 'SELECT sum(Price) AS s, max(EAN) AS e FROM dirty_sales'",
                   files={"make.py": DIRTY}).output  # fmt: skip
    for part in (
        "## dirty_sales  (dirty.xlsx, sheet Sales; 4 rows)",
        "! rows above the header are left out: 'Report 2026'",
        "! 6 columns, Total left out: formulas without results",
        "## dirty_two  (dirty.xlsx, sheet Two; 2 rows)\n! the last row is a total",
    ):
        assert part in output, output
    assert re.search(r"4006381333933 \| NA +\| +0\.3 \| 2026-03-03 \| x ", output), output
    assert re.search(r"\| 1\.0 \| 4006381333934 \|", output) and "dirty_empty" not in output, output


def test_exact_numbers_reach_the_files(skill: SkillRunner):
    sql = "SELECT part, big, amount FROM u WHERE name = 'a'"
    command = "; ".join(
        f'{ANALYZE} query ../uploads/u.csv --sql "{sql}" --output ../outputs/r.{ending}'
        for ending in ("csv", "json", "xlsx")
    )
    result = skill(command, files={"u.csv": AMERICAN})
    assert result.file("r.csv").read_text() == "part,big,amount\n0.1,12345678901234567890,1234\n"
    assert json.loads(result.file("r.json").read_text()) == [{"part": 0.1, "big": 12345678901234567890, "amount": 1234}]
    code = "import openpyxl\nanswer = [list(row) for row in openpyxl.load_workbook('r.xlsx')['Result'].iter_rows(values_only=True)]"
    assert skill.look(result, code)[1] == [0.1, "12345678901234567890", 1234]


@pytest.mark.parametrize("ending", ["csv", "json", "md", "parquet"])
def test_a_result_becomes_a_file(ending: str, skill: SkillRunner):
    files = {"Größen 2026.csv": "stadt;wert\nKöln;1,5\nBonn;2,5\n", "more.json": '[{"stadt": "Köln", "n": 3}]'}
    sql = "SELECT stadt, n, wert FROM größen_2026 LEFT JOIN more USING (stadt) ORDER BY stadt"
    result = skill(
        f'cd /mnt/user-data/uploads; {ANALYZE} query *.csv *.json --sql "{sql}" --output ../outputs/r.{ending}',
        files=files,
    )
    assert result.exit_code == 0, result.output
    file = result.file(f"r.{ending}")
    if ending == "json":
        assert [row["stadt"] for row in json.loads(file.read_text())] == ["Bonn", "Köln"]
    elif ending != "parquet":
        assert "Köln" in file.read_text()
    else:
        again = skill(
            f"{ANALYZE} query /mnt/user-data/uploads/r.parquet --sql 'SELECT count(*) FROM r'",
            files={"r.parquet": file.read_bytes()},
        )
        assert "2 |" in again.output


def test_a_query_reaches_no_other_file(skill: SkillRunner):
    result = skill(
        f"{ANALYZE} query /mnt/user-data/uploads/a.csv --sql \"SELECT * FROM read_csv('/etc/passwd')\"",
        files={"a.csv": "a\n1\n"},
    )
    assert result.exit_code == 2 and "root:" not in result.output


def test_mistakes_are_named_in_one_line(skill: SkillRunner):
    result = skill(
        f"cd ../uploads; {ANALYZE} query a.csv --sql 'SELECT nothing FROM a'; {ANALYZE} inspect b.csv; {ANALYZE} summary a.csv --table c",
        files={"a.csv": "a\n1\n"},
    )
    assert "Traceback" not in result.output
    assert (
        '"nothing" not found' in result.output
        and "b.csv does not exist" in result.output
        and "there is no c; there are a" in result.output
    )
