from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.theme import Theme

from deerflow_app.cli.chat.markdown import MarkdownStream, Prose, newest_part
from deerflow_app.cli.terminal import THEME

DOCUMENT = """Intro line one
line two

# Heading
Paragraph right after.

- item one
- item two

  continued

1. first
2. second

```python
def f():

    return "# not a heading"
```

| a | b |
|---|---|
| 1 | 2 |

> quote
continued lazily

Last words"""


def split(pieces: list[str]) -> list[str]:
    stream = MarkdownStream()
    blocks = [block for piece in pieces for block in stream.feed(piece)]
    return [*blocks, *stream.close()]


def shown(source: str, width: int = 60) -> str:
    console = Console(file=io.StringIO(), width=width, theme=Theme(THEME), highlight=False, no_color=True, record=True)
    console.print(Prose(source))
    return console.export_text()


def test_blocks_come_out_once_and_whole() -> None:
    blocks = split([DOCUMENT])
    assert blocks[0] == "Intro line one\nline two"
    assert blocks[1] == "# Heading"
    assert blocks[3] == "- item one\n- item two\n\n  continued"
    assert '    return "# not a heading"\n```' in blocks[5]
    assert blocks[-1] == "Last words"


@given(st.lists(st.integers(1, 12), min_size=1, max_size=200))
def test_however_the_text_is_cut_the_blocks_are_the_same(sizes: list[int]) -> None:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(DOCUMENT[at : at + size])
        at += size
    assert split([*pieces, DOCUMENT[at:]]) == split([DOCUMENT])


@given(st.text(alphabet="ab #`-*>|~1.\n", max_size=120), st.integers(1, 7))
def test_no_character_of_the_text_is_lost_or_doubled(text: str, size: int) -> None:
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert "".join("".join(split(pieces)).split()) == "".join(text.split())


def test_a_block_is_finished_as_soon_as_the_next_one_has_begun() -> None:
    stream = MarkdownStream()
    assert stream.feed("First paragraph.\n\nSecond") == []
    assert stream.feed(" one.\n") == ["First paragraph."]
    assert stream.pending == "Second one.\n"


def test_a_line_that_only_begins_like_a_heading_does_not_cut_the_paragraph() -> None:
    assert split(["Follow\n#", "hashtag\n", "now"]) == ["Follow\n#hashtag\nnow"]


def test_an_open_code_fence_is_one_block_until_it_is_closed() -> None:
    stream = MarkdownStream()
    assert stream.feed("```\na\n\n# b\n\n- c\n") == []
    assert stream.feed("```\n\nafter\n") == ["```\na\n\n# b\n\n- c\n```"]


def test_the_visible_part_of_a_long_open_fence_stays_code() -> None:
    source = "```python\n" + "\n".join(f"x = {i}" for i in range(100))
    assert newest_part(source, 3) == "```python\nx = 97\nx = 98\nx = 99"


def test_escape_sequences_of_a_model_never_reach_the_terminal() -> None:
    assert split(["safe \x1b]0;owned\x07text"]) == ["safe text"]


def test_prose_is_indented_and_keeps_cjk_within_the_width() -> None:
    lines = shown("报告" * 30, width=40).splitlines()
    assert all(line.startswith("  ") for line in lines if line)
    assert len(lines) >= 3


def test_code_is_copied_without_decoration_other_than_its_bar() -> None:
    assert "  │ x = 1" in shown("```python\nx = 1\n```")


def test_a_link_shows_where_it_leads() -> None:
    assert "docs (https://example.org/a)" in shown("[docs](https://example.org/a)")


@pytest.mark.parametrize("source", ["", "   ", "\n\n", "```", "|", "[", "<div>", "&#0;", "\\"])
def test_odd_pieces_of_markdown_are_shown_without_an_error(source: str) -> None:
    assert isinstance(shown(source), str)


def test_a_link_into_the_page_is_text_and_an_address_stands_once() -> None:
    assert shown("See [Settings → Models](/settings/models).").strip() == "See Settings → Models."
    assert shown("See <https://example.org/a>.").strip() == "See https://example.org/a."
    assert shown("See [https://example.org/a](https://example.org/a).").strip() == "See https://example.org/a."
