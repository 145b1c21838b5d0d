"""deep-research, web-artifacts, code-documentation, newsletter-generation: their scripts find what is wrong."""

from __future__ import annotations

import re

from tests.skills.conftest import PUBLIC, SkillRunner

CITATIONS = "python3 /mnt/skills/public/deep-research/scripts/check_citations.py"
BUNDLE = "python3 /mnt/skills/public/web-artifacts/scripts/bundle.py"
CODE = "python3 /mnt/skills/public/code-documentation/scripts"
NEWSLETTER = "python3 /mnt/skills/public/newsletter-generation/scripts/make_newsletter.py"

REPORT = """# 报告

Sales grew by 12%.

One [1], two [2-3], and `list[9]` in code.

## 参考文献

[1] A, 2025. https://example.org/a
[2] B, 2025. https://www.example.org/a/
[4] C, 2025. https://example.org/c
"""


def test_citations_that_do_not_fit_are_found(skill: SkillRunner):
    result = skill(f"{CITATIONS} ../uploads/r.md", files={"r.md": REPORT})
    assert result.exit_code == 1
    for line in (
        "- [3] is cited, but is not in the list",
        "- [4] is in the list, but is never cited",
        "- [2] and [1] are the same source",
        "? Figures without a source: 'Sales grew by 12%.'",
    ):
        assert line in result.output, result.output
    assert "[9]" not in result.output
    assert (
        "no list of sources" in skill(f"{CITATIONS} ../uploads/r.md", files={"r.md": "# Report\n\nText [1].\n"}).output
    )


ANSWER = """# Report

Sales grew by 12% [citation:The \\[big\\] report](https://example.org/a_(b)?x=1), as before [citation:Again](http://www.example.org/a_(b)?x=1)
and in the test [1]. `[citation:code](https://c.example)` is code.

## Sources

[1] Institute, Field test, 2025. https://example.org/field

## Annex

More [citation:Two](https://two.example/).
"""
KEPT = """mkdir -p .web; printf '# The big report\\n\\nSource: https://example.org/a_(b)?x=1\\nAuthor: Anna Berg\\nPublished: 2026-03-12T08:00\\n\\nx\\n' > .web/p.md; """


def test_citations_of_answers_become_numbers_with_the_days_of_their_pages(skill: SkillRunner):
    refused = skill(f"{CITATIONS} ../uploads/r.md", files={"r.md": ANSWER})
    assert refused.exit_code == 1 and "3 citations are written [citation:Title](URL)" in refused.output
    result = skill(f"{KEPT}{CITATIONS} ../uploads/r.md --number -o ../outputs/n.md", files={"r.md": ANSWER})
    assert result.exit_code == 0 and "3 sources, 0 problems" in result.output, result.output
    text = result.file("n.md").read_text()
    assert (
        "12% [2], as before [2]\nand in the test [1]. `[citation:code](https://c.example)`" in text
        and "More [3]." in text
    )
    assert (
        "[2] Anna Berg, The big report, 2026-03-12. https://example.org/a_(b)?x=1 ([as read](/mnt/user-data/workspace/.web/p.md))"
        in text
    )
    assert "[3] Two, n.d. https://two.example/" in text and text.index("[3] Two") < text.index("## Annex")


def test_numbers_become_citations_of_answers(skill: SkillRunner):
    command = f"{KEPT}{CITATIONS} ../uploads/r.md --number -o n.md; {CITATIONS} n.md --link -o ../outputs/l.md"
    text = skill(command, files={"r.md": ANSWER}).file("l.md").read_text()
    assert text.count("[citation:The big report](https://example.org/a_(b)?x=1)") == 2
    assert "[citation:Institute, Field test, 2025](https://example.org/field)" in text and "## Sources" not in text
    assert "More [citation:Two](https://two.example/)." in text and "`[citation:code](https://c.example)`" in text


def test_a_page_becomes_one_file_without_outside_references(skill: SkillRunner):
    page = skill.example("web-artifacts").file("tea.html").read_text()
    assert (
        not re.search(r"""(?:src|href)=["'](?!data:|#)""", page)
        and "url(leaf" not in page
        and page.count("data:image/svg+xml") == 3
    )
    assert 'type="module"' in page and "Your tea is ready." in page


def test_what_a_page_loads_from_outside_is_refused(skill: SkillRunner):
    html = """<html><head><link rel="stylesheet" href="https://cdn.example.org/a.css"><style>@import "b.css"; p { background: url(//x.example/p.png) }</style>
    <script src="https://cdn.example.org/a.js"></script><script>fetch("/api/data"); import("./m.js")</script></head>
    <body><img src="../../secret.png"><iframe src="https://example.org"></iframe><form action="https://example.org/in"></form></body></html>"""
    result = skill(f"{BUNDLE} ../uploads/p.html -o ../outputs/p.html", files={"p.html": html})
    assert result.exit_code == 1 and not (result.directory / "outputs/p.html").exists()
    for part in (
        "a.css is outside",
        "b.css is no file",
        "p.png is outside",
        "a.js is outside",
        "loads /api/data",
        "loads ./m.js",
        "secret.png is no file",
        "example.org is outside",
        "sends to",
    ):
        assert part in result.output, part
    for advice in ("doctype", "lang", "viewport", "title", "alt"):
        assert advice in result.output


def test_the_interface_of_code_is_listed_without_running_it(skill: SkillRunner):
    code = '"""Tools."""\nraise SystemExit("must not run")\n\nasync def load(path: str, *, n: int = 3) -> bytes:\n    """Read it."""\n\nclass A(Exception):\n    def go(self): ...\n    def _hidden(self): ...\n'
    result = skill(
        f"{CODE}/api_outline.py ../uploads/pkg",
        files={"pkg/__init__.py": "", "pkg/tools.py": code, "pkg/broken.py": "def ("},
    )
    assert "- `async load(path: str, *, n: int=3) -> bytes` — Read it." in result.output
    assert "`class A(Exception)`" in result.output and "`go(self)`" in result.output and "_hidden" not in result.output
    assert "broken.py:1" in result.output and "must not run" not in result.output


def test_documentation_that_leads_nowhere_is_found(skill: SkillRunner):
    text = "# Title\n\n[a](gone.md) [b](#nowhere) [c](#title) [d](https://example.org)\n\n```python\ndef (\n```\n\n```\nx\n```\n"
    result = skill(f"{CODE}/check_docs.py ../uploads", files={"a.md": text})
    for part in (
        "gone.md does not exist",
        "#nowhere: there is no such heading",
        "this python does not parse",
        "a.md:9: the code block names no language",
    ):
        assert part in result.output, result.output
    assert "4 problems" in result.output


def test_our_own_skills_pass_the_check_of_documentation(skill: SkillRunner):
    assert " 0 problems" in skill(f"{CODE}/check_docs.py /mnt/skills/public/*/SKILL.md").output


def test_a_newsletter_is_mail_and_text(skill: SkillRunner):
    example = skill.example("newsletter-generation")
    page = example.file("newsletter-solar-2026-07-02.html").read_text()
    assert (
        "<script" not in page and "<style" not in page and 'style="margin:0 0 14px' in page and "display:none" in page
    )
    text = example.file("newsletter-solar-2026-07-02.txt").read_text()
    assert "the grid operator reports (https://example.org/grid)" in text and "**" not in text
    wrong = skill(
        f"{NEWSLETTER} ../uploads/n.md -o n.html",
        files={"n.md": "---\ntitle: T\n---\n[here](https://a.org) [x](page.html) ![](a.png)\n"},
    )
    for part in (
        "preheader is missing",
        "should say where it leads",
        "'page.html' is not complete",
        "needs an https address",
        "no alternative text",
    ):
        assert part in wrong.output


def test_a_title_cannot_break_out_of_a_newsletter(skill: SkillRunner):
    result = skill(
        f"{NEWSLETTER} ../uploads/n.md -o ../outputs/n.html",
        files={"n.md": '---\ntitle: "<script>alert(1)</script>"\npreheader: p\nfooter: f\n---\nx\n'},
    )
    assert "<script" not in result.file("n.html").read_text()


def test_every_skill_is_named_where_others_refer_to_it():
    names = {path.name for path in PUBLIC.iterdir()}
    for text in (path.read_text() for path in PUBLIC.glob("*/SKILL.md")):
        assert set(re.findall(r"\bskill ([a-z]+-[a-z-]+|pdf|slides|spreadsheets)\b", text)) <= names
