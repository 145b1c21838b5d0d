"""The encoding of a text is found from its bytes, said by its name, and kept when the text is written back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.security.encodings import Encoding, binary, guessed, recognised, sample, surely

TEXTS = {
    "money": ("Straße;Betrag\nA-Weg;€ 1.234,50\nÖl;€ 7,00\n", ["cp1252"]),
    "de": ("id,Straße\n1,größere Brücken nach Düsseldorf\n2,Öl\n", ["cp1252", "utf-8", "utf-16", "utf-8-sig", "utf-32"]),
    "pl": ("id,nazwa\n1,Zażółć gęślą jaźń\n2,rosły żółte kwiaty i młode dęby\n", ["cp1250", "iso8859-2"]),
    "ru": ("id,имя\n1,Съешь же ещё этих мягких\n2,Москва и Петербург\n", ["cp1251", "koi8-r", "cp866", "iso8859-5"]),
    "el": ("id,όνομα\n1,Η Αθήνα είναι η πρωτεύουσα της Ελλάδας\n", ["cp1253", "iso8859-7"]),
    "zh": ("编号,姓名,城市\n1,张伟,北京\n2,李娜,上海\n", ["gbk", "gb18030"]),
    "tw": ("編號,姓名\n1,王小明\n", ["big5"]),
    "ja": ("番号,名前\n1,山田太郎\n2,カタカナも\n", ["cp932", "euc_jp", "iso2022_jp"]),
    "ko": ("번호,이름\n1,서울은 대한민국의 수도\n", ["cp949"]),
    "he": ("מספר,שם\n1,שלום עולם זהו מסמך\n", ["cp1255"]),
}  # fmt: skip
CASES = [(text, codec) for text, codecs in TEXTS.values() for codec in codecs]


@pytest.mark.parametrize(("text", "codec"), CASES, ids=[codec for _, codec in CASES])
def test_a_text_is_read_and_written_in_its_encoding(text: str, codec: str) -> None:
    data = text.encode(codec)
    found = recognised(data)
    assert found.decode(data) == text and found.encode(text) == data and not binary(data)


def test_a_few_letters_in_much_ascii_are_enough() -> None:
    data = ("# comment\nkey = value\n" * 2000 + "name = Größe und Übermaß\n").encode("cp1252")
    assert recognised(data) == Encoding("cp1252") and len(sample(data)) < 100


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_letters_are_known_by_their_nuls(codec: str) -> None:
    data = "id,naïve,Größe\n".encode(codec) * 5
    assert surely(data) == Encoding(codec) and recognised(data).decode(data).startswith("id,naïve")
    assert surely(data[:-1], cut=True) == Encoding(codec)


def test_a_damaged_text_stays_utf_8_and_loses_no_byte() -> None:
    data = "Größere Brücken äöü\n".encode() + b"\xff x"
    found = recognised(data)
    assert found.usual and found.encode(found.decode(data)) == data


def test_a_text_that_is_cut_within_a_letter_is_read() -> None:
    data = "grün".encode()[:3]
    assert surely(data, cut=True) == Encoding("utf-8") and Encoding("utf-8").decode(data, cut=True) == "gr"


def test_programs_and_pictures_are_no_text() -> None:
    for data in (b"\x89PNG\r\n\x1a\n\0\0", bytes(range(256)) * 40, b"\x7fELF\2\1\1" + b"\0" * 50):
        assert binary(data) and surely(data) is None


@pytest.mark.parametrize(
    ("codec", "name", "label"),
    [
        ("gb18030", "GB18030", "gb18030"), ("cp1252", "Windows-1252", "windows-1252"), ("cp932", "Shift-JIS", "shift_jis"),
        ("iso8859-2", "ISO-8859-2", "iso-8859-2"), ("utf-16-le", "UTF-16", "utf-16le"), ("koi8-r", "KOI8-R", "koi8-r"),
        ("cp866", "CP866", "ibm866"), ("cp874", "CP874", "windows-874"), ("utf-8", "UTF-8", "utf-8"),
    ],
)  # fmt: skip
def test_encodings_have_the_names_that_people_and_browsers_use(codec: str, name: str, label: str) -> None:
    assert (Encoding(codec).name, Encoding(codec).label) == (name, label)


@given(st.binary(max_size=300))
def test_any_bytes_have_an_encoding(data: bytes) -> None:
    assert isinstance(recognised(data).decode(data), str) and isinstance(guessed(data).name, str)
