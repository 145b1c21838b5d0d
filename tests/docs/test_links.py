from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)(#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file(page: Path):
    broken = [target for target, _ in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert broken == []


def test_the_guide_for_contributors_stays_short():
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= 60
