"""report-writing and slides: what they make opens with its structure, and is checked."""

from __future__ import annotations

import json

from tests.skills.conftest import SkillRunner

DOCX = "python3 /mnt/skills/public/report-writing/scripts"
PPTX = "python3 /mnt/skills/public/slides/scripts"


def test_a_report_has_styles_contents_captions_and_links(skill: SkillRunner):
    code = """
from docx import Document
document = Document("report.docx")
xml = document.element.xml
answer = {
    "headings": [[p.style.name, p.text] for p in document.paragraphs if p.style.name.startswith("Heading")],
    "contents": [p.text for p in document.paragraphs if p.style.name.lower().startswith("toc")] + [t for t in ["TOC \\\\o", "PAGEREF _Toc000002"] if t in xml],
    "captions": [p.text for p in document.paragraphs if p.style.name == "Caption"],
    "pictures": [s._inline.docPr.get("descr") for s in document.inline_shapes],
    "table": [c.text for c in document.tables[0].rows[3].cells],
    "repeats": "w:tblHeader" in document.tables[0]._tbl.xml,
    "links": [r.target_ref for r in document.part.rels.values() if r.is_external],
    "bold": [r.text for p in document.paragraphs for r in p.runs if r.bold],
    "lists": [p.style.name for p in document.paragraphs if p.style.name.startswith("List")],
    "title": document.core_properties.title,
}"""
    found = skill.look(skill.example("report-writing"), code)
    assert found["headings"][:3] == [["Heading 1", "1  Summary"], ["Heading 1", "2  Need"], ["Heading 2", "2.1  Today"]]
    assert len(found["contents"]) == 9 and found["contents"][-2:] == ["TOC \\o", "PAGEREF _Toc000002"]
    assert found["captions"] == [
        "Figure 1  Bicycles and places, 2022 to 2030",
        "Table 1  Forecast of places that are needed",
    ]
    assert found["pictures"] == ["Bicycles and places, 2022 to 2030"]
    assert found["table"] == ["2030", "3,050", "1,650", "1,400"] and found["repeats"]
    assert found["links"] == ["https://example.org/guide"] and "1,400 more places" in found["bold"]
    assert found["lists"].count("List Bullet 2") == 2 and found["lists"].count("List Number") >= 3
    assert found["title"] == "Bicycle parking at the main station"


def test_each_numbered_list_begins_at_one(skill: SkillRunner):
    text = "1. a\n2. b\n\nBetween\n\n1. c\n2. d\n"
    result = skill(
        f"{DOCX}/make_docx.py /mnt/user-data/uploads/a.md -o /mnt/user-data/outputs/a.docx", files={"a.md": text}
    )
    code = "from docx import Document\nanswer = [p._p.pPr.numPr.numId.val for p in Document('a.docx').paragraphs if p.text in 'abcd']"
    first, second, third, fourth = skill.look(result, code)
    assert first == second != third == fourth


def test_cited_numbers_lead_to_sources_of_their_own_lines(skill: SkillRunner):
    text = "It works [1]. Both say so [1, 2], not [3] and not `x[1]`.\n\n## Sources\n\n[1] A, 2025. https://example.org/a\n[2] *B*, 2026. https://example.net/b\n"
    result = skill(
        f"{DOCX}/make_docx.py /mnt/user-data/uploads/a.md -o /mnt/user-data/outputs/a.docx", files={"a.md": text}
    )
    code = """
import re
from docx import Document
document = Document("a.docx")
answer = {
    "texts": [p.text for p in document.paragraphs],
    "marks": [re.findall(r'w:(anchor|name)="(_Source[^"]+)', p._p.xml) for p in document.paragraphs],
    "links": sorted(r.target_ref for r in document.part.rels.values() if r.is_external),
}"""
    found = skill.look(result, code)
    body, first = found["texts"].index("It works [1]. Both say so [1, 2], not [3] and not x[1]."), -2
    assert found["texts"][first:] == ["[1] A, 2025. https://example.org/a", "[2] B, 2026. https://example.net/b"]
    assert found["marks"][body] == [["anchor", f"_Source{n}"] for n in (1, 1, 2)]
    assert found["marks"][first:] == [[["name", "_Source1"]], [["name", "_Source2"]]]
    assert found["links"] == ["https://example.net/b", "https://example.org/a"]


def test_a_missing_picture_is_named(skill: SkillRunner):
    result = skill(f"{DOCX}/make_docx.py /mnt/user-data/uploads/a.md -o a.docx", files={"a.md": "![x](no.png)\n"})
    assert result.exit_code == 1 and "no.png does not exist" in result.output


def test_the_check_of_a_report_finds_what_was_forgotten(skill: SkillRunner):
    text = "# One\n\n### Three\n\nTODO: write this\n\n## Empty\n\n# Last\n\nEnd.\n"
    files = {"a.md": text}
    result = skill(f"{DOCX}/make_docx.py ../uploads/a.md -o a.docx; {DOCX}/check_docx.py a.docx", files=files)
    assert result.exit_code == 1
    for problem in ("has level 3, but stands below level 1", "'TODO' is left", "'Empty' is empty"):
        assert problem in result.output


def test_slides_have_layouts_charts_tables_notes_and_numbers(skill: SkillRunner):
    code = """
from pptx import Presentation
deck = Presentation("slides.pptx")
answer = {
    "size": [deck.slide_width.inches, deck.slide_height.inches],
    "titles": [s.shapes.title.text for s in deck.slides],
    "layouts": sorted({s.slide_layout.name for s in deck.slides}),
    "charts": [[str(h.chart.chart_type), list(h.chart.plots[0].categories), list(h.chart.plots[0].series[0].values)] for s in deck.slides for h in s.shapes if h.has_chart],
    "tables": [[c.text for c in h.table.rows[1].cells] for s in deck.slides for h in s.shapes if h.has_table],
    "notes": [s.notes_slide.notes_text_frame.text for s in deck.slides if s.has_notes_slide],
    "numbers": sum("SLIDE_NUMBER" in str(h.placeholder_format.type) for s in deck.slides for h in s.placeholders),
    "levels": [p.level for p in deck.slides[3].placeholders[1].text_frame.paragraphs],
    "bold": [r.text for p in deck.slides[3].placeholders[1].text_frame.paragraphs for r in p.runs if r.font.bold],
}"""
    found = skill.look(skill.example("slides"), code)
    assert [round(side, 3) for side in found["size"]] == [13.333, 7.5] and found["titles"][
        0
    ] == "Bicycle parking until 2030"
    assert len(found["titles"]) == 12 and len(found["layouts"]) == 7
    assert found["charts"][0][1:] == [["2022", "2024", "2026", "2028", "2030"], [1700, 1990, 2310, 2680, 3050]]
    assert found["tables"] == [["Racks", "700", "€0.9M", "€1,300", "2027"]]
    assert found["notes"] == ["Begin with the photograph of the tactile paving if there is time."]
    assert found["numbers"] == 9 and found["levels"] == [0, 1, 1, 0, 0] and found["bold"] == ["fifth", "guarded"]


def test_what_is_wrong_with_an_outline_is_named(skill: SkillRunner):
    wrong = {
        "'cake' is not one of": {"layout": "cake"},
        "needs 'bullets'": {"layout": "bullets", "title": "x"},
        "'A' has 1 values for 2 categories": {
            "layout": "chart",
            "chart": {"categories": ["a", "b"], "series": {"A": [1]}},
        },
        "no.png does not exist": {"layout": "picture", "picture": "no.png"},
    }
    for message, slide in wrong.items():
        result = skill(
            f"{PPTX}/make_pptx.py ../uploads/o.json -o o.pptx", files={"o.json": json.dumps({"slides": [slide]})}
        )
        assert result.exit_code == 2 and message in result.output and "Traceback" not in result.output, result.output


def test_the_check_of_slides_finds_what_does_not_fit(skill: SkillRunner):
    slides = [{"title": "Same", "bullets": ["word " * 120] * 3}, {"title": "Same", "bullets": ["TODO"]}]
    outline = json.dumps({"slides": slides})
    result = skill(
        f"{PPTX}/make_pptx.py ../uploads/o.json -o o.pptx; {PPTX}/check_pptx.py o.pptx", files={"o.json": outline}
    )
    assert result.exit_code == 1
    for problem in ("does not fit", "words; say less", "'Same' stands on 2 slides", "'TODO' is left"):
        assert problem in result.output
