from __future__ import annotations

import html
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from tests.support.channels.markdown_texts import TEXTS
from tests.support.steps import steps

from deerflow.features.channels.dialects import BREAK, DIALECTS
from deerflow.features.channels.render import parts, tail

GFM = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LIMITS: dict[str, Callable[[str], bool]] = {
    "telegram": lambda made: units(html.unescape(re.sub("<[^<>]*>", "", made))) <= 4096,
    "slack": lambda made: units(made) <= 11_500,
    "discord": lambda made: units(made) <= 2000,
    "feishu": lambda made: len(json.dumps({"content": made}, ensure_ascii=False).encode()) <= 30_000,
    "github": lambda made: units(made) <= 65_536,
    "telegram-rich": lambda made: units(made) <= 4096,
    "dingtalk": lambda made: units(made) <= 5000,
    "wecom": lambda made: len(made.encode()) <= 20_480,
    "wechat": lambda made: units(made) <= 4000,
    "mail": lambda made: True,
    "plain": lambda made: units(made) <= 4000,
}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@dataclass
class Seen:
    """What a person finds in a message."""

    text: str = ""
    fences: list[str] = field(default_factory=list[str])
    codes: list[str] = field(default_factory=list[str])
    links: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])


def read_markdown(messages: Sequence[str]) -> Seen:
    """Read as CommonMark with tables, which most clients implement, nearly."""
    seen = Seen()

    def walk(tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.type in ("text", "html_inline", "html_block"):
                seen.text += token.content + "\n"
            elif token.type == "code_inline":
                seen.codes.append(token.content)
            elif token.type in ("fence", "code_block"):
                seen.fences.append(token.content.rstrip("\n"))
            elif token.type == "link_open" and re.match("https?:", str(token.attrs["href"])):
                seen.links.append(str(token.attrs["href"]))
            walk(token.children or [])

    for message in messages:
        walk(GFM.parse(message))
    return seen


class TelegramReader(HTMLParser):
    ALLOWED = frozenset({"b", "i", "s", "code", "pre", "a", "blockquote"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Seen()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.ALLOWED or (tag == "blockquote" and tag in self.open):
            self.seen.faults.append(tag)
        self.open.append(tag)
        self.seen.links += [value or "" for name, value in attrs if name == "href"]
        if tag == "pre":
            self.seen.fences.append("")
        elif tag == "code" and "pre" not in self.open:
            self.seen.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.seen.faults.append("/" + tag)

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            self.seen.fences[-1] += data
        elif "code" in self.open:
            self.seen.codes[-1] += data
        else:
            self.seen.text += data + "\n"


def read_telegram(messages: Sequence[str]) -> Seen:
    seen = Seen()
    for message in messages:
        reader = TelegramReader()
        reader.feed(message)
        reader.close()
        for name in ("fences", "codes", "links", "faults"):
            getattr(seen, name).extend(getattr(reader.seen, name))
        seen.text += reader.seen.text
        seen.faults += reader.open
    return seen


def read_slack(messages: Sequence[str]) -> Seen:
    seen = Seen()
    for message in messages:
        seen.fences += [html.unescape(one) for one in re.findall(r"```\n?(.*?)\n?```", message, re.S)]
        rest = re.sub("```.*?```", "", message, flags=re.S)
        seen.faults += ["open fence"] * ("```" in rest)
        seen.links += [html.unescape(url) for url in re.findall(r"<(https?://[^|>]+)", rest)]
        seen.codes += [html.unescape(one) for one in re.findall(r"`([^`\n]+)`", rest)]
        seen.faults += ["tag"] * bool(re.search(r"<(?!https?:)", rest))
        rest = re.sub(r"`[^`\n]+`", " ", rest)
        seen.text += html.unescape(re.sub(r"<(https?://[^|>]+)\|?([^>]*)>", lambda found: found[2] or found[1], rest))
    return seen


def read_letters(messages: Sequence[str]) -> Seen:
    """Read all as text: code and links must stand in it as they are."""
    return Seen(text="\n".join(messages))


READERS: dict[str, Callable[[Sequence[str]], Seen]] = {
    "telegram": read_telegram,
    "slack": read_slack,
    **dict.fromkeys(("discord", "feishu", "github", "telegram-rich", "wecom"), read_markdown),
    **dict.fromkeys(("dingtalk", "wechat", "mail", "plain"), read_letters),
}
KNOWN = {
    ("slack", "code with backticks"): {"code"},  # a backtick cannot stand in inline code of mrkdwn
    ("dingtalk", "code with backticks"): {"code", "fence"},  # there neither; and a block of code is a quote
    ("dingtalk", "10k one code block"): {"fence"},
}


def address(url: str) -> str:
    return unquote(unquote(url))


def letters(text: str) -> Counter[str]:
    return Counter(re.sub(r"[\W_]", "", text))


def lost(source: str, messages: Sequence[str], dialect: str) -> set[str]:
    want, got = read_markdown([source]), READERS[dialect](messages)
    code = "\n".join(got.fences).replace(BREAK, "")
    text = got.text.replace(BREAK, "")
    whole = "\n".join([text, code, *got.codes])
    is_text = READERS[dialect] is read_letters
    missing = letters("".join([want.text, *want.fences, *want.codes])) - letters(whole)
    found = set(got.faults)
    found |= {"letters"} if missing else set()
    found |= {"fence"} if any(one not in (text if is_text else code) for one in want.fences) else set()
    found |= (
        {"code"}
        if any(one not in got.codes and one not in code and not (is_text and one in text) for one in want.codes)
        else set()
    )
    shown = {address(url) for url in got.links}
    wanted = {address(url) for url in want.links} - shown
    found |= {"link"} if any(url not in address(text) for url in wanted) else set()
    return found | ({"ping"} if pings(messages, dialect) else set())


MENTION = {"slack": r"<[!@#]", "discord": r"<@[!&]?\d", "feishu": r"<at\b", "wecom": r"<@"}
"""The platform's own marks for a mention, as they stand in a message."""


def pings(messages: Sequence[str], dialect: str) -> bool:
    """Tell whether a message, as its platform reads it, names everyone or a person."""
    for message in messages:
        text = READERS[dialect]([message]).text
        without_addresses = re.sub(r"https?://\S+", "", text)
        if re.search(r"@(everyone|here\b)", text) or re.search(r"(?<!\w)@\w", without_addresses):
            return True
        if dialect in MENTION and re.search(MENTION[dialect], text if dialect == "discord" else message):
            return True
    return False


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_text_keeps_its_letters_code_and_links(dialect: str, name: str):
    messages = parts(TEXTS[name], dialect)

    assert messages
    assert all(LIMITS[dialect](message) for message in messages)
    assert lost(TEXTS[name], messages, dialect) == KNOWN.get((dialect, name), set())


PIECES = ["**", "*", "`", "```\n", "~~", "[a](https://e.x/(b)", ")", "](", "|", "| a | b |\n|--|--|\n", "\n", "\n\n", "> ", "- ", "  - ",
          "1. ", "# ", "<!channel>", "<@U1>", "<@!5>", "@everyone", "@here", "@bob", "<at id=all></at>", "foo@", "\\", "<b>", "&lt;",
          "&", "日本語", "👨‍👩‍👧", "🇩🇪", "é", "word ", "x" * 300, "\u0301" * 5, "<br>", "---\n", "\ud800", "\x00", "\x1b[31m", "  ",
          "~~~py\n", "https://e.x/@bob ", "![i](https://e.x/i.png)", "    ", "\t", "_", "@", "<", ">"]  # fmt: skip


def _random_text(seed: int) -> str:
    chance = random.Random(seed)
    pieces = chance.sample(PIECES, chance.randint(2, 12))
    return "".join(chance.choice(pieces) for _ in range(chance.choice([5, 40, 150])))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_two_hundred_random_texts_none_is_too_long_or_calls_anyone(dialect: str):
    smallest = 300 if dialect != "mail" else None
    for seed in range(200):
        text = _random_text(seed)
        source = read_markdown([text])
        # There code and tables look like text.
        has_code = READERS[dialect] is read_letters and (source.codes or source.fences or "|--" in text)
        for messages in (parts(text, dialect), [tail(text, dialect, limit=smallest)]):
            assert all(LIMITS[dialect](message) for message in messages), seed
            assert has_code or not pings(messages, dialect), seed
            assert dialect not in ("telegram", "slack") or not READERS[dialect](messages).faults, seed
        for message in parts(text, dialect, limit=smallest):
            assert message.strip(), seed
            assert DIALECTS[dialect].size(message) <= (smallest or 1_000_000), seed


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_full_message_leaves_room_for_the_mark_of_a_duplicate(dialect: str):
    length = min(DIALECTS[dialect].limit, 30_000)
    for piece in ("日本 ", "<&>", "x"):
        for message in parts((piece * length)[:length], dialect):
            assert LIMITS[dialect](message + " (may be a duplicate)")


@pytest.mark.parametrize("dialect", ["telegram", "slack", "discord", "feishu", "wecom"])
def test_a_long_block_of_code_is_a_block_in_each_message(dialect: str):
    messages = parts(TEXTS["10k one code block"], dialect, limit=900)

    assert len(messages) > 9
    assert all(len(READERS[dialect]([message]).fences) == 1 for message in messages)
    code = "\n".join(READERS[dialect](messages).fences)
    assert code == read_markdown([TEXTS["10k one code block"]]).fences[0]


@pytest.mark.parametrize("dialect", ["telegram", "discord"])
def test_a_long_paragraph_keeps_its_marks_in_each_message(dialect: str):
    messages = parts("**" + "all of this is strong " * 100 + "end**", dialect, limit=300)

    opening, closing = DIALECTS[dialect].strong
    assert all(message.startswith(opening) and message.endswith(closing) for message in messages)
    assert "".join(messages).count("strong") == 100


def test_a_long_table_has_its_head_in_each_message():
    rows = "".join(f"| row {i} | {i * i} |\n" for i in range(200))
    messages = parts(f"| name | square |\n|--|--|\n{rows}", "github", limit=1000)

    assert len(messages) > 3
    assert all(message.startswith("| name | square |\n| -- |") for message in messages)
    assert "\n".join(messages).count("| row ") == 200


def test_a_row_that_is_longer_than_a_message_becomes_a_list():
    messages = parts(f"| name | text |\n|--|--|\n| a | {'long ' * 100}|\n| b | short |\n", "github", limit=200)

    assert "name: a; text: long" in messages[0]
    assert messages[-1].endswith("| b | short |")


def test_no_more_tables_than_the_platform_shows_stand_in_a_message():
    messages = parts("| a |\n|--|\n| 1 |\n\n" * 9, "feishu")

    assert [message.count("| a |") for message in messages] == [4, 4, 1]


def test_emoji_are_not_cut_in_two():
    for message in parts("👨‍👩‍👧‍👦" * 200, "discord", limit=101):
        assert set(message.split("👨‍👩‍👧‍👦")) == {""}


@pytest.mark.parametrize(
    ("dialect", "made"),
    [
        ("slack", "这是\u200b*重点*，还有\u200b_斜体_"),
        ("discord", "这是**重点**，还有*斜体*"),
    ],
)
def test_marks_beside_letters_are_marks(dialect: str, made: str):
    assert parts("这是**重点**，还有*斜体*", dialect) == [made]


@pytest.mark.parametrize("dialect", ["discord", "feishu", "github"])
def test_what_begins_a_line_does_not_become_a_list_or_a_heading(dialect: str):
    text = "\\# no heading\n\\- no item\n1\\. no number\n\\> no quote\n\\+ no plus"
    (made,) = parts(text, dialect)

    kinds = {token.type for token in GFM.parse(made)}
    assert kinds == {"paragraph_open", "inline", "paragraph_close"}


def test_addresses_of_people_and_of_pages_stay_whole():
    text = "Write to ann@example.org, see https://e.x/@ann and [mail](mailto:bob@e.x)"
    assert parts(text, "plain") == ["Write to ann@example.org, see https://e.x/@ann and mail (bob@e.x)"]


def test_a_mention_whose_name_is_marked_is_broken_too():
    assert "@durov" not in re.sub("<[^>]*>", "", parts("@**durov**", "telegram")[0])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_to_say_makes_no_message(dialect: str):
    for text in ("", " \n\n", "\x00", "#"):
        assert parts(text, dialect) == [] or text == "#"
        assert tail(text, dialect) == "" or text == "#"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["10k", "10k one code block", "10k one paragraph"])
def test_progress_shows_the_end_in_one_message(dialect: str, name: str):
    size = DIALECTS[dialect].size
    text = TEXTS[name]
    made = tail(text, dialect, limit=1500)

    assert 750 < size(made) <= 1500
    assert made.startswith("…")
    assert not READERS[dialect]([made]).faults
    assert letters(text[-30:]) - letters(made) == Counter()
    assert tail("all of **it**", dialect) == parts("all of **it**", dialect)[0]


def test_progress_that_begins_inside_of_code_is_code():
    made = tail("```py\n" + "x = 1\n" * 5000 + "y = 2", "telegram", limit=500)

    seen = read_telegram([made])
    assert seen.fences[-1].endswith("x = 1\ny = 2")
    assert seen.text.strip() == "…"


def test_progress_stops_before_a_table_that_is_too_large():
    rows = "".join(f"| row {i} | {i * i} |\n" for i in range(200))
    made = tail(f"| a | b |\n|--|--|\n{rows}\n\nafter it", "feishu", limit=2000)

    assert made == "…\nafter it"


@pytest.mark.parametrize("piece", ["*a ", "**a", "_a", "`", "``` ", "> ", "- ", "- a\n  - ", "1. ", "| a |\n|--|\n", "[", "[a](b)", "![](",
                                   "<", "&", "\\", "\n", " ", "a", "a\n", "~", "@", "https://", "*a*", "日", "a  \n", "<br>"])  # fmt: skip
def test_four_times_the_text_takes_at_most_five_times_the_steps(piece: str):
    def work(size: int) -> int:
        text = (piece * size)[:size]
        return steps(lambda: (parts(text, "telegram", limit=300), tail(text, "feishu", limit=300)))

    assert work(2400) <= 5 * work(600) + 1000
