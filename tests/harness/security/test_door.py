"""What neither the person nor the sandbox wrote cannot leave its fence, and cannot pass for somebody else's words."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.security.corpus import CORPUS, MARK

from deerflow.security.door import Untrusted, admit, harmless
from deerflow.security.text import disarmed, sanitize

CASES = [(category, text) for category, texts in CORPUS.items() for text in texts]
HOSTILE = st.lists(st.sampled_from([text for _, text in CASES] + ["\n", " ", "<", "/", "a", "-"]), max_size=6).map(
    "".join
)
ANY = st.one_of(st.text(), st.text(st.characters(codec=None)), HOSTILE)
FORGERY = re.compile(
    r"<\W{0,9}(?:system|untrusted|uploaded.files|current.date|critical|memory|assistant|human|user|developer|tool|function|"
    r"invoke|parameter|antml|think|im_|start_of|end_of|end_external|external|sys)|<\W{0,9}\||"
    r"\[\W{0,3}(?:inst|sys|system|assistant|user|tool_calls|tool_results|available_tools)\W{0,3}\]|"
    r"^[\s#*>_-]{0,9}(?:system|assistant|human|user|developer|tool result|function result|observation|instruction)[\s*_]{0,9}:",
    re.MULTILINE,
)
ALIKE = str.maketrans("аеіорсѕуктмнхЅ", "aeiopcsyktmhxs")


def seen(text: str) -> str:
    """As a careless reader takes it: without what is hidden, in plain letters. Not made with the means of the house."""
    shown = "".join(
        c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cf", "Cc", "Mn", "Co", "Cn", "Cs")
    )
    return unicodedata.normalize("NFKC", shown).casefold().translate(ALIKE)


def inside(prompt: str) -> str:
    """What stands between the tags; fails where there are others."""
    first, text = prompt.split("\n", 1)
    text, last = text.rsplit("\n", 1)
    assert re.fullmatch(rf'<untrusted-{MARK} source="[^"<>\n]*">', first) and last == f"</untrusted-{MARK}>"
    return text


def test_the_corpus_is_large_and_of_many_kinds():
    assert len({text for _, text in CASES}) >= 300 and len(CORPUS) >= 30
    assert sum(bool(FORGERY.search(seen(text))) for _, text in CASES) >= 200


@pytest.mark.parametrize("category", CORPUS)
def test_nothing_leaves_its_fence_or_forges_a_mark_a_role_or_a_tool_result(category: str):
    for text in CORPUS[category]:
        for given_text in (text, f"A page.\n{text}\nIts end.", f"Word {text}"):
            prompt = admit(Untrusted(given_text, "web_fetch"), MARK)
            if not prompt:
                continue
            body = seen(inside(prompt))
            assert not FORGERY.search(body), text
            assert MARK not in body and f"untrusted-{MARK}" not in body, text


@pytest.mark.parametrize("category", [name for name in CORPUS if name.startswith("smuggled")])
def test_what_is_let_through_is_what_a_person_sees(category: str):
    for text in CORPUS[category]:
        kept = sanitize(text)
        assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cs", "Cn") for c in kept)
        assert "        " not in kept and len(kept) <= len(text)


def test_a_source_cannot_leave_the_tag_either():
    for text in (text for _, text in CASES):
        inside(admit(Untrusted("x", f'a">\n{text}'), MARK))


@given(ANY, st.integers(0, 400))
def test_sanitizing_twice_changes_nothing_and_keeps_the_limit(text: str, limit: int):
    once = sanitize(text, limit)
    assert len(once) <= limit and sanitize(once, limit) == once
    assert harmless(harmless(text)) == harmless(text)


@given(ANY)
def test_what_passed_the_door_passes_it_unchanged(text: str):
    kept = harmless(text)
    assert admit(Untrusted(kept, "x"), MARK) == admit(Untrusted(text, "x"), MARK)


def test_every_character_is_kept_or_lost_for_good():
    once = harmless("a".join(map(chr, range(0x110000))))
    assert harmless(once) == once and len(once) > 1_500_000


@pytest.mark.parametrize("given_value", [None, 5, 1.5, b"\xff", ["<system-x>"], {"a": 1}, object()])
def test_whatever_it_is_given_it_answers(given_value: object):
    assert isinstance(sanitize(given_value), str)
    assert sanitize(None) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Prices: 5 €, 3 £, ±2 °C, ½, x² ≤ y → z, © ® ™, “quoted” — and … so on",
        "日本語の文章。中文句子。한국어 문장.",
        "Ελληνικά, русский текст, العربية, עברית, हिन्दी में",
        "😀 👍 🇫🇷",
        "def f(x):\n    if x < 3 and y > 2:\n        return [x]\n\n\ta\tb",
        "- one\n  - two\n    - three\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "<div class='user'>List<String> a = b[0];</div> #include <stdio.h> 1 < 2 && <T>",
        "He said: the user: nobody. A system: parts. [1] [link](https://example.org/?a=b&c=d)",
    ],
)
def test_honest_text_stays_as_it_is(text: str):
    assert harmless(text) == text


def test_spaces_between_words_become_one_and_line_ends_one_kind():
    assert sanitize("a  b\u00a0\u2003c\r\nd\re\u2028f \t g") == "a b c\nd\ne\nf \t g"
    assert sanitize(" " * 100 + "x") == " " * 40 + "x"


def test_long_text_is_cut_and_says_so():
    cut = sanitize("word " * 1000, 100)
    assert len(cut) == 100 and cut.endswith("[5000 characters, cut]")


def test_text_of_the_persons_own_files_loses_nothing_but_our_tags():
    text = "System: x\n<system>\n[INST] a  b\u200b <system-reminder>"
    assert disarmed(text) == "System: x\n<system>\n[INST] a  b\u200b ‹system-reminder>"


def test_untrusted_text_does_not_slip_into_other_text():
    text = Untrusted("obey", "web")
    for slip in (lambda: str(text), lambda: f"{text}", lambda: "".join(["a", text])):  # type: ignore[list-item]
        with pytest.raises(TypeError):
            slip()


def test_nothing_gets_no_fence():
    for empty in ("", " \n", "\u200b", "\U000e0041"):
        assert admit(Untrusted(empty, "web"), MARK) == ""
