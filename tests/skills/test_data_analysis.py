"""data-analysis: tables in files answer questions in SQL, and results become files that open."""

from __future__ import annotations

import csv
import json

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
    assert "|   4 |   2 |" in result.output, result.output


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
