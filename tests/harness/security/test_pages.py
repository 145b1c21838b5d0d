"""Kinds of pages: what people come for is read, what stands around it on every page of its site is not."""

from __future__ import annotations

import re

import pytest

from deerflow.security.html import readable

AROUND = ("COOKIES", "MOSTREAD", "NEWSLETTER", "IMPRINT", "SHOP", "SCRIPTED")
STORY = "<p>The text of this story runs on for a good while, so that it is prose and kept, as it should. Sentence {} ends it.</p>"
ARTICLE = "".join(STORY.format(at) for at in range(6))


def site(body: str, *, title: str = "T", head: str = "", main: str = "main") -> str:
    nav = "<nav class='navbar'><ul><li><a href='/'>Home</a></li><li><a href='/shop'>SHOP</a></li></ul></nav>"
    return (
        f"<!doctype html><html lang=en><head><title>{title}</title>{head}</head><body><header class='site-header'>{nav}</header>"
        "<div id='cookie-banner'><p>We use COOKIES to improve.</p><button>Accept</button></div>"
        f"<{main} id=content>{body}</{main}><aside class='sidebar'><h3>MOSTREAD</h3><a href='/x'>Other</a><div class='newsletter'>NEWSLETTER"
        "</div></aside><footer class='site-footer'><p>IMPRINT</p></footer><script>var SCRIPTED=1</script></body></html>"
    )


KINDS: dict[str, tuple[str, list[str]]] = {
    "article": (
        f"<article><h1>Ferry returns</h1><div class='byline'>By Anna Berg</div><time>12 March 2026</time>{ARTICLE}<h2>What comes next</h2>"
        "<figure><img src='/i.png' alt='Chart of sales'><figcaption>Figure 1: sales grew</figcaption></figure><p>See <a href='/tides.html'>the "
        "tide table</a> of the harbour.</p><blockquote><p>It was a long winter.</p></blockquote><ol><li>First</li><li>Second</li></ol></article>",
        ["# Ferry returns", "Anna Berg", "12 March 2026", "Sentence 0", "Sentence 5", "## What comes next", "![Chart of sales](http://s.org/i.png)",
         "Figure 1: sales grew", "[the tide table](http://s.org/tides.html)", "> It was a long winter.", "2. Second"],
    ),
    "list of news": (
        "<h1>News</h1>" + "".join(f"<article><h2><a href='/n{at}'>Headline {at}</a></h2><p>Teaser {at}.</p><time>2026-01-0{at}</time></article>"
                                  for at in range(1, 9)),
        ["[Headline 1](http://s.org/n1)", "Teaser 1.", "2026-01-01", "[Headline 8](http://s.org/n8)", "2026-01-08"],
    ),
    "index of links": (
        "<h1>Manual</h1><ul>" + "".join(f"<li><a href='c{at}.html'>Chapter {at}</a></li>" for at in range(20)) + "</ul>",
        ["- [Chapter 0](http://s.org/c0.html)", "- [Chapter 19](http://s.org/c19.html)"],
    ),
    "small table": (
        "<h1>Plans</h1><table><tr><th>Plan</th><th>GB</th><th>EUR</th></tr><tr><td>P1</td><td></td><td>9.50</td></tr></table>",
        ["| Plan | GB | EUR |", "| P1 |", "| 9.50 |"],
    ),
    "table with spans": (
        "<table><caption>Table 2: in thousand EUR</caption><thead><tr><th rowspan=2>Gas</th><th colspan=2>Efficiency</th></tr><tr><th>SCOP</th>"
        "<th>COP</th></tr></thead><tr><td>R290</td><td>4.8</td><td>a|b</td></tr></table>",
        ["Table 2: in thousand EUR", "Efficiency", "SCOP", "| R290 | 4.8 | a\\|b |"],
    ),
    "layout by a table": (
        f"<table width=100%><tr><td>left</td><td><h1>Old site</h1>{ARTICLE}</td></tr></table>",
        ["# Old site", "Sentence 0", "Sentence 5"],
    ),
    "documentation": (
        "<h1>Install</h1><p>Run this:</p><pre><code class='language-bash'>pip install deer_flow\nfor i in *; do\n    echo $i\ndone</code></pre>"
        "<p>Use <code>--fast_mode</code>.</p><dl><dt>timeout_s</dt><dd>Seconds to wait.</dd></dl><div class='note'><p>Needs Python.</p></div>"
        "<details><summary>More</summary><p>On a click.</p></details>",
        ["```bash\npip install deer_flow\nfor i in *; do\n    echo $i\ndone\n```", "`--fast_mode`", "timeout_s", "Seconds to wait.", "Needs Python.",
         "On a click."],
    ),
    "forum": (
        "<h1>How?</h1>" + "".join(f"<div class='comment'><div class=votes>{at}7</div><div><p>Answer {at}: set the option.</p></div><div>user{at}</div></div>"
                                  for at in range(4)),
        ["07", "Answer 0", "user0", "37", "Answer 3", "user3"],
    ),
    "shop": (
        "<h1>Lamp L9</h1><img src='/l.jpg' alt='Lamp in black'><span class=price>EUR 19.90</span><form><label>In stock: 4</label></form>"
        "<table><tr><th>Power</th><td>9 W</td></tr></table><div class='related'>COOKIES</div>",
        ["Lamp L9", "Lamp in black", "EUR 19.90", "In stock: 4", "| Power | 9 W |"],
    ),
    "encyclopedia": (
        "<h1>Rum</h1><table class=infobox><tr><th>Area</th><td>104 km<sup>2</sup></td></tr></table><p><b>Rum</b> is one of the Small Isles of the "
        "Inner Hebrides.</p><div class='toc'>COOKIES</div><h2>References</h2><ol><li>Smith, J. (1999)</li></ol>",
        ["104 km^2", "**Rum** is one of the Small Isles", "Smith, J. (1999)"],
    ),
    "contact": ("<h2>Contact</h2><p>Phone: +49 30 1234</p><address>Street 5<br>10115 Berlin</address>", ["+49 30 1234", "Street 5", "10115 Berlin"]),
    "Chinese": ("<article><h1>北京的秋天</h1>" + "".join(f"<p>这是第{at}段文字，讲述了北京秋天的景色。</p>" for at in range(6)) + "</article>", ["北京的秋天", "第5段"]),
    "letters": ("<p>Write &lt;b&gt; and AT&amp;T; 5 &lt; 6 * 7 and snake_case.</p>", ["Write <b> and AT&T; 5 < 6 * 7 and snake_case."]),
}  # fmt: skip


@pytest.mark.parametrize("main", ["main", "div"])
@pytest.mark.parametrize("kind", KINDS)
def test_of_a_page_the_main_part_is_read(kind: str, main: str) -> None:
    body, says = KINDS[kind]
    text = readable(site(body, main=main), "http://s.org/p").text
    at = [text.find(each) for each in says]
    assert -1 not in at and at == sorted(at), f"{says[at.index(-1)] if -1 in at else 'the order'}\n{text}"
    assert not [word for word in AROUND if word in text], text


def test_a_page_says_who_wrote_it_and_when() -> None:
    metas = "<meta name=author content='Anna Berg'><meta property='article:published_time' content='2026-03-12T10:00:00Z'><meta property='og:site_name' content='The Site'>"
    data = '<script type="application/ld+json">{"@graph": [{"datePublished": "2026-03-12", "author": [{"name": "Anna Berg"}]}]}</script>'
    for head in (metas, data):
        said = readable(site(ARTICLE, title="A title", head=head)).head
        assert (said.title, said.author, said.published[:10], said.language) == (
            "A title",
            "Anna Berg",
            "2026-03-12",
            "en",
        )
    assert readable(site(ARTICLE, head=metas)).head.site == "The Site"
    assert readable("<script type='application/ld+json'>{]</script><p>x</p>").head.author == ""


def test_the_title_stands_once() -> None:
    page = readable(site(f"<h1>A title</h1>{ARTICLE}", title="A title"))
    assert page.title == "A title" and "A title" not in page.text
    assert readable("<title>Only</title><h1>Only</h1>").text == "# Only"


def test_a_page_of_scripts_says_so() -> None:
    assert readable("<title>App</title><div id=root>Loading…</div><script src=/app.js></script>").scripted
    assert not readable(site(ARTICLE)).scripted


def test_what_lies_deep_is_read() -> None:
    for depth in (200, 3000):
        assert (
            "DEEP text"
            in readable(
                "<html><body>" + "<div>" * depth + "<p>DEEP text</p>" + "</div>" * depth + "</body></html>"
            ).text
        )


def test_spans_without_end_stay_small() -> None:
    assert len(readable("<table>" + "<tr>" + "<td colspan=1000 rowspan=60000>x" * 300 + "</tr></table>").text) < 1 << 20
    assert re.search("x", readable("<table><tr><td colspan=abc rowspan=-1>x<td>y</table>").text)
