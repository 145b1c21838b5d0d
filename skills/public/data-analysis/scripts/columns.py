"""The types of a table's columns by what stands in them: numbers exact, days in any notation, and a word where that is doubtful."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

MISSING = (
    "-",
    "–",
    "—",
    "n/a",
    "na",
    "null",
    "none",
    "nan",
    "#n/a",
    "#div/0!",
    "#ref!",
    "#value!",
    "#name?",
    "#num!",
    "#null!",
    "无",
)
"""Words for nothing, where the other values of a column are numbers or days."""
_SIGN, _SYMBOL = r"[-+−]?", r"(?:[€$£¥₹]|EUR|USD|GBP|CHF|CNY|JPY|RMB)"
_FORMS = {
    "whole": r"(?:0|[1-9]\d*)",
    "point": r"(?:(?:0|[1-9]\d*)?\.\d+|(?:0|[1-9]\d*))",
    "grouped_point": r"[1-9]\d{0,2}(?:[,' ]\d{3})+(?:\.\d+)?",
    "comma": r"(?:0|[1-9]\d*)(?:,\d+)?",
    "grouped_comma": r"[1-9]\d{0,2}(?:[.' ]\d{3})+(?:,\d+)?",
    "power": r"\d+(?:\.\d+)?[eE][-+]?\d+",
    "zero": r"0\d+",
}
_ONE_GROUP = r"[1-9]\d{0,2}[,.]\d{3}"
"""A number that is a thousand times larger to some than to others."""
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"
_DAYS = {
    "2026-03-12": (r"\d{4}-\d{1,2}-\d{1,2}", ["%Y-%m-%d"]),
    "2026/03/12": (r"\d{4}/\d{1,2}/\d{1,2}", ["%Y/%m/%d"]),
    "2026.03.12": (r"\d{4}\.\d{1,2}\.\d{1,2}", ["%Y.%m.%d"]),
    "12.03.2026": (r"\d{1,2}\.\d{1,2}\.\d{4}", ["%d.%m.%Y"]),
    "12.03.26": (r"\d{1,2}\.\d{1,2}\.\d{2}", ["%d.%m.%y"]),
    "2026年3月12日": (r"\d{4}年\d{1,2}月\d{1,2}日", ["%Y年%m月%d日"]),
    "12 Mar 2026": (r"\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{4}", ["%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%B-%Y"]),
    "Mar 12, 2026": (r"[A-Za-z]{3,9} \d{1,2}, \d{4}", ["%b %d, %Y", "%B %d, %Y"]),
}
_ORDERLESS = r"(\d{1,2})[/-](\d{1,2})[/-]\d{4}"
_ORDERS = {"12/03/2026, day first": ["%d/%m/%Y", "%d-%m-%Y"], "03/12/2026, month first": ["%m/%d/%Y", "%m-%d-%Y"]}
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f")
_SPACES = " \t\r\n\u00a0\u202f\u3000"
MOST_DIGITS, MOST_SCALE = 38, 12
"""Of an exact number."""
ALMOST = 0.8
"""The share of values from which on a word is said about the others."""


@dataclass(frozen=True)
class Column:
    """The reading of one column."""

    name: str
    expression: str
    """In SQL, of the raw text."""
    note: str = ""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class Typist:
    """Decides on the columns of one table whose cells are all text.

    Args:
        connection: where the table is.
        table: its name.
        semicolons: cells are parted by them, as where decimals have a comma.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str, *, semicolons: bool) -> None:
        self._connection, self._table = connection, table
        names = [row[0] for row in connection.execute(f"DESCRIBE {quoted(table)}").fetchall()]
        self._facts = {name: self._look(name) for name in names}
        clear = [facts for facts in self._facts.values() if facts["european"] == facts["all"] > facts["english"]]
        english = [facts for facts in self._facts.values() if facts["english"] == facts["all"] > facts["european"]]
        self._european = len(clear) > len(english) or (semicolons and not english)

    def columns(self) -> list[Column]:
        return [self._column(name, facts) for name, facts in self._facts.items()]

    def _look(self, name: str) -> dict[str, int]:
        """Count what the values of a column look like."""
        value = _value(name)
        bare = _bare(value)

        def count(condition: str) -> str:
            return f"count(*) FILTER (WHERE {condition})"

        def full(pattern: str, of: str = bare) -> str:
            return f"regexp_full_match({of}, {text(pattern)})"

        forms = {each: full(_SIGN + pattern) for each, pattern in _FORMS.items()}
        wanted = {
            "filled": count(f"{_trimmed(name)} <> ''"),
            "all": count(f"{value} IS NOT NULL"),
            **{each: count(condition) for each, condition in forms.items()},
            "english": count(f"{forms['point']} OR {forms['grouped_point']}"),
            "european": count(f"{forms['comma']} OR {forms['grouped_comma']}"),
            "one_group": count(full(_SIGN + _ONE_GROUP)),
            "boolean": count(f"lower({value}) IN ('true', 'false')"),
            "day": count(full(f"(?:{'|'.join(pattern for pattern, _ in _DAYS.values())}|{_ORDERLESS}){_TIME}", value)),
            "orderless": count(full(_ORDERLESS + _TIME, value)),
        }
        found = self._one(", ".join(wanted.values()))
        return dict(zip(wanted, found, strict=True))

    def _one(self, what: str) -> tuple:
        found = self._connection.execute(f"SELECT {what} FROM {quoted(self._table)}").fetchone()
        assert found is not None
        return found

    def _column(self, name: str, facts: dict[str, int]) -> Column:
        size = facts["all"]
        if not size:
            return Column(name, f"nullif({quoted(name)}, '')" if facts["filled"] else quoted(name))
        if facts["boolean"] == size:
            return self._with_missing(name, f"CAST(lower({_value(name)}) AS BOOLEAN)", facts, [])
        if not facts["zero"] and size in (facts["english"], facts["european"], facts["english"] + facts["power"]):
            return self._number(name, facts)
        if facts["day"] == size:
            return self._day(name, facts)
        return self._text(name, facts)

    def _number(self, name: str, facts: dict[str, int]) -> Column:
        size, notes = facts["all"], list[str]()
        bare = _bare(_value(name))
        european = facts["english"] < size if facts["english"] != facts["european"] else self._european
        if facts["power"]:
            european = False
        if facts["one_group"] == size - facts["whole"] and facts["one_group"]:
            sample = self._one(
                f"any_value({bare}) FILTER (WHERE regexp_full_match({bare}, {text(_SIGN + _ONE_GROUP)}))"
            )[0]
            # One comma before three digits groups thousands, unless the rest of the file has decimal commas; a point is a decimal one.
            european = self._european
            meant = sample.replace(".", "").replace(",", ".") if european else sample.replace(",", "")
            notes.append(f"{sample} was read as {meant}")
        elif european and facts["comma"] + facts["grouped_comma"] and facts["whole"] < size:
            notes.append("decimal commas")
        digits = f"replace(regexp_replace({bare}, {text('[' + (chr(46) if european else ',') + chr(39) + ' ]')}, '', 'g'), '−', '-')"
        digits = f"replace({digits}, ',', '.')" if european else digits
        symbols = self._connection.execute(
            f"SELECT DISTINCT regexp_extract({_value(name)}, {text(f'({_SYMBOL}|%)')}, 1) FROM {quoted(self._table)} WHERE {_value(name)} IS NOT NULL"
        ).fetchall()
        signs = sorted(symbol for (symbol,) in symbols)
        if len(signs) > 1:
            return Column(
                name,
                f"nullif({quoted(name)}, '')",
                f"stays text: its values have several signs ({', '.join(sign or 'none' for sign in signs)})",
            )
        notes += [f"in {sign}" for sign in signs if sign]
        before, after = self._one(
            f"max(length(regexp_replace(split_part({digits}, '.', 1), '[-+]', ''))), max(length(split_part({digits}, '.', 2)))"
        )
        if facts["power"] or after > MOST_SCALE or before + after > MOST_DIGITS:
            kind = "DOUBLE" if facts["power"] or after else "VARCHAR"
        elif after:
            kind = f"DECIMAL({max(18, before + after)}, {after})"
        else:
            kind = "BIGINT" if before <= 18 else "HUGEINT"
        return self._with_missing(name, f"CAST({digits} AS {kind})", facts, notes)

    def _day(self, name: str, facts: dict[str, int]) -> Column:
        value, notes, formats = _value(name), list[str](), list[str]()
        used: dict[str, int] = {}
        for sample, (pattern, forms) in _DAYS.items():
            if count := self._one(f"count(*) FILTER (WHERE regexp_full_match({value}, {text(pattern + _TIME)}))")[0]:
                used[sample], formats = count, [*formats, *forms]
        if facts["orderless"]:
            first, second = (
                f"TRY_CAST(regexp_extract({value}, {text(_ORDERLESS)}, {at}) AS INT) > 12" for at in (1, 2)
            )
            day_first, month_first = self._one(f"count(*) FILTER (WHERE {first}), count(*) FILTER (WHERE {second})")
            if bool(day_first) == bool(month_first):
                sample = self._one(
                    f"any_value({value}) FILTER (WHERE regexp_full_match({value}, {text(_ORDERLESS + _TIME)}))"
                )[0]
                why = (
                    "in some the day comes first, in others the month"
                    if day_first
                    else "whether the day or the month comes first cannot be told"
                )
                return Column(
                    name,
                    f"nullif({quoted(name)}, '')",
                    f"stays text: of days such as {sample} {why}; ask, then use strptime(x, '%d/%m/%Y')",
                )
            order = list(_ORDERS)[0 if day_first else 1]
            used[order], formats = facts["orderless"], [*formats, *_ORDERS[order]]
        if len(used) > 1:
            notes.append(
                "mixed notations of days: " + ", ".join(f"{count} like {sample}" for sample, count in used.items())
            )
        patterns = ", ".join(text(each + clock) for each in formats for clock in _CLOCKS)
        moment = f"try_strptime({value}, [{patterns}])"
        unread, sample, timed = self._one(
            f"count(*) FILTER (WHERE {value} IS NOT NULL AND {moment} IS NULL), any_value({value}) FILTER (WHERE {moment} IS NULL), "
            f"count(*) FILTER (WHERE {moment} <> date_trunc('day', {moment}))"
        )
        if unread:
            return Column(
                name,
                f"nullif({quoted(name)}, '')",
                f"stays text: {unread} of {facts['all']} values are no days, such as {sample!r}",
            )
        return self._with_missing(name, f"CAST({moment} AS {'TIMESTAMP' if timed else 'DATE'})", facts, notes)

    def _text(self, name: str, facts: dict[str, int]) -> Column:
        size = facts["all"]
        note = ""
        for kind, count in (("numbers", max(facts["english"], facts["european"])), ("days", facts["day"])):
            if size > count >= ALMOST * size and not facts["zero"]:
                pattern = rf"{_SIGN}[\d.,' ]+" if kind == "numbers" else r"[\d./年月日-]{6,}.*"
                odd = self._connection.execute(
                    f"SELECT DISTINCT {_value(name)} AS x FROM {quoted(self._table)} WHERE x IS NOT NULL AND NOT regexp_full_match({_bare(_value(name))}, {text(pattern)}) LIMIT 3"
                ).fetchall()
                such = f", such as {', '.join(repr(value) for (value,) in odd)}" if odd else ""
                note = f"stays text: {size - count} of {size} values are no {kind}{such}"
        return Column(name, f"nullif({quoted(name)}, '')", note)

    def _with_missing(self, name: str, expression: str, facts: dict[str, int], notes: list[str]) -> Column:
        if words := facts["filled"] - facts["all"]:
            sample = self._one(
                f"any_value({_trimmed(name)}) FILTER (WHERE {_trimmed(name)} <> '' AND {_value(name)} IS NULL)"
            )[0]
            notes.append(
                f"{words} {'value is' if words == 1 else 'values are'} a word for nothing ({sample!r}), read as missing"
            )
        return Column(name, expression, "; ".join(notes))


def _trimmed(name: str) -> str:
    return f"trim({quoted(name)}, {text(_SPACES)})"


def _value(name: str) -> str:
    """A cell without the words for nothing."""
    words = ", ".join(map(text, ("", *MISSING)))
    return f"(CASE WHEN lower({_trimmed(name)}) IN ({words}) THEN NULL ELSE {_trimmed(name)} END)"


def _bare(value: str) -> str:
    """A number without the sign of its currency and per cent, with plain spaces."""
    spaced = f"regexp_replace({value}, '[\\x{{a0}}\\x{{202f}}\\x{{2009}}]', ' ', 'g')"
    front = f"regexp_replace({spaced}, {text(f'^({_SIGN}) ?{_SYMBOL} ?')}, '\\1')"
    return f"regexp_replace({front}, {text(f' ?(?:{_SYMBOL}|%)$')}, '')"
