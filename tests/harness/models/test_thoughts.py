"""Thinking in a model's text is taken apart one way, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.models.thoughts import ThoughtAndAnswer, ThoughtStream, separate

QUOTED = [
    "Write `<think>` first.",
    "It ends with `</think>`.",
    "```\n<think>a</think>\n```\nis a block.",
    "a <thinker>",
]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<think>\nhm\n</think>\n\n42", ThoughtAndAnswer("hm", "42")),
        ("hm\n</think>\n42", ThoughtAndAnswer("hm", "42")),
        ("<THINK>hm</Think>42", ThoughtAndAnswer("hm", "42")),
        ("◁think▷hm◁/think▷42", ThoughtAndAnswer("hm", "42")),
        ("hm◁/think▷42", ThoughtAndAnswer("hm", "42")),
        ("<think>cut off", ThoughtAndAnswer("cut off", "")),
        ("a <think>x</think>b<think>y</think>", ThoughtAndAnswer("x\n\ny", "a b")),
        ("<think>a `</think>` b</think>c", ThoughtAndAnswer("a `</think>` b", "c")),
        ("", ThoughtAndAnswer("", "")),
        *[(text, ThoughtAndAnswer("", text)) for text in QUOTED],
    ],
)
def test_thoughts_and_answer_are_separated(text: str, parts: ThoughtAndAnswer) -> None:
    assert separate(text) == parts


@given(st.data())
def test_a_stream_is_separated_however_it_is_cut(data: st.DataObject) -> None:
    text = data.draw(
        st.sampled_from(
            ["<think>hm <b> x</think>\n\nfour <two>", "◁think▷hm◁/think▷42", " \n hello", "<th", "<think>x"]
        )
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    stream = ThoughtStream()
    parts = [stream.feed(piece) if not stream.is_done else ThoughtAndAnswer("", piece) for piece in pieces]
    parts.append(stream.end())
    whole = separate(text)
    assert "".join(part.thoughts for part in parts) == whole.thoughts
    assert "".join(part.answer for part in parts).strip() == whole.answer.strip()
