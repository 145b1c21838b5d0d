"""Finding the few things that fit a query, by what they are called and what is said of them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing


def best_matches(texts: Mapping[str, str], query: str, limit: int = 5) -> list[str]:
    """The names that fit best (BM25), a hit in the name above hits in its text. Blocks.

    Args:
        texts: by name.
        query: words, or beginnings of words; ``+word`` must be there.
    """
    words, required = (re.findall(pattern, query) for pattern in (r"\w+", r"\+(\w+)"))
    if not words:
        return []
    wanted = " AND ".join(f'"{word}"*' for word in required) or " OR ".join(f'"{word}"*' for word in words)
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute("CREATE VIRTUAL TABLE texts USING fts5(name, text, tokenize=\"porter unicode61 separators '_'\")")
        index.executemany("INSERT INTO texts VALUES (?, ?)", texts.items())
        ranked = "SELECT name FROM texts WHERE texts MATCH ? ORDER BY bm25(texts, 4, 1), name LIMIT ?"
        return [name for (name,) in index.execute(ranked, (wanted, limit))]
