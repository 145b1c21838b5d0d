"""Of a page only what a person who opens it sees, whatever it is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.test_linear_text import linear

from deerflow.security.html import MAX_ELEMENTS, decoded, readable

FILLER = "<p>Deer are hoofed ruminant mammals, which live in many parts of the world and eat grass.</p>" * 4
PIECES = ["<p>", "</p>", "<div hidden>", "<table>", "<tr>", "<td>", "<script>", "</script>", "<!--", "-->", "<![CDATA[", "&lt;", "&#0;", "&#x110000;",
          "<a href='x'>", "</a>", "<svg>", "<math>", "<style>", "text", "\0", "\ud800", "<title>", "<body>", "<html>", "<p style='", "'>", '"', "<ul><li>"]  # fmt: skip


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>SECRET</script>", "<style>SECRET</style>", "<noscript>SECRET</noscript>", "<template>SECRET</template>",
        "<iframe>SECRET</iframe>", "<object>SECRET</object>", "<svg><text>SECRET</text></svg>", "<!-- SECRET -->", "<?php SECRET ?>",
        "<textarea>SECRET</textarea>", "<select><option>SECRET</option></select>", "<button>SECRET</button>", "<input value=SECRET>",
        "<p hidden>SECRET</p>", "<p hidden=''>SECRET</p>", "<p aria-hidden=true>SECRET</p>", "<p aria-hidden=' TRUE '>SECRET</p>",
        "<p style=display:none>SECRET</p>", "<p style='DISPLAY : NONE !important'>SECRET</p>", "<p style='display:/**/none'>SECRET</p>",
        "<p style='dis\\play:none'>SECRET</p>", "<p style='visibility:hidden'>SECRET</p>", "<p style='visibility: collapse;'>SECRET</p>",
        "<p style='opacity:0'>SECRET</p>", "<p style='color:red;opacity: 0.0;'>SECRET</p>", "<p style='font-size:0'>SECRET</p>",
        "<p style='font-size:0px;x:y'>SECRET</p>", "<p style='position:absolute;left:-9999px'>SECRET</p>", "<p style='text-indent:-9999em'>SECRET</p>",
        "<p style='clip:rect(0,0,0,0)'>SECRET</p>", "<p style='clip-path: inset(100%)'>SECRET</p>", "<p style='transform:scale(0)'>SECRET</p>",
        "<p style='color:transparent'>SECRET</p>", "<div style='display:none'><p>a</p><div><p>SECRET</p></div></div>",
        "<p>\u200b\U000e0053\U000e0045\U000e0043</p><meta name=description content=SECRET>", "<img src='data:text/plain,SECRET'>",
        "<a href='javascript:SECRET'>a link</a>", "<a href=' java\tscript:SECRET'>a link</a>",
    ],
)  # fmt: skip
def test_what_is_hidden_is_left_out(hidden: str):
    for page in (f"<article>{FILLER}{hidden}{FILLER}</article>", f"<html><body>{hidden}<p>Short.</p></body></html>"):
        text = readable(page).text
        assert "SECRET" not in text and ("ruminant" in text or "Short." in text)


@pytest.mark.parametrize(
    "shown",
    [
        "<p style='opacity:0.5'>SHOWN</p>", "<p style='opacity:.9'>SHOWN</p>", "<p style='font-size:small'>SHOWN</p>",
        "<p style='font-size:0.8em'>SHOWN</p>", "<p style='display:block'>SHOWN</p>", "<p style='width:auto;left:-10px'>SHOWN</p>",
        "<p aria-hidden=false>SHOWN</p>", "<p class=hidden>SHOWN</p>",
    ],
)  # fmt: skip
def test_what_is_seen_stays(shown: str):
    assert "SHOWN" in readable(f"<article>{FILLER}{shown}{FILLER}</article>").text


def test_a_page_that_is_hidden_until_its_script_runs_is_read():
    assert "ruminant" in readable(f"<html hidden><body aria-hidden=true>{FILLER}</body></html>").text


def test_entities_are_resolved_once_and_addresses_stay():
    text = readable(
        f"<article>{FILLER}<p>Fish &amp;amp; chips, <a href='/?a=1&copy=2&amp;lt=3'>here</a> &copy;</p></article>",
        "https://example.org/",
    ).text
    assert "Fish &amp; chips" in text and "https://example.org/?a=1&copy=2&lt=3" in text and "\xa9" in text
    assert "&lt;b&gt;" in readable("<p>Write &amp;lt;b&amp;gt; for bold text, as people do.</p>").text.replace("\\", "")


def test_titles_are_one_line():
    assert readable("<title>\n A\u202e long \n title </title><p>x</p>").title == "A long title"


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_whatever_a_page_is_made_of_it_is_read(html: str):
    page = readable(html, "https://example.org/")
    assert "\0" not in page.text + page.title


@pytest.mark.parametrize("piece", ["<div>", "<b>", "<table><tr><td>", "<ul><li>x", "<p>word</p>", "<a href=x>w</a> ", "<", "&lt;", "<p a=b>",
                                   "<!--", "<p style='", "</p>", "<blockquote>", "a<br>", "<td>", "<select>"])  # fmt: skip
def test_bombs_take_linear_time(piece: str):
    with linear():
        readable((piece * 100_000)[:100_000], "https://example.org/")


def test_comments_in_a_style_that_never_end_take_linear_time():
    with linear():
        assert readable(f"<p style='{'/*a' * 3_300}'>word</p>" * 200).text.count("word") == 200


def test_of_a_page_with_too_many_elements_all_text_is_taken():
    assert readable("<p>word</p>" * (MAX_ELEMENTS + 1)).text.count("word") == MAX_ELEMENTS + 1


@given(
    st.binary(max_size=200),
    st.sampled_from(
        ["", "utf-8", "utf-7", "idna", "punycode", "unicode_escape", "zip", "gb2312", "x" * 99, "iso-8859-77"]
    ),
)
def test_any_bytes_become_text(data: bytes, charset: str):
    assert isinstance(decoded(data, charset), str)
