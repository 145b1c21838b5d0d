"""The markup of each chat platform: what a mark becomes, what must be escaped, how long a message may be and in which unit."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

BREAK = "\u200b"
"""A zero-width space: it takes the meaning from a mark or a mention and leaves the letters."""
_SLACK_MARK = re.compile(r"[*~](?!\s)|(?<=\S)[*~]|(?<![^\W_])_(?!\s)|(?<=\S)_(?![^\W_])")
Pair = tuple[str, str]
_NONE: Pair = ("", "")
_UNBOUND = 1_000_000
_NAME_AFTER = re.compile(r"https?://[^\s<>]+|(?<![^\W_])@(?=[\w!&]|\Z)")
_EVERYONE_AFTER = re.compile(r"@(?=everyone|here\b|channel\b)")
_LINE_START = re.compile(r"^([ \t]*(?:\d{1,9}(?=[.)]))?)([-+#=.)])(?=\s|$|[-=#])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """The way in which one platform writes a message.

    Args:
        limit: of one message, in the unit of ``size``. That measures the made text and adds up: size(a + b) = size(a) + size(b).
        text: escapes what a person or a model wrote, and breaks mentions.
        code, fence: make inline code, and a block of code with the name of its language.
        link: returns what stands before and after the label of an address.
        bare: makes an address that is its own label.
        heading: how many levels of headings it has; with none, a heading is strong.
        quote: stands before each line, or around the whole.
        table: as the platform's own; as a grid of equally wide letters; or as a list.
        tables: the most of its own that one message may hold.
        starts: escapes each line that would begin a list, a heading or a quote.
        nests: code may stand inside of lists and quotes.
        apart: marks need something other than a letter around them.
        touch: separates two marks of which one ends where the other begins.
    """

    limit: int
    size: Callable[[str], int]
    text: Callable[[str], str]
    code: Callable[[str], str]
    fence: Callable[[str, str], str]
    link: Callable[[str], Pair]
    bare: Callable[[str], str]
    strong: Pair = _NONE
    em: Pair = _NONE
    s: Pair = _NONE
    heading: int = 0
    quote: str | Pair = "> "
    table: Literal["native", "grid", "list"] = "grid"
    tables: int = _UNBOUND
    bullet: str = "-"
    rule: str = "———"
    starts: Callable[[str], str] = str
    nests: bool = False
    apart: bool = False
    touch: str = BREAK


def unpinged(text: str) -> str:
    """Break each ``@name``, ``@everyone`` and ``<@id>``; leave the addresses of mails and pages."""
    text = _NAME_AFTER.sub(lambda found: "@" + BREAK if found[0] == "@" else found[0], text)
    return _EVERYONE_AFTER.sub("@" + BREAK, text)


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _visible(text: str) -> int:
    """Return the UTF-16 units of a text in HTML without its tags."""
    return _utf16(html.unescape(re.sub(r"<[^<>]*>", "", text)))


def _json(text: str) -> int:
    """Return the bytes that a text takes in the JSON of a card."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2


def _marked(specials: str, escape: Callable[[str], str]) -> Callable[[str], str]:
    pattern = re.compile(specials)
    return lambda text: pattern.sub(lambda found: escape(found[0]), unpinged(text))


def _line_starts(escape: Callable[[str], str], text: str) -> str:
    return _LINE_START.sub(lambda found: found[1] + escape(found[2]), text)


def _backslash(letter: str) -> str:
    return "\\" + letter


def _entity(letter: str) -> str:
    return f"&#{ord(letter)};"


def _xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _tagless(text: str) -> str:
    """Keep ``<`` from beginning a tag on a platform whose escapes are not documented."""
    return re.sub(r"<(?=[\w/!?@])", "<" + BREAK, unpinged(text))


def _stars(text: str) -> str:
    """Replace the letters that would be marks by others that look alike."""
    text = re.sub(r"\\(?=[^\w\s]|\Z)", lambda found: found[0] + BREAK, _tagless(text.replace("`", "ˋ")))
    return re.sub(r"\*(?!\s)|(?<=\S)\*", "＊", text)


def _calm(code: str) -> str:
    """Break what could be a mention inside of code, where all else stays as it is."""
    return re.sub(r"<(?=@|/?at\b)", "<" + BREAK, code)


def _spared(url: str, letters: str) -> str:
    """Return an address in which ``letters``, which would end it too early, are percent-encoded."""
    return re.sub(f"[{re.escape(letters)}]", lambda found: f"%{ord(found[0]):02X}", url)


def _between(before: str, after: str, letters: str, url: str) -> Pair:
    """Return a Markdown link to ``url``, which stands between ``before`` and ``after``."""
    return "[", f"{before}{_spared(url, letters)}{after}"


def _ticks(code: str, most: int = _UNBOUND) -> str:
    """Make inline code with as many backticks around it as it needs, at most ``most``."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    if longest >= most:
        code, longest = re.sub("`(?=`)", "`" + BREAK, code), 1
    space = " " if code[:1] == "`" or code[-1:] == "`" or (code[:1] == code[-1:] == " " and code.strip()) else ""
    return f"{'`' * (longest + 1)}{space}{code}{space}{'`' * (longest + 1)}"


def _fence(code: str, language: str) -> str:
    """Make a block of code for a platform that knows a fence of three backticks only."""
    return f"```{language}\n{code.replace('```', '``' + BREAK + '`')}\n```"


def _long_fence(code: str, language: str) -> str:
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", code) or [""]))
    return f"{ticks}{language}\n{code}\n{ticks}"


def _telegram_fence(code: str, language: str) -> str:
    inner = f'<code class="language-{language}">{_xml(code)}</code>' if language else _xml(code)
    return f"<pre>{inner}</pre>"


def _telegram_link(url: str) -> Pair:
    return f'<a href="{html.escape(url)}">', "</a>"


def _slack_text(text: str) -> str:
    return _SLACK_MARK.sub(lambda found: found[0] + BREAK, _xml(unpinged(text.replace("`", "ˋ"))))


def _slack_link(url: str) -> Pair:
    return f"<{_spared(_xml(url), '|')}|", ">"


def _plain_link(url: str) -> Pair:
    return "", f" ({url})"


_STARS: Pair = ("**", "**")
_STAR: Pair = ("*", "*")
_TILDES: Pair = ("~~", "~~")
_feishu_text = _marked(r"[\\*_~`\[\]<>&]", _entity)
_PLAIN = ChatDialect(
    limit=4000, size=_utf16, text=unpinged, code=str, fence=lambda code, _: code, link=_plain_link, bare=str,
    bullet="•", touch="",
)  # fmt: skip
_GITHUB = ChatDialect(
    limit=60_000, size=_utf16, text=_marked(r"[\\*_~`<>&]|\[(?![ xX]\](?:\s|\Z))|(?<!\[[ xX])\]", _backslash),
    code=_ticks, fence=_long_fence, link=partial(_between, "](<", ">)", "<>"), bare=lambda url: f"<{_spared(url, '<>')}>",
    strong=_STARS, em=_STAR, s=_TILDES, heading=6, table="native", rule="---",
    starts=partial(_line_starts, _backslash), nests=True,
)  # fmt: skip


def _rich(text: str) -> str:
    """Escape for Telegram, whose Markdown is GitHub's with marked text, formulas and spoilers."""
    return re.sub(r"==|\$", r"\\\g<0>", _GITHUB.text(text)).replace("||", f"|{BREAK}|")


_DINGTALK = ChatDialect(
    limit=5000, size=_utf16, text=_stars, code=lambda code: f"`{_calm(code).replace('`', 'ˋ')}`",
    fence=lambda code, _: "\n".join("> " + (line or BREAK) for line in _stars(code).split("\n")),
    link=partial(_between, "](", ")", "()<>"), bare=str,
    strong=_STARS, em=_STAR, heading=6, table="list", rule="---",
)  # fmt: skip
DIALECTS = {
    "telegram": ChatDialect(
        limit=4096, size=_visible, text=lambda text: _xml(unpinged(text)), code=lambda code: f"<code>{_xml(code)}</code>",
        fence=_telegram_fence, link=_telegram_link, bare=_xml,
        strong=("<b>", "</b>"), em=("<i>", "</i>"), s=("<s>", "</s>"), quote=("<blockquote>", "</blockquote>"),
        bullet="•", touch="",
    ),
    "slack": ChatDialect(
        limit=11_500, size=_utf16, text=_slack_text, code=lambda code: f"`{_xml(code).replace('`', 'ˋ')}`",
        fence=lambda code, _: _fence(_xml(code), ""), link=_slack_link, bare=lambda url: f"<{_spared(_xml(url), '|')}>",
        strong=_STAR, em=("_", "_"), s=("~", "~"), bullet="•", apart=True,
        starts=lambda text: re.sub(r"^&gt;", BREAK + "&gt;", text, flags=re.MULTILINE),
    ),
    "discord": ChatDialect(
        limit=2000, size=_utf16, text=_marked(r"[\\*_~`|<>\[\]]", _backslash), code=partial(_ticks, most=2), fence=_fence,
        link=partial(_between, "](<", ">)", "<>"), bare=lambda url: f"<{_spared(url, '<>')}>",
        strong=_STARS, em=_STAR, s=_TILDES, heading=3, starts=partial(_line_starts, _backslash),
    ),
    "feishu": ChatDialect(
        limit=28_000, size=_json, text=_feishu_text, code=lambda code: _ticks(_calm(code), most=2),
        fence=lambda code, language: _fence(_calm(code), language), link=partial(_between, "](", ")", "()<>|"),
        bare=lambda url: f"[{_feishu_text(url)}]({_spared(url, '()<>|')})",
        strong=_STARS, em=_STAR, s=_TILDES, heading=6, table="native", tables=4, rule="---",
        starts=partial(_line_starts, _entity),
    ),
    "github": _GITHUB,
    # A message that Telegram does not take as a rich one goes as it is: it must fit a plain one.
    "telegram-rich": replace(
        _GITHUB, limit=4000, text=_rich, link=partial(_between, "](", ")", "()<>"),
        bare=lambda url: f"[{_rich(url)}]({_spared(url, '()<>')})",
    ),
    "dingtalk": _DINGTALK,
    "wecom": replace(
        _DINGTALK, limit=20_000, size=lambda text: len(text.encode()), code=lambda code: _ticks(_calm(code), most=2),
        fence=lambda code, language: _fence(_calm(code), language), table="grid",
    ),
    "wechat": replace(_PLAIN, table="list"),
    "mail": replace(_PLAIN, limit=_UNBOUND),
    "plain": _PLAIN,
}  # fmt: skip
