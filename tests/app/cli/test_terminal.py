from __future__ import annotations

import pytest

from deerflow_app.cli.terminal import clean, count, duration, one_line


@pytest.mark.parametrize(
    ("dangerous", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b[2J\x1b[Hb", "ab"),
        ("title\x1b]0;owned\x07!", "title!"),
        ("clip\x1b]52;c;ZXZpbA==\x1b\\board", "clipboard"),
        ("link \x1b]8;;http://evil.example\x1b\\text\x1b]8;;\x1b\\", "link text"),
        ("\x1bPdevice\x1b\\control", "control"),
        ("\x9b31mC1", "31mC1"),
        ("bell\x07 back\x08space \x00null", "bell backspace null"),
        ("report‮fdp.exe", "reportfdp.exe"),
        ("unfinished \x1b]0;title\nnext line", "unfinished \nnext line"),
        ("unfinished \x1b[", "unfinished "),
    ],
)
def test_text_from_outside_cannot_command_the_terminal(dangerous: str, shown: str) -> None:
    assert clean(dangerous) == shown


def test_a_progress_bar_leaves_only_its_last_state() -> None:
    assert clean("10%\r50%\r100%\ndone\r\n") == "100%\ndone\n"


def test_ordinary_text_of_any_script_is_untouched() -> None:
    text = "Grüße\t报告 📄 été\nשלום"
    assert clean(text) == text


def test_a_long_line_is_cut_with_an_ellipsis() -> None:
    assert one_line("\n\n  " + "x" * 200 + "\nsecond", 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.04, "0.0 s"), (1.26, "1.3 s"), (9.97, "10 s"), (59.4, "59 s"), (125, "2 min 05 s")]
)
def test_durations_read_naturally(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_counts_are_singular_for_one() -> None:
    assert (count(1, "line"), count(2400, "line")) == ("1 line", "2,400 lines")
