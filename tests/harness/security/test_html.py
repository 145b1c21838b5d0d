"""Of a page only what a person who opens it sees, whatever it is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.test_linear_text import linear

from deerflow.security.html import MAX_ELEMENTS, _plain, decoded, readable

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
        "<p style='color:#fff'>SECRET</p>", "<p style='color: rgb(255, 255, 255)'>SECRET</p>", "<font color=white>SECRET</font>",
        "<p style='color:#FEFEFE'>SECRET</p>", "<div style='background:#111'><p style='color:#121212'>SECRET</p></div>",
        "<table><tr><td bgcolor='#000000'><font color=black>SECRET</font></td></tr></table>", "<p style='color:#11111100'>SECRET</p>",
        "<p style='font-size:1px'>SECRET</p>", "<p style='font-size:0.5px'>SECRET</p>", "<p style='font-size: 2px'>SECRET</p>",
        "<p style='font-size:1%'>SECRET</p>", "<p style='font:0/0 a'>SECRET</p>", "<p style='opacity:.01'>SECRET</p>",
        "<p style='position:fixed;top:-200vh'>SECRET</p>", "<p style='transform:translateX(-9999px)'>SECRET</p>",
        "<p style='height:0;overflow:hidden'>SECRET</p>", "<p style='clip-path:circle(0)'>SECRET</p>",
        "<style>.x1 {display: none}</style><p class='y x1'>SECRET</p>", "<style>#q{color:white}</style><p id=q>SECRET</p>",
        "<style>@media screen { div.a > p , b { left: -9999px } }</style><div class=a><p>SECRET</p></div>",
        "<style>/* } */ .z{font-size:0}</style><div class=z><p>SECRET</p></div>",
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
        "<p aria-hidden=false>SHOWN</p>", "<p class=hidden>SHOWN</p>", "<p style='font-size:small'>SHOWN</p>", "<p style='font-size:10px'>SHOWN</p>",
        "<p style='background:#222;color:#fff'>SHOWN</p>", "<div style='background-color:navy'><p style='color:white'>SHOWN</p></div>",
        "<div style='background-image:url(night.jpg)'><p style='color:white'>SHOWN</p></div>", "<p style='color:#333'>SHOWN</p>",
        "<table><tr><td bgcolor=black><font color=white>SHOWN</font></td></tr></table>", "<p style='font-size:100%'>SHOWN</p>",
        "<style>@media print{.a{display:none}} @media (max-width:600px){.a{display:none}}</style><p class=a>SHOWN</p>",
        "<style>.menu .a{display:none} .a:hover{display:none}</style><p class=a>SHOWN</p>", "<style>.a{display:none} .a{display:block}</style><p class=a>SHOWN</p>",
    ],
)  # fmt: skip
def test_what_is_seen_stays(shown: str):
    assert "SHOWN" in readable(f"<article>{FILLER}{shown}{FILLER}</article>").text


def test_without_a_library_the_same_is_left_out_and_stays():
    for page, word in ((f"<html><style>.q{{display:none}}</style>{FILLER}<p class=q>SECRET</p><div hidden>SECRET<p>SECRET</div><p>SHOWN</p>", "SHOWN"),
                       ("<title>A title</title><script>SECRET</script><p style='color:#fff'>SECRET</p>SHOWN", "SHOWN")):  # fmt: skip
        found = _plain(page, "https://example.org/")
        assert "SECRET" not in found.text and word in found.text


def test_the_links_of_a_page_are_absolute_addresses_that_are_seen():
    page = """<base href=/docs/><p>Deer, <a href='a?x=1#part'>a</a> <a href='//example.net/b'>b</a> <a href='a?x=1'>again</a> <a href='mailto:x@y.z'>c</a>
        <a href='http://[broken'>d</a> <a hidden href='https://evil.example/steal'>e</a> <a href=' javascript:f()'>f</a></p>"""
    for links in (readable(page, "https://example.org/x").links, _plain(page, "https://example.org/x").links):
        assert links == ("https://example.org/docs/a?x=1", "https://example.net/b")


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
