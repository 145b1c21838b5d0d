"""What holds for every public skill: it can be parsed, is short, names files that exist, and its commands run."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
import yaml
from tests.skills.conftest import BLOCK, PUBLIC, SkillRunner, runnable_blocks

SKILLS = sorted(path.parent for path in PUBLIC.glob("*/SKILL.md"))
KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
PATH = re.compile(r"/mnt/skills/public/[\w./-]*\w")
LOCAL = re.compile(r"`((?:scripts|references|assets)/[\w./-]*\w)`")
INSTALLED = {
    *(
        "bs4",
        "docx",
        "duckdb",
        "httpx",
        "jinja2",
        "lxml",
        "markdown",
        "matplotlib",
        "numpy",
        "openpyxl",
        "pandas",
        "PIL",
        "python_calamine",
        "text_encodings",
    ),
    *("pptx", "pypdf", "pypdfium2", "pytest", "reportlab", "scipy", "seaborn", "tabulate", "xlsxwriter", "yaml"),
}

each_skill = pytest.mark.parametrize("directory", SKILLS, ids=lambda path: path.name)


def front_and_body(directory: Path) -> tuple[dict[str, object], str]:
    _, front, body = (directory / "SKILL.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), body


def test_there_are_folders_of_skills_only():
    assert [path.name for path in PUBLIC.iterdir() if not (path / "SKILL.md").is_file()] == []


@each_skill
def test_the_settings_are_those_of_the_specification(directory: Path):
    front, _ = front_and_body(directory)
    assert front.keys() <= KEYS
    assert front["name"] == directory.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", directory.name) and len(directory.name) <= 64
    assert front["license"] == "MIT"
    description = front["description"]
    assert re.search(r"[\u4e00-\u9fff]{4}", front["metadata"]["description_zh"])
    assert isinstance(description, str) and 60 <= len(description) <= 200 and not set("<>") & set(description)


def test_all_descriptions_together_fit_the_prompt():
    lines = [f"- public/{path.name}: {front_and_body(path)[0]['description']}" for path in SKILLS]
    assert len("\n".join(lines).encode()) < 5200


@each_skill
def test_a_text_is_short_and_complete(directory: Path):
    body = front_and_body(directory)[1]
    assert len(body.splitlines()) <= 250
    assert not re.search(r"TODO:|FIXME:|lorem ipsum dolor", body, re.IGNORECASE)


@each_skill
def test_every_file_that_a_text_names_exists(directory: Path):
    for file in directory.rglob("*.md"):
        text = file.read_text()
        named = [PUBLIC / path.removeprefix("/mnt/skills/public/") for path in PATH.findall(text)]
        named += [directory / path for path in LOCAL.findall(text)]
        assert [str(path) for path in named if not path.exists()] == [], file


@each_skill
def test_every_script_is_short_and_imports_what_is_installed(directory: Path):
    for file in directory.rglob("*.py"):
        source = file.read_text()
        assert len(source.splitlines()) <= 380, file
        modules = {
            (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        foreign = {module.partition(".")[0] for module in modules} - set(sys.stdlib_module_names) - INSTALLED
        assert {name for name in foreign if not list(directory.rglob(f"{name}.py"))} == set(), file


@each_skill
def test_every_script_is_shown_in_its_text_and_explains_itself(directory: Path, skill: SkillRunner):
    text = (directory / "SKILL.md").read_text()
    scripts = [path for path in sorted(directory.glob("scripts/*.py")) if "__main__" in path.read_text()]
    assert [path.name for path in scripts if path.name not in text] == []
    if not scripts:
        return
    helps = "\n".join(f"python3 /mnt/skills/public/{directory.name}/scripts/{path.name} --help" for path in scripts)
    result = skill(f"set -e\n{helps}")
    assert result.exit_code == 0 and result.output.count("usage:") >= len(scripts), result.output


@each_skill
def test_the_commands_that_a_text_shows_run(directory: Path, skill: SkillRunner):
    infos = {info for info, _ in BLOCK.findall((directory / "SKILL.md").read_text())}
    assert infos & {"", "sh", "shell", "console"} == set(), (
        "bash runs here; bash network does not; all else has a language"
    )
    if runnable_blocks((directory / "SKILL.md").read_text()):
        skill.example(directory.name)


def test_every_script_has_a_test_of_its_own():
    texts = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
    examples = {name for name in (path.name for path in SKILLS) if f'example("{name}")' in texts}
    scripts = [path for path in PUBLIC.glob("*/scripts/*.py") if "__main__" in path.read_text()]
    untried = [str(path) for path in scripts if path.name not in texts and path.parts[-3] not in examples]
    assert len(scripts) > 25 and untried == []


def test_no_skill_writes_beside_itself(skill: SkillRunner):
    made = [path for path in (skill.root / "skills").rglob("*") if path.name == "__pycache__"]
    assert made == []


SCRIPTS = "/mnt/skills/public"
MISSING = {
    "*": ("missing.json", "missing.json -o made"),
    "analyze.py": ("inspect missing.csv", "summary missing.xlsx", "query missing.csv --sql 'select 1'"),
    "check_xlsx.py": ("missing.xlsx",),
    "recalc.py": ("missing.xlsx",),
    "pdf.py": ("info missing.pdf", "merge missing.pdf -o made", "fill missing.pdf --values missing.json -o made"),
    "evaluate.py": ("missing.json missing",),
    "library.py": ("join missing.json -o made", "flow missing.json", "cite missing.json"),
    "init_skill.py": ("--help",),
    "arxiv_search.py": ("--help",),
    "deerflow.py": ("--help",),
    "github.py": ("--help",),
    "generate.py": ("--prompt-file missing.txt --output-file made",),
}
"""Arguments with which scripts miss a file."""


def test_no_script_ends_in_a_traceback_for_a_missing_file(skill: SkillRunner):
    scripts = [path for path in PUBLIC.glob("*/scripts/*.py") if "__main__" in path.read_text()]
    commands = [
        f"python3 {SCRIPTS}/{path.relative_to(PUBLIC)} {arguments} </dev/null || true"
        for path in sorted(scripts)
        for arguments in MISSING.get(path.name, MISSING["*"])
    ]
    output = skill("\n".join(f"echo '$ {one[8:60]}'\n{{ {one}; }} 2>&1" for one in commands)).output
    assert "Traceback" not in output, output
    assert output.count("No such file or directory") > 5, output
