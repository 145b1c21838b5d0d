"""The person's own words: sentences of their messages, outside of quotations, which no page or tool can have written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage

from deerflow.agents.transcript import is_person
from deerflow.storage.search import words_of

MAX_MESSAGE = 2000
"""Characters of a message that are read."""
_QUOTATION = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`]*(?:`|\Z)|\"[^\"]*(?:\"|\Z)|[“„][^“”]*(?:[“”]|\Z)|«[^»]*(?:»|\Z)|»[^«]*(?:«|\Z)"
    r"|‘[^’\n]*’(?!\w)|(?<!\w)'(?:[^'\n]|'(?=\w))*'(?!\w)|「[^」]*(?:」|\Z)|『[^』]*(?:』|\Z)|^[ \t]*>[^\n]*",
    re.DOTALL | re.MULTILINE,
)
"""One that is not closed goes to the end."""
_MASK = "\0"
_END = re.compile(
    r"(?<!\b[A-Za-z0-9])(?<!\b[DdMmSs][rt])(?<!\b[Mm]rs)(?<!\b[Nn][or])(?<!\b[Vv]s)[.!?…]+(?=\s)|[。！？]+|\n+"
)
"""Of a sentence. Abbreviations and ordinals go on."""
_EDGES = " \t\n.,;:!…。！，；\"'`“”„«»‘’「」『』"
_QUESTION = ("?", "？", "؟")
_STEM = 4
_TRIVIAL = frozenset(
    re.findall(
        r"\w+",
        "the and that this these those with have has had for from not you your are was were will would can could please about "
        "what which who user person everything anything something all ever never always again just now any more also fact facts "
        "remember remembered memory know told tell said saved stored learned mine my our ours they them their its his her "
        "der die das den dem und oder nicht ein eine einen mein meine meinen meiner bitte alles was dass über von mit für "
        "nutzer benutzer 用户 我的 所有 关于 一切",
    )
)
_FORGETS = re.compile(
    r"\b(?:forget|unlearn|delete|erase|remove|discard|drop|wipe|clear|stop (?:remembering|using)|(?:do not|don'?t|no longer) "
    r"(?:remember|keep|store|use)|vergiss|vergessen|lösch\w*|entfern\w*|streich\w*|oublie\w*|olvid\w*|esquec\w*|dimentic\w*)\b"
    r"|忘记|忘掉|忘了|删除|删掉|不要记",
    re.IGNORECASE,
)


class OwnSentences(NamedTuple):
    """Whole sentences of a message, as they stand there."""

    text: str
    message: BaseMessage


def quoted(quotes: Iterable[str], messages: Sequence[BaseMessage], *, questions: bool = False) -> OwnSentences | None:
    """Return the sentences of a person's message that hold one of ``quotes``, word for word.

    Whole sentences, since a part of one may say the opposite. A sentence with a quotation, or of a message that ends in a
    question mark, is none of the person's statements.

    Args:
        messages: those that count more come first.
        questions: take sentences of questions as well.
    """
    wanted = [pattern for quote in quotes if (pattern := _pattern(quote)) is not None]
    for message in messages:
        if not isinstance(message, HumanMessage) or not is_person(message):
            continue
        if not questions and message.text.rstrip(f"{_MASK}{_EDGES}").endswith(_QUESTION):
            continue
        said = _masked(message)
        ends = [0, *(match.end() for match in _END.finditer(said)), len(said)]
        for match in (match for pattern in wanted for match in pattern.finditer(said)):
            start = max(end for end in ends if end <= match.start())
            sentence = said[start : min(end for end in ends if end >= match.end())]
            if _MASK not in sentence and (questions or not _asks(sentence)):
                return OwnSentences(" ".join(sentence.split()), message)
    return None


def sentences(message: BaseMessage) -> list[str]:
    """Return the sentences of a message that hold no quotation."""
    said = _masked(message)
    ends = [0, *(match.end() for match in _END.finditer(said)), len(said)]
    found = (" ".join(said[start:end].split()) for start, end in pairwise(ends))
    return [sentence for sentence in found if sentence and _MASK not in sentence]


def concerns(said: str, content: str) -> bool:
    """Whether ``said`` has a word that matters of a fact, in some form."""
    return not _matter(said).isdisjoint(_matter(content))


def is_meant(wish: str, content: str) -> bool:
    """Whether the person's ``wish`` to forget may mean a fact: it shares a word, or names nothing else ("forget that")."""
    asked = _FORGETS.search(wish) is not None
    if _asks(wish) and not asked:
        return False
    return concerns(_FORGETS.sub(" ", wish), content) or (asked and not _matter(_FORGETS.sub(" ", wish)))


def covers(wish: str, content: str) -> bool:
    """Whether a fact has every word of a wish that matters."""
    words = _matter(_FORGETS.sub(" ", wish))
    return bool(words) and words <= _matter(content)


def _matter(text: str) -> set[str]:
    """The words that a text is about, each by its beginning."""
    return {word[:_STEM] for word in words_of(text) if _matters(word)}


def _matters(word: str) -> bool:
    enough = 2 if not word.isascii() or not word.isalpha() else 3
    return len(word) >= enough and word not in _TRIVIAL


def _asks(sentence: str) -> bool:
    return any(mark in sentence for mark in _QUESTION)


def _pattern(quote: str) -> re.Pattern[str] | None:
    words = quote.strip(_EDGES).split() if len(quote) <= MAX_MESSAGE else ()
    if not words:
        return None
    exact = r"\s+".join(re.sub(r"['’]", "['’]", re.escape(word)) for word in words)
    return re.compile(rf"(?<!\w){exact}(?!\w)" if words[0].isascii() else exact, re.IGNORECASE)


def _masked(message: BaseMessage) -> str:
    return _QUOTATION.sub(lambda match: _MASK * len(match.group()), message.text[:MAX_MESSAGE])
