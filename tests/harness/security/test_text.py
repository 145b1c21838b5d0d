from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from deerflow.security.text import inline


@given(st.text())
def test_the_result_is_one_line_without_markup_or_hidden_characters(text: str):
    shown = inline(text)
    assert len(shown) <= 200 and not set(shown) & set("<>\n\r\t")
    assert all(unicodedata.category(char)[0] != "C" for char in shown)
    assert inline(shown) == shown


def test_readable_text_stays():
    assert inline("Umsatz 2025 – 報告 😀.csv") == "Umsatz 2025 – 報告 😀.csv"
