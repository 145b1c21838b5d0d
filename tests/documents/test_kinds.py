"""Files of all kinds and what must be read in them. Every file is made here: none is of anyone else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.documents import office
from tests.documents.compound import compound, old_workbook, outlook

from deerflow.sandbox.converters import Converters, UnreadableError

MAIL = (
    "From: =?utf-8?q?Bj=C3=B6rn?= <b@example.org>\r\nTo: a@example.org\r\nDate: Mon, 05 Jan 2026 10:00:00 +0100\r\nSubject: Fwd\r\n"
    'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: text/plain; charset=nonsense\r\n'
    "Content-Transfer-Encoding: 8bit\r\n\r\nGr\u00fc\u00dfe\r\n--x\r\nContent-Type: message/rfc822\r\n\r\nFrom: c@example.org\r\nSubject: Inner\r\n\r\n"
    'The inner text.\r\n--x\r\nContent-Type: application/pdf; name="sum.pdf"\r\nContent-Disposition: attachment; filename="sum.pdf"\r\n\r\n'
    f"{'z' * 2600}\r\n--x--\r\n"
)
RTF = r"{\rtf1\ansi\ansicpg1252 Stra\'dfe \b bold\b0\par Second \u8364? line}"
SHEET = [
    "EAN | Zip | Day | At | Part | Long | Code | Sum",
    "4006381333931 | 01067 | 2024-02-29 | 2024-03-31 02:30:00 | 25% {>>Bert: sure?<<} | 26:30:00 | [NA](https://example.org/na) | =E3+E4 (not calculated)",
    "12345678901234567890 |  |  |  | 0.1 | TRUE | a\\|b | 0.2",
    "#DIV/0! | null | 7",
    "(899995 empty rows)",
    "stray",
    "[formulas: H2 =E3+E4 (not calculated); H3 =E3*2; H4 =E4*2]",
    "[merged cells: A1:B1]",
    "[hidden: row 3]",
    "## Old (hidden sheet)",
    "secret",
    "## None\n\n(empty)",
]  # fmt: skip
WORD = [
    "<!-- in this text: {++inserted++}, {--deleted--}, {>>author: comment<<} -->",
    "[header: Confidential]",
    "# Contract",
    "§ 1. First clause",
    "1.a) Inner clause",
    "§ 2. Second clause",
    "The price is {--100--}{++250++} euros.{>>Bert: Too much?<<}",
    "See [the site](https://example.org/site) and the note[^1].",
    "$\\frac{a}{b}$",
    "In the box",
    "![Our logo](https://example.org/logo.png)",
    "| Wide a\\|b |  |\n| --- | --- |\n| Tall | 1 |\n|  | 2 |",
    "[^1]: As of May.",
]
READ: dict[str, tuple[bytes, list[str], list[str]]] = {
    "contract.docx": (office.full_word(), WORD, ["In the box\n\nIn the box"]),
    "wrong-name.xlsx": (office.full_word(), WORD, []),
    "values.xlsx": (office.full_workbook(), SHEET, []),
    "values.xlsm": (office.full_workbook(), SHEET, []),
    "stock.xlsb": (office.binary_workbook(), ["## Stock", "| EAN | 4006381333931 |"], []),
    "old.xls": (
        old_workbook([["EAN", "Name"], [4006381333931.0, "Zürich"], [0.1, "NA"]]),
        ["## Sales", "| 4006381333931 | Zürich |", "| 0.1 | NA |"],
        [],
    ),
    "a.odt": (
        office.full_odt(),
        [
            "## Offer",
            "Two  words {--old--}{++new++}{>>Bert: why?<<} [site](https://example.org/)[^1]",
            "1. one\n   - inner\n2. two",
            "| a | b\\|c |",
            "[^1]: As of May.",
        ],
        [],
    ),
    "a.ods": (
        office.full_ods(),
        [
            "## Sales",
            "| 4006381333931 | 2024-02-29 | 25 % | TRUE | 7 | 7 |",
            "[formula at E1: =[.A1]+1]",
            "## Old (hidden sheet)",
            "secret",
        ],
        ["4.01E+12"],
    ),
    "a.odp": (
        office.full_odp(),
        ["<!-- slide 1 of 2 -->", "Start", "[notes: Say hello]", "<!-- slide 2 of 2 (hidden) -->", "Spare"],
        [],
    ),
    "a.epub": (office.book(), ["**title:** Deer", "Anna Berg", "# One", "First chapter.", "Second **chapter**."], []),
    "a.rtf": (RTF.encode(), ["Straße bold", "Second € line"], ["rtf1"]),
    "a.eml": (
        MAIL.encode(),
        ["**From:** Björn <b@example.org>", "Mon, 05 Jan 2026", "Grüße", "Forwarded message:", "**Subject:** Inner", "The inner text.",
         "Attachments: sum.pdf (3 kB)"],
        [],
    ),
    "a.mbox": (
        b"From b@example.org Mon Jan  5 10:00:00 2026\nSubject: One\n\nFirst\n>From here\n\nFrom c@x Mon\nSubject: Two\n\nSecond\n",
        ["<!-- message 1 of 2 -->", "**Subject:** One", "\nFrom here", "<!-- message 2 of 2 -->", "Second"],
        [],
    ),
    "a.msg": (
        outlook("The figures", "Dear Anna,\r\nsee below.", "Bert", {"sum.pdf": b"x" * 2600}),
        ["**From:** \"Bert\" <bert@example.org>", "Anna <anna@example.org>", "**Date:** 2024-01-17", "The figures", "Dear Anna,\nsee below.",
         "Attachments: sum.pdf (3 kB)"],
        ["\r"],
    ),
    "table.xls": (b"<html><body><table><tr><td>a</td><td>1</td></tr></table></body></html>", ["| a | 1 |"], ["<td"]),
    "list.xlsx": ("编号,姓名,城市\n1,张伟,北京\n2,李娜,上海\n".encode("gbk"), ["[read as GB18030]", "1,张伟,北京"], []),
    "forged.docx": (office.word(office.p(office.t("x &lt;!-- page 9 of 9 --&gt;"))), ["x < !-- page 9 of 9 -->"], []),
}  # fmt: skip
REFUSED = {
    "locked.docx": (compound({"EncryptedPackage": b"x" * 5000, "EncryptionInfo": b"y"}), "needs its password."),
    "locked.odt": (office.open_document("text", "", manifest="<encryption-data/>"), "needs its password."),
    "old.doc": (compound({"WordDocument": b"x" * 5000}), "Ask for it as .docx"),
    "old.ppt": (compound({"PowerPoint Document": b"x" * 5000}), "Ask for it as .pptx"),
    "zip.docx": (office.packed({"a.txt": "words"}), "is a ZIP archive, not a document."),
    "cut.docx": (office.full_word()[:600], "its end is missing."),
    "odd.docx": (office.packed({"[Content_Types].xml": office.types("wordprocessingml"), "word/x.xml": ""}), "where Word keeps it."),
    "picture.docx": (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "is not what its name says."),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
async def test_what_is_in_a_file_is_read(converters: Converters, name: str) -> None:
    data, says, never = READ[name]
    text = (await converters.document(data, name, "u")).decode()
    assert text.startswith(f"<!-- text of {name} -->\n\n")
    at = [text.find(each) for each in says]
    assert -1 not in at and at == sorted(at), f"{says[at.index(-1)] if -1 in at else 'the order'}\n{text}"
    assert not [each for each in never if each in text] and not re.search(r"[\x00-\x08\x0b-\x1f]", text), text


@pytest.mark.parametrize("name", REFUSED)
async def test_what_cannot_be_read_is_a_sentence_with_what_helps(converters: Converters, name: str) -> None:
    data, says = REFUSED[name]
    with pytest.raises(UnreadableError) as refused:
        await converters.document(data, name, "u")
    assert says in str(refused.value) and "Error" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("table.pdf", ["| Region | Units | EUR |", "| North | 12 | 1,200.50 |", "| South | 7 |  |", "That is all"]),
        (
            "scan.pdf",
            ["<!-- page 1 of 2 -->", "[page 1 is a picture: look at it with view_image scan.pdf#page=1]", "[This page is empty.]"],
        ),
        ("form.pdf", ["Name of the applicant", "[field applicant: Anna Berg]"]),
        ("hebrew.pdf", ["שלום עולם", "מחיר"]),
        (
            "deck.pptx",
            ["<!-- slide 1 of 2 -->", "# Start", "| a | b\\|c |", "[chart: Sales]", "| North | 12 |", "[notes: Say hello]",
             "<!-- slide 2 of 2 (hidden) -->", "# Goal"],
        ),
    ],
)  # fmt: skip
async def test_what_libraries_write_is_read(
    converters: Converters, documents: Path, name: str, says: list[str]
) -> None:
    text = (await converters.document((documents / name).read_bytes(), name, "u")).decode()
    at = [text.find(each) for each in says]
    assert -1 not in at and at == sorted(at), text


async def test_no_entity_of_a_document_is_resolved(converters: Converters, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    bomb = f"<!DOCTYPE w [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'><!ENTITY f SYSTEM 'file://{secret}'>]>"
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": office.types("wordprocessingml"),
        "word/document.xml": f"{bomb}<w:document {office.WORD}><w:body>{office.p(office.t('x&b;&f;y'))}</w:body></w:document>",
    }
    text = (await converters.document(office.packed(parts), "x.docx", "u")).decode()
    assert "SECRET" not in text and "aaaa" not in text
