"""The encoding of a text of unknown origin, decided once for all that read text: tools, search, documents, pages and tables.

It imports nothing but Python's own library, since it also runs inside sandboxes, and a detector where there is one.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

SAMPLE = 1 << 16
"""Bytes of lines that are no ASCII, which a detector is shown."""
HEAD = 8192
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WEB = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "gb18030": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "cp932": "cp932",
    "euc-jp": "euc_jp",
    "iso-2022-jp": "iso2022_jp",
    "euc-kr": "cp949",
    "uhc": "cp949",
    "cp949": "cp949",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "ibm866": "cp866",
    "mac-cyrillic": "mac-cyrillic",
    "x-mac-cyrillic": "mac-cyrillic",
    "tis-620": "cp874",
    "iso-8859-11": "cp874",
    "iso-8859-9": "cp1254",
    "iso-8859-8": "cp1255",
    "iso-8859-13": "cp1257",
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (2, 5, 6, 7, 15)},
    **{f"windows-{page}": f"cp{page}" for page in range(1250, 1259)},
}
"""Findings of a detector, and the encodings in which browsers read them. All else counts as Windows-1252."""
KNOWN = frozenset(_WEB.values()) | {"cp1252"}
"""Encodings that may be guessed."""
_LABELS = {"big5hkscs": "big5", "cp932": "shift_jis", "cp949": "euc-kr", "euc_jp": "euc-jp", "iso2022_jp": "iso-2022-jp",
           "cp866": "ibm866", "cp874": "windows-874", "mac-cyrillic": "x-mac-cyrillic"}  # fmt: skip
_NAMES = {"big5hkscs": "Big5", "cp932": "Shift-JIS", "cp949": "EUC-KR", "euc_jp": "EUC-JP", "iso2022_jp": "ISO-2022-JP",
          **dict.fromkeys(("utf-16-le", "utf-16-be"), "UTF-16"), **dict.fromkeys(("utf-32-le", "utf-32-be"), "UTF-32")}  # fmt: skip
_NO_ASCII = re.compile(rb"[\x80-\xff]")
_LETTERS = re.compile(rb"[\x80-\xff]+")
_LATIN = frozenset(["cp1250", "cp1252", "cp1254", "cp1257", "cp1258", "iso8859-2", "iso8859-15"])
"""Encodings of accents; in those of other scripts no letter that is no ASCII stands alone all the time."""
FEWEST = 4
"""Runs of letters that are no ASCII from which on a detector is asked, whatever they are."""
_CONTROL = bytes({*range(32)} - {*b"\t\n\r\f\x1b\x08"})


class Encoding(NamedTuple):
    """A text's encoding."""

    codec: str
    mark: bytes = b""
    """The byte order mark that the text begins with."""

    @property
    def name(self) -> str:
        """As people call it."""
        name = _NAMES.get(self.codec, self.codec)
        name = f"Windows-{name[2:]}" if name.startswith("cp12") else name
        return name.replace("iso8859", "iso-8859").upper() if name == name.lower() else name

    @property
    def label(self) -> str:
        """As browsers and the header ``Content-Type`` name it."""
        if self.mark and self.codec.startswith("utf-16"):
            return "utf-16"
        return _LABELS.get(self.codec) or self.codec.replace("iso8859-", "iso-8859-").replace(
            "cp12", "windows-12"
        ).replace("16-", "16")

    @property
    def usual(self) -> bool:
        """It is UTF-8, so that a reader needs no word about it."""
        return self.codec == "utf-8"

    def decode(self, data: bytes, *, cut: bool = False) -> str:
        """Return the text; a byte that is no UTF-8 stands as a lone surrogate.

        Args:
            data: from its beginning.
            cut: more follows: an incomplete last character is left out.
        """
        return self.decoder().decode(data[len(self.mark) :], final=not cut)

    def decoder(self) -> codecs.IncrementalDecoder:
        """For a text that comes in pieces; the mark must have been taken off."""
        return codecs.getincrementaldecoder(self.codec)("surrogateescape" if self.codec == "utf-8" else "replace")

    def encode(self, text: str) -> bytes:
        """Return the text as it was written. Raises UnicodeEncodeError for what the encoding cannot say."""
        return self.mark + text.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")


def marked(data: bytes) -> Encoding | None:
    """Return the encoding that a byte order mark names."""
    return next((Encoding(codec, mark) for mark, codec in _MARKS if data.startswith(mark)), None)


def surely(data: bytes, *, cut: bool = False) -> Encoding | None:
    """Return the encoding that the bytes themselves prove; None: there is none, or a detector must guess."""
    if (found := marked(data)) is not None:
        return found
    if b"\x1b$" in data[: 1 << 20] and _fits(data, "iso2022_jp", cut):
        return Encoding("iso2022_jp")
    if b"\0" in data[:HEAD]:
        return _wide(data, cut)
    if _fits(data, "utf-8", cut):
        return Encoding("utf-8")
    text = data[: 1 << 20].decode("utf-8", "surrogateescape")
    broken = sum("\ud800" <= letter <= "\udfff" for letter in text)
    whole = sum(letter > "\x7f" for letter in text) - broken
    return Encoding("utf-8") if whole * 2 >= broken else None  # damaged, but UTF-8


def binary(data: bytes) -> bool:
    """Return whether these first bytes are no text: with NULs that no encoding explains, or full of control characters."""
    head = data[:HEAD]
    if b"\0" in head:
        return surely(data, cut=True) is None
    return len(head.translate(None, _CONTROL)) < 0.95 * len(head)


def sample(data: bytes) -> bytes:
    """Return the lines that tell the most of an encoding."""
    found, size = list[bytes](), 0
    for line in re.split(rb"[\r\n]+", data[: 16 << 20]):
        if size < SAMPLE and _NO_ASCII.search(line):
            found.append(line[:SAMPLE])
            size += len(line)
    return b"\n".join(found)[:SAMPLE]


def guessed(data: bytes) -> Encoding:
    """Return the likeliest encoding of bytes that prove none, as browsers know them."""
    telling = sample(data)
    runs = _LETTERS.findall(telling)
    try:
        from cchardet import detect  # type: ignore[import-not-found]
    except ImportError:
        return Encoding("cp1252")
    # A few letters that stand alone are accents of western Europe: nothing could tell more.
    alone = all(len(run) == 1 for run in runs)
    found = "" if alone and len(runs) < FEWEST else str(detect(telling).get("encoding") or "").lower()
    codec = _WEB.get(found, "cp1252")
    return Encoding(codec if codec in _LATIN or not alone else "cp1252")


def recognised(data: bytes, *, cut: bool = False) -> Encoding:
    """Return the encoding: proven, or else the likeliest one."""
    return surely(data, cut=cut) or guessed(data)


def text_of(data: bytes) -> str:
    """Return the text, with replacement characters for what is none."""
    return recognised(data).decode(data).encode("utf-8", "replace").decode()


def _fits(data: bytes, codec: str, cut: bool) -> bool:
    try:
        codecs.getincrementaldecoder(codec)().decode(data, final=not cut)
    except UnicodeDecodeError:
        return False
    return True


def _wide(data: bytes, cut: bool) -> Encoding | None:
    """UTF-16 or UTF-32 without a mark: most letters have their NULs at the same places."""
    head = data[: HEAD - HEAD % 4]
    share = [head[at::4].count(0) / max(1, len(head[at::4])) for at in range(4)]
    for codec, full, empty in (
        ("utf-32-le", (0,), (2, 3)),
        ("utf-32-be", (3,), (0, 1)),
        ("utf-16-le", (0, 2), (1, 3)),
        ("utf-16-be", (1, 3), (0, 2)),
    ):
        if all(share[at] < 0.05 for at in full) and all(share[at] > 0.3 for at in empty):
            unit = 4 if codec.startswith("utf-32") else 2
            whole = data[: len(data) - len(data) % unit] if cut else data
            if _fits(whole, codec, cut):
                return Encoding(codec)
    return None
