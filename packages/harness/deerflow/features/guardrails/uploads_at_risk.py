"""Commands that destroy what the person uploaded: the one thing in a sandbox that is not the agent's own.

No wall: a program can hide what it deletes. It is a question for the usual ways to lose a file by mistake.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from deerflow.sandbox.interface import UPLOADS, WORKSPACE

_DESTROYS = frozenset({"rm", "rmdir", "unlink", "shred", "truncate", "mv"})
_WRAPPERS = frozenset(
    {"sudo", "env", "nohup", "nice", "timeout", "command", "exec", "setsid", "xargs", "busybox", "time"}
)
_SEPARATORS = frozenset({";", "&&", "||", "&", "(", ")", "{", "}", "do", "then", "else", "!", "if", "while"})
_OVERWRITES = frozenset({">", ">|", "&>"})
_ABOVE = frozenset({"/", "/mnt", "/mnt/user-data", UPLOADS})


def destroys_uploads(command: str) -> bool:
    """Return whether a shell command deletes, moves or overwrites something in the uploads."""
    directory = WORKSPACE
    for pipeline in _pipelines(command):
        if pipeline[:1] == ["cd"] and len(pipeline) > 1:
            directory = _path(pipeline[1], directory)
        elif _is_destructive(pipeline, directory):
            return True
    return False


def _pipelines(command: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:  # an open quotation: read it as words
        words = re.findall(r"[;&|<>()]+|[^\s;&|<>()]+", command)
    pipeline: list[str] = []
    for word in [*words, ";"]:
        if word not in _SEPARATORS:
            pipeline.append(word)
        elif pipeline:
            yield pipeline
            pipeline = []


def _is_destructive(pipeline: list[str], directory: str) -> bool:
    if any(_is_upload(target, directory) for operator, target in pairwise(pipeline) if operator in _OVERWRITES):
        return True
    if not any(_is_upload(word, directory) for word in pipeline):
        return False
    calls: list[list[str]] = [[]]
    for word in pipeline:
        calls.append([]) if word.startswith("|") else calls[-1].append(word)
    return any(_destroys(call) for call in calls)


def _destroys(call: list[str]) -> bool:
    words = [word for word in call if not re.match(r"-|[A-Za-z_]\w*=|\d", word)]
    while words and posixpath.basename(words[0]) in _WRAPPERS:
        words = words[1:]
    program = posixpath.basename(words[0]) if words else ""
    if program == "find":
        return "-delete" in call or any(posixpath.basename(word) in _DESTROYS for word in call)
    return program in _DESTROYS


def _is_upload(word: str, directory: str) -> bool:
    path = _path(word, directory)
    return path.startswith(f"{UPLOADS}/") or path in _ABOVE


def _path(word: str, directory: str) -> str:
    """Return the directory or file that a word names; of a pattern, the directory that it looks in."""
    return posixpath.normpath(posixpath.join(directory, word.rstrip("*") or "."))
