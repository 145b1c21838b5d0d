"""Kinds of pages and what must be read in them: boilerplate left out, tables, links and dates kept. All pages are made here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deerflow.sandbox.converters import Converters

NAV = (
    "<nav class='navbar'><ul><li><a href='/'>Home-NAV</a></li><li><a href='/shop'>Shop-NAV</a></li>"
    "<li><a href='/about'>About-NAV</a></li></ul></nav>"
)
HEADER = f"<header class='site-header'><div class='logo'>SiteLogo</div><form><input type=search><button>Search-BTN</button></form>{NAV}</header>"
COOKIE = "<div id='cookie-banner' class='cookie-consent'><p>We use cookies to improve COOKIEJUNK.</p><button>Accept</button></div>"
SIDE = (
    "<aside class='sidebar'><h3>Most read JUNKSIDE</h3><ul><li><a href='/x1'>Unrelated story JUNKONE</a></li>"
    "<li><a href='/x2'>Unrelated story JUNKTWO</a></li></ul><div class='newsletter'>Subscribe to our newsletter JUNKNEWS</div></aside>"
)
FOOT = (
    "<footer class='site-footer'><p>© 2026 Company FOOTJUNK</p><ul><li><a href='/imprint'>Imprint-FOOT</a></li>"
    "<li><a href='/privacy'>Privacy-FOOT</a></li></ul></footer>"
)
JUNK = ("COOKIEJUNK", "JUNKSIDE", "JUNKNEWS", "FOOTJUNK", "Shop-NAV")
SENTENCE = (
    "<p>The text of this story runs on for a good while, so that an extractor sees it as prose and keeps it, as it should. "
    "Sentence number %s ends it.</p>"
)
HIDDEN = (
    "<div style='display:none'>EVILNONE ignore</div><p style='font-size:0'>EVILZERO</p><p hidden>EVILHID</p><div aria-hidden=true>EVILARIA</div>"
    "<p style='position:absolute;left:-9999px'>EVILOFF</p><p style='color:#fff;background:#fff'>EVILWHITE</p>"
    "<p style='color:white;font-size:1px'>EVILTINY</p><!-- EVILCOMMENT --><template>EVILTPL</template><p class=vh>EVILCLASS</p>"
)


@dataclass(frozen=True)
class Kind:
    """A page with what its text has and lacks, rows of its tables, and patterns that match."""

    html: str
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    matches: tuple[str, ...] = ()
    scripted: bool = False


def page(body: str, head: str = "", main: str = "main", lang: str = "en") -> str:
    return (
        f"<!doctype html><html lang={lang}><head><meta charset=utf-8><title>T</title>{head}<style>.x{{color:red}}</style></head><body>"
        f"{HEADER}{COOKIE}<{main} id=content>{body}</{main}>{SIDE}{FOOT}<script>var JSJUNK=1</script></body></html>"
    )


KINDS = {
    "article": Kind(
        page(
            f"<article><h1>Ferry returns to Rum</h1><div class='byline'>By Anna Berg</div><time datetime='2026-03-12'>12 March 2026</time>{''.join(SENTENCE % i for i in range(6))}<h2>What comes next</h2><figure><img src='/i.png' alt='Chart of sales 2025'><figcaption>Figure 1: sales grew by 40 percent</figcaption></figure><p>A link to <a href='/tides.html'>the tide table</a> stands here in the text of the article.</p><blockquote><p>It was a long winter, said the captain.</p></blockquote><ol><li>First numbered</li><li>Second numbered</li></ol></article>"
        ),
        has=(
            "Ferry returns to Rum",
            "Sentence number 0",
            "Sentence number 5",
            "said the captain",
            "Second numbered",
            "Anna Berg",
            "12 March 2026",
            "Figure 1: sales grew",
            "Chart of sales 2025",
            "tides.html",
        ),
        matches=("(?m)^#+ What comes next",),
    ),
    "article-div": Kind(
        page(f"<div class='story'><h1>Ferry in divs</h1>{''.join(SENTENCE % i for i in range(8))}</div>", main="div"),
        has=(
            "Sentence number 0",
            "Sentence number 7",
        ),
    ),
    "meta-only": Kind(
        page(
            "".join(SENTENCE % i for i in range(4)),
            head="<meta name=author content='Anna Berg'><meta property='article:published_time' content='2026-03-12T10:00:00Z'><meta name=description content='Short DESCR'>",
        ),
        has=(
            "Sentence number 3",
            "Anna Berg",
            "2026-03-12",
        ),
    ),
    "news-list": Kind(
        page(
            "<h1>News</h1>"
            + "".join(
                f"<article><h2><a href='/n{i}'>Headline number {i}</a></h2><p>Teaser text of story {i} in one sentence.</p><time>2026-01-0{i + 1}</time></article>"
                for i in range(8)
            )
        ),
        has=(
            "Headline number 0",
            "Headline number 1",
            "Headline number 2",
            "Headline number 3",
            "Headline number 4",
            "Headline number 5",
            "Headline number 6",
            "Headline number 7",
            "story 0 ",
            "story 1 ",
            "story 2 ",
            "story 3 ",
            "story 4 ",
            "story 5 ",
            "story 6 ",
            "story 7 ",
            "/n0",
            "/n7",
            "2026-01-01",
            "2026-01-08",
        ),
    ),
    "news-list-div": Kind(
        page(
            "".join(
                f"<div class='item'><h3><a href='/n{i}'>Headline number {i} with more words</a></h3><p>{f'Teaser text of the story number {i} in one or two sentences of usual length. ' * 3}</p></div>"
                for i in range(6)
            ),
            main="div",
        ),
        has=(
            "Headline number 0",
            "Headline number 1",
            "Headline number 2",
            "Headline number 3",
            "Headline number 4",
            "Headline number 5",
            "/n0",
            "/n5",
        ),
    ),
    "link-index": Kind(
        page(
            "<h1>Manual</h1><p>Contents of the manual.</p><ul>"
            + "".join(f"<li><a href='/c{i}.html'>Chapter {i}</a></li>" for i in range(20))
            + "</ul>"
        ),
        has=(
            "Chapter 0",
            "Chapter 19",
            "c0.html",
            "c10.html",
            "c19.html",
        ),
    ),
    "p-a-list": Kind(
        page(
            "<h1>Articles</h1>" + "".join(f"<p><a href='/a{i}'>Article {i} about heat pumps</a></p>" for i in range(12))
        ),
        has=(
            "Article 0 about",
            "Article 11 about",
            "/a0",
            "/a11",
        ),
    ),
    "price-table": Kind(
        page(
            "<h1>Plans</h1><table><tr><th>Plan</th><th>Users</th><th>GB</th><th>EUR</th></tr>"
            + "".join(f"<tr><td>P{i}</td><td>{i}</td><td></td><td>{i * 9}.50</td></tr>" for i in range(1, 5))
            + "</table>"
        ),
        rows=(
            ("Plan", "Users", "GB", "EUR"),
            ("P1", "1", "", "9.50"),
            ("P4", "4", "", "36.50"),
        ),
    ),
    "table-spans": Kind(
        page(
            "<h1>Refrigerants</h1><p>"
            + "An introduction to the table. " * 10
            + "</p><table><caption>Table 2: in thousand EUR</caption><thead><tr><th rowspan=2>Refrigerant</th><th colspan=2>Efficiency</th></tr><tr><th>SCOP 35</th><th>COP -15</th></tr></thead><tr><td>R290</td><td>4.8</td><td>2.9</td></tr><tr><td>R32</td><td>4.5</td><td>2.4</td></tr></table>"
        ),
        has=("in thousand EUR",),
        rows=(
            ("R290", "4.8", "2.9"),
            ("SCOP 35", "COP -15"),
        ),
        matches=("\\|[^|\\n]*\\|\\s*SCOP 35",),
    ),
    "layout-table": Kind(
        page(
            "<table width=100%><tr><td width=20%>left col</td><td><h1>Old site</h1>"
            + "".join(SENTENCE % i for i in range(4))
            + "</td></tr></table>"
        ),
        has=(
            "Sentence number 0",
            "Sentence number 3",
            "Old site",
        ),
    ),
    "docs-code": Kind(
        page(
            "<h1>Install</h1><p>Run the command below in a terminal, then restart the service.</p><pre><code class='language-bash'>pip install deer_flow\nfor i in *; do\n    echo $i\ndone</code></pre><p>Use <code>--fast_mode</code> to skip <kbd>Ctrl</kbd>.</p><h2>API</h2><dl><dt>timeout_s</dt><dd>Seconds to wait.</dd><dt>retries</dt><dd>How often.</dd></dl><div class='admonition note'><p>Note: needs Python 3.12.</p></div><details><summary>More</summary><p>Hidden detail text that opens on click.</p></details>"
        ),
        has=(
            "pip install deer_flow",
            "--fast_mode",
            "timeout_s",
            "Seconds to wait.",
            "How often.",
            "needs Python 3.12",
            "Hidden detail text",
        ),
        matches=(
            "\\n    echo \\$i\\n",
            "```",
        ),
    ),
    "forum": Kind(
        page(
            "<h1>How to set option x?</h1>"
            + "".join(
                f"<div class='answer comment'><div class='votes'>{i * 10 + 7}</div><div class='body'><p>Answer {i}: you should set option {i} in the file and restart the service, which worked for me.</p></div><div class='user'>user{i}_name</div><span class='date'>2026-02-1{i}</span></div>"
                for i in range(4)
            )
        ),
        has=(
            "Answer 0",
            "Answer 1",
            "Answer 2",
            "Answer 3",
            "user0_name",
            "user3_name",
            "37",
        ),
    ),
    "comments": Kind(
        page(
            f"<article><h1>Post</h1>{''.join(SENTENCE % i for i in range(3))}</article><section id='comments' class='comments'><h2>Comments</h2>"
            + "".join(
                f"<div class='comment'><b>Bob{i}</b><p>I think remark {i} is wrong because of the cost.</p></div>"
                for i in range(5)
            )
            + "</section>"
        ),
        has=(
            "Sentence number 2",
            "remark 0",
            "remark 4",
            "Bob3",
        ),
    ),
    "github-readme": Kind(
        page(
            "<div class='repo-head'><a href='/o/r'>o/r</a> <span>1.2k stars</span></div><article class='markdown-body entry-content'><h1>proj</h1><p align=center><a href='https://ci/x'><img src='https://img/b.svg' alt='build passing'></a></p><p>A tool that does things well for people who need it done.</p><ul><li>fast</li><li>small<ul><li>nested point</li></ul></li></ul><table><thead><tr><th>Flag</th><th>Meaning</th></tr></thead><tbody><tr><td><code>-v</code></td><td>verbose | loud</td></tr></tbody></table><pre><code>make\nmake test</code></pre><p>Licensed <a href='LICENSE'>MIT</a>.</p></article>"
        ),
        has=(
            "A tool that does things well",
            "fast",
            "nested point",
            "LICENSE",
        ),
        matches=(
            "make\\nmake test",
            "-v`?\\s*\\|\\s*verbose \\\\?\\|? ?loud|-v`? \\| verbose",
        ),
    ),
    "product": Kind(
        page(
            "<div class='product'><h1>Lamp L9</h1><img src='/l.jpg' alt='Lamp L9 in black'><span class='price'>EUR 19.90</span><span class='stock'>In stock: 4</span><p>A lamp for desks.</p><table class='specs'><tr><th>Power</th><td>9 W</td></tr><tr><th>Colour</th><td>2700 K</td></tr></table><ul class='features'><li>Dimmer</li><li>Two years warranty</li></ul></div><div class='related'><h2>Related JUNKREL</h2></div>"
        ),
        has=(
            "Lamp L9",
            "A lamp for desks",
            "Dimmer",
            "19.90",
            "In stock: 4",
        ),
        rows=(
            ("Power", "9 W"),
            ("Colour", "2700 K"),
        ),
    ),
    "product-grid": Kind(
        page(
            "<h1>Lamps</h1>"
            + "".join(
                f"<div class='card'><a href='/p{i}'><h3>Lamp {i}</h3></a><span class='price'>EUR {i}9.90</span><p>A lamp for desks and shelves, warm light, with dimmer.</p></div>"
                for i in range(1, 8)
            )
        ),
        has=(
            "EUR 19.90",
            "EUR 29.90",
            "EUR 39.90",
            "EUR 49.90",
            "EUR 59.90",
            "EUR 69.90",
            "EUR 79.90",
            "Lamp 1",
            "Lamp 7",
            "/p1",
            "/p7",
        ),
    ),
    "recipe": Kind(
        page(
            "<h1>Pancakes</h1><p>Simple pancakes for two.</p><div class='meta'>Prep: 10 min</div><h2>Ingredients</h2><ul class='ingredients'><li>200 g flour</li><li>2 eggs</li><li>300 ml milk</li></ul><h2>Method</h2><ol><li>Mix all.</li><li>Rest 10 minutes.</li><li>Fry.</li></ol>",
            head='<script type=\'application/ld+json\'>{"@type":"Recipe","name":"Pancakes"}</script>',
        ),
        has=(
            "200 g flour",
            "300 ml milk",
            "Rest 10 minutes",
            "Prep: 10 min",
        ),
        matches=("(?m)^\\s*2[.)]\\s+Rest",),
    ),
    "wiki": Kind(
        page(
            "<h1>Rum</h1><div id='mw-content-text'><table class='infobox'><tr><th colspan=2>Rum</th></tr><tr><th>Area</th><td>104.63 km<sup>2</sup></td></tr><tr><th>Population</th><td>22</td></tr></table><p><b>Rum</b> is one of the Small Isles of the Inner Hebrides in Scotland.<sup class='reference'><a href='#cite_1'>[1]</a></sup> It is the largest of them by far and has a castle.</p><div class='toc'><ul><li><a href='#h'>History</a></li></ul></div><h2>History<span class='mw-editsection'>[<a href='/edit'>edit</a>]</span></h2>"
            + SENTENCE % 1
            + "<h2>References</h2><ol class='references'><li id=cite_1>Smith, J. (1999) The Isles.</li></ol></div>"
        ),
        has=(
            "104.63 km",
            "Small Isles",
            "Sentence number 1",
            "Smith, J. (1999)",
        ),
        rows=(("Population", "22"),),
    ),
    "multi-column": Kind(
        page(
            "<div class='row'><div class='col'><h2>Left</h2>"
            + SENTENCE % 1
            + "</div><div class='col'><h2>Right</h2>"
            + SENTENCE % 2
            + "</div><div class='col'><h2>Third</h2>"
            + SENTENCE % 3
            + "</div></div>",
            main="div",
        ),
        has=(
            "Sentence number 1",
            "Sentence number 2",
            "Sentence number 3",
        ),
        matches=("(?m)^#+ Third",),
    ),
    "contact": Kind(
        page(
            "<h2>Contact</h2><p>Phone: +49 30 1234</p><p>Mail: info@example.org</p><address>Street 5<br>10115 Berlin</address><p>Open Mon-Fri 9-17</p>"
        ),
        has=(
            "+49 30 1234",
            "info@example.org",
            "Street 5",
            "10115 Berlin",
            "9-17",
        ),
    ),
    "dl-facts": Kind(
        page(
            "<p>"
            + "The company was founded in 1911 and makes pumps for houses. " * 4
            + "</p><dl>"
            + "".join(f"<dt>Fact {i}</dt><dd>Value {i}</dd>" for i in range(8))
            + "</dl>"
        ),
        has=(
            "Fact 0",
            "Value 0",
            "Value 7",
        ),
    ),
    "releases": Kind(
        page(
            "<h1>Releases</h1>"
            + "".join(
                f"<section><h2><a href='/rel/{i}'>v1.{i}.0</a></h2><time>2026-0{i}-01</time><ul><li>Fix bug {i} in the parser</li><li>Add option --x{i}</li></ul></section>"
                for i in range(1, 9)
            )
        ),
        has=(
            "v1.1.0",
            "v1.8.0",
            "Fix bug 8",
            "--x4",
            "2026-08-01",
        ),
    ),
    "zh": Kind(
        page(
            "<article><h1>北京的秋天</h1>"
            + "".join(
                f"<p>这是第{i}段文字，讲述了北京秋天的景色和人们的生活，天气很好，适合出门散步。</p>" for i in range(6)
            )
            + "</article>",
            lang="zh",
        ),
        has=(
            "北京的秋天",
            "第0段",
            "第5段",
        ),
    ),
    "ja": Kind(
        page(
            "<article><h1>東京の秋</h1>"
            + "".join(
                f"<p>これは{i}番目の段落です。東京の秋の景色と人々の生活について書かれています。</p>" for i in range(6)
            )
            + "</article>",
            lang="ja",
        ),
        has=(
            "0番目",
            "5番目",
        ),
    ),
    "ar": Kind(
        page(
            "<article dir=rtl><h1>تقرير المبيعات</h1>"
            + "".join(
                f"<p>هذه هي الفقرة رقم {i} وهي تتحدث عن المبيعات في المدينة خلال هذا العام.</p>" for i in range(6)
            )
            + "</article>",
            lang="ar",
        ),
        has=(
            "رقم 0",
            "رقم 5",
            "تقرير المبيعات",
        ),
    ),
    "hidden": Kind(
        page(
            "<article><h1>Opinion</h1>" + "".join(SENTENCE % i for i in range(5)) + HIDDEN + "</article>",
            head="<style>.vh{display:none}</style>",
        ),
        has=("Sentence number 4",),
        lacks=(
            "EVILNONE",
            "EVILZERO",
            "EVILHID",
            "EVILARIA",
            "EVILOFF",
            "EVILCOMMENT",
            "EVILTPL",
            "EVILWHITE",
            "EVILTINY",
            "EVILCLASS",
        ),
    ),
    "entities": Kind(
        page(
            "<p>Use &amp;lt;b&amp;gt; for &lt;b&gt; and AT&amp;T; 5 &lt; 6 * 7 * 8 and snake_case_name. "
            + "More text to make this long enough for all. " * 6
            + "</p><p>x<sup>2</sup> + H<sub>2</sub>O</p>"
        ),
        has=(
            "AT&T",
            "snake_case_name",
            "5 < 6",
        ),
    ),
    "equal-paras": Kind(
        page(
            "".join("<p>Same paragraph over and over, with some words in it.</p>" for _ in range(300))
            + "<p>The very last line LASTLINE.</p>"
        ),
        has=("LASTLINE",),
    ),
    "spa": Kind(
        "<!doctype html><html><head><title>App</title></head><body><div id=root></div><script src=/app.js></script></body></html>",
        scripted=True,
    ),
    "spa-noscript": Kind(
        "<!doctype html><html><head><title>App</title></head><body><noscript>You need to enable JavaScript to run this app.</noscript><div id=root><div class=spinner>Loading...</div></div></body></html>",
        scripted=True,
    ),
    "huge": Kind(
        page(
            "<h1>Huge</h1>"
            + "".join(
                f"<h2>Part {i}</h2>{SENTENCE % i}<table><tr><td>k{i}</td><td>{i}</td></tr></table>" for i in range(1500)
            )
        ),
        has=(
            "Sentence number 0",
            "Sentence number 700",
            "Sentence number 1499",
        ),
    ),
    "deep": Kind(
        "<html><body>"
        + "<div>" * 3000
        + "<p>DEEPTEXT is here in the middle of it all.</p>"
        + "</div>" * 3000
        + "</body></html>",
        has=("DEEPTEXT",),
    ),
    "broken": Kind(
        "<html><body><div><p>One unclosed <b>bold <p>Two <table><tr><td>cell A<td>cell B<tr><td>cell C<td>cell D</table><p>Three after the table, with a good many words to it",
        has=(
            "One unclosed",
            "Three after",
        ),
        rows=(("cell C", "cell D"),),
    ),
    "fragment-list": Kind(
        page(
            "<h1>Events</h1><ul class='events'>"
            + "".join(
                f"<li><span class=d>{i} May</span> <a href='/e{i}'>Concert {i}</a> <span>Hall {i}</span></li>"
                for i in range(1, 9)
            )
            + "</ul>"
        ),
        has=(
            "Concert 1",
            "8 May",
            "Hall 8",
            "/e8",
        ),
    ),
}
WANTED = 0.96


def wrong(kind: Kind, text: str, *, scripted: bool) -> list[str]:
    plain, junk = text.replace("\\", ""), JUNK if "COOKIEJUNK" in kind.html else ()
    found = [f"lacks {each!r}" for each in kind.has if each not in plain]
    found += [f"has {each!r}" for each in (*kind.lacks, *junk) if each in plain]
    for row in kind.rows:
        pattern = r"\|\s*" + r"\s*\|\s*".join(map(re.escape, row)) + r"\s*\|"
        found += [] if re.search(pattern, plain.replace("**", "")) else [f"lacks the row {row}"]
    found += [f"nothing matches {each}" for each in kind.matches if not re.search(each, text)]
    return found + (["does not say that it needs scripts"] if kind.scripted and not scripted else [])


def checks(kind: Kind) -> int:
    junk = JUNK if "COOKIEJUNK" in kind.html else ()
    return len((*kind.has, *kind.lacks, *junk, *kind.rows, *kind.matches)) + kind.scripted


async def test_pages_of_all_kinds_are_read(converters: Converters) -> None:
    missed: dict[str, list[str]] = {}
    for name, kind in KINDS.items():
        read = await converters.page(kind.html.encode(), "u", url="https://example.org/dir/page")
        text = "\n".join([read.title, *map(str, read.head), read.text])
        if found := wrong(kind, text, scripted=read.scripted):
            missed[name] = found
    every = sum(map(checks, KINDS.values()))
    right = 1 - sum(map(len, missed.values())) / every
    print(f"pages: {right:.1%} of {every} in {len(KINDS)} kinds; missed: {missed}")
    assert len(KINDS) >= 34 and every >= 295
    assert right >= WANTED, missed
