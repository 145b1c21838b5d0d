"""chart-visualization: every type is drawn as a picture and as a drawing with its texts."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from PIL import Image
from tests.skills.conftest import PUBLIC, Result, SkillRunner

CHART = "python3 /mnt/skills/public/chart-visualization/scripts/chart.py"
GALLERY = json.loads((PUBLIC / "chart-visualization/assets/gallery.json").read_text())


@pytest.fixture(scope="module")
def gallery(skill: SkillRunner) -> Result:
    folder = "/mnt/skills/public/chart-visualization"
    return skill(
        f"{CHART} {folder}/assets/gallery.json -o /mnt/user-data/outputs --format png svg --dpi 50", timeout=400
    )


def test_the_gallery_shows_every_type_and_every_letter_is_drawn(gallery: Result, skill: SkillRunner):
    assert gallery.exit_code == 0, gallery.output
    types = re.findall(r"^(\w+):", skill(f"{CHART} --list").output, re.MULTILINE)
    assert set(types) == {spec["type"] for spec in GALLERY if "type" in spec}
    assert f"Draws {len(types)} kinds of charts" in (PUBLIC / "chart-visualization/SKILL.md").read_text()
    assert "no font here has" not in gallery.output


@pytest.mark.parametrize("spec", GALLERY, ids=lambda spec: spec["name"])
def test_each_example_becomes_a_picture_and_a_drawing_with_its_title(spec: dict[str, str], gallery: Result):
    with Image.open(gallery.file(f"{spec['name']}.png")) as picture:
        pixels = picture.convert("RGB")
        assert pixels.width > 400 and len(pixels.getcolors(1 << 20) or range(1000)) > 20, "nothing is drawn"
    texts = [
        "".join(part.itertext())
        for part in ElementTree.parse(gallery.file(f"{spec['name']}.svg")).iter()
        if part.tag.endswith("}text")
    ]
    assert spec["title"].split()[0] in " ".join(texts)


def test_the_example_of_the_text_is_drawn(skill: SkillRunner):
    with Image.open(skill.example("chart-visualization").file("sales.png")) as picture:
        assert picture.size == (1536, 896)
    assert "$71M" in skill.example("chart-visualization").file("sales.svg").read_text()


def test_a_file_of_another_encoding_with_decimal_commas_is_drawn(skill: SkillRunner):
    spec = {"type": "bar", "data": "c.csv", "x": "城市", "y": "销售额", "labels": True, "format": ",.2f"}
    files = {"s.json": json.dumps(spec), "c.csv": "城市;销售额\n北京;1,50\n上海;2,25\n".encode("gb18030")}
    result = skill(f"{CHART} ../uploads/s.json -o ../outputs/c.svg", files=files)
    assert result.exit_code == 0, result.output
    texts = "".join(ElementTree.parse(result.file("c.svg")).getroot().itertext())
    assert "北京" in texts and "上海" in texts and "2.25" in texts


def test_what_is_wrong_with_a_specification_is_named(skill: SkillRunner):
    wrong = {
        "type": ({"type": "cake", "data": [{"a": 1}]}, "'cake' is not one of"),
        "column": (
            {"type": "line", "data": [{"a": 1, "b": 2}], "x": "a", "y": "c"},
            "there is no column 'c'. The data has ['a', 'b']",
        ),
        "needs": ({"type": "line", "data": [{"a": 1}], "x": "a"}, "line needs y"),
        "file": ({"type": "line", "data": "no.csv", "x": "a", "y": "b"}, "no.csv does not exist"),
        "text": ({"type": "bar", "data": [{"a": 1, "b": "x"}], "x": "a", "y": "b"}, "'b' holds texts"),
        "circle": (
            {
                "type": "sankey",
                "data": [{"a": "p", "b": "q", "n": 1}, {"a": "q", "b": "p", "n": 1}],
                "source_by": "a",
                "target": "b",
                "value": "n",
            },
            "in a circle",
        ),
    }
    for name, (spec, message) in wrong.items():
        result = skill(f"{CHART} /mnt/user-data/uploads/s.json -o out.png", files={"s.json": json.dumps(spec)})
        assert result.exit_code == 2 and message in result.output and "Traceback" not in result.output, (
            name,
            result.output,
        )


def test_data_comes_from_files_too(skill: SkillRunner):
    spec = {"type": "line", "data": "d.csv", "x": "day", "y": "n", "title": "T"}
    files = {"s.json": json.dumps(spec), "d.csv": "day,n\n2026-01-01,3\n2026-01-02,5\n2026-01-05,4\n"}
    result = skill(f"{CHART} /mnt/user-data/uploads/s.json -o /mnt/user-data/outputs/c.svg", files=files)
    assert result.exit_code == 0, result.output
    assert ">Jan-04</text>" in result.file("c.svg").read_text(), "texts that are dates stand on a scale of time"


TABLES = """
import datetime, duckdb, openpyxl
book = openpyxl.Workbook(); cover = book.active; cover.title = "Cover"; cover["A1"] = "Report"
sheet = book.create_sheet("Sales"); sheet["A1"] = "Sales 2026"; sheet.append([])
for row in (["Month", "Sum", "Double"], ["Jan", 3, "=B4*2"], ["Feb", 5, "=B5*2"]): sheet.append(row)
book.save("book.xlsx")
duckdb.sql("COPY (SELECT 'a' AS name, 12.30::DECIMAL(18,2) AS money UNION ALL SELECT 'b', 0.10::DECIMAL(18,2)) TO 'money.parquet'")
"""


def test_sheets_are_read_with_their_own_header_and_parquet_with_its_decimals(skill: SkillRunner):
    given = {"type": "bar", "title": "t", "x": "Month", "y": "Sum", "data": "book.xlsx#Sales"}
    money = {**given, "x": "name", "y": "money", "data": "money.parquet", "value_labels": True}
    files = {"make.py": TABLES, "s.json": json.dumps([given, money]),
             "d.json": json.dumps({**given, "y": "Double"}), "n.json": json.dumps({**given, "data": "book.xlsx#None"})}  # fmt: skip
    draw = "python3 /mnt/skills/public/chart-visualization/scripts/chart.py"
    steps = [f"{draw} s.json -o ../outputs/made --format svg", f"{draw} d.json -o d.png", f"{draw} n.json -o n.png"]
    result = skill("cp ../uploads/* .; python3 make.py; " + "; ".join(steps), files=files)
    drawn = [path.read_text() for path in sorted((result.directory / "outputs/made").glob("*.svg"))]
    assert len(drawn) == 2 and "Jan" in drawn[0] and "Sales 2026" not in drawn[0], result.output
    assert "'Double' is empty, or holds formulas that were never calculated" in result.output
    assert "book.xlsx has no sheet 'None'. There are Cover, Sales" in result.output and "Traceback" not in result.output
