"""What the keyword agent says and writes."""

HELLO = (
    "Hello! I am a scripted model. I can **plan**, work with files and a shell, and deliver what I made. "
    "Tell me what you need."
)

REASONING = (
    "The person asks for the answer. First I think about what the question means. Then I weigh two ways: "
    "to compute it, or to remember it. Computing takes long. I remember it."
)

PROSE = """## What was found

The data covers *four quarters* and three regions. Sales grew in all of them, but not evenly:

- **North** grew by 12 %, mostly in spring.
- **South** lost a little in autumn and made up for it in winter.
- **West** doubled, from a small beginning.

```python
def growth(before: float, after: float) -> float:
    return (after - before) / before
```

A look at single months shows that the trend is steady. See the table in the report for the numbers.

"""

MARKDOWN = """# Everything Markdown can do

A paragraph with **bold**, *italic*, `code`, ~~struck~~ text and a [link](https://example.com/page).

> A quotation, which may be long enough to need a second line on a narrow screen.

1. First
2. Second
   - nested
   - nested, too

- [x] done
- [ ] to do

| Region | Sales | Growth |
|:-------|------:|:------:|
| North  | 1,200 | 12 %   |
| South  |   800 | −2 %   |
| West   |   400 | 100 %  |

```python
import csv

with open("data.csv") as file:
    total = sum(float(row["sales"]) for row in csv.DictReader(file))
print(f"{total:.2f}")
```

Einstein: $E = mc^2$, and on a line of its own:

$$\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}$$

```mermaid
graph LR
  A[Question] --> B{Plan}
  B --> C[Work]
  C --> D[Report]
```

![remote pictures are not loaded](https://example.com/tracker.png)

The end. 🦌
"""

CJK = "你好！这是一段**中文**回答，带有表情 🎉🦌 和代码 `print('你好')`。日本語も、한국어도 표시됩니다。"

REPORT = """# Sales in spring

Sales grew by about a third.

| Month | Sales |
|-------|------:|
| March | 1,000 |
| April | 1,150 |
| May   | 1,340 |

## Conclusion

The trend holds. The West is to be watched.
"""

SITE = {
    "index.html": """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Deer</title>
<link rel="stylesheet" href="style.css"></head><body><h1>Deer of the north</h1>
<p id="p">No script has run.</p><p><a href="second.html">Second page</a></p>
<script src="app.js"></script></body></html>
""",
    "style.css": "body { font: 18px/1.6 Georgia, serif; max-width: 40rem; margin: 3rem auto; color: #243; background: #f4f7f2 }\n",
    "second.html": """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Second</title>
<link rel="stylesheet" href="style.css"></head><body><h1>The second page</h1><a href="index.html">Back</a></body></html>
""",
    "app.js": "document.getElementById('p').textContent = 'The script ran.';\n",
}

MAKE_FILES = r'''cd /mnt/user-data/outputs && cat > data.csv <<'X'
name,city,sales,"note, with comma"
Anna,Oslo,1200.50,"said ""yes"""
Bo,北京,800,"two
lines"
Cem,İzmir,95,
X
for i in $(seq 1 3000); do echo "Row $i,Town $((i % 17)),$((i * 7 % 1000)),"; done >> data.csv
cat > chart.svg <<'X'
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><rect width="200" height="100" fill="#eef4f1"/>
<rect x="20" y="50" width="30" height="40" fill="#2f7d6b"/><rect x="80" y="30" width="30" height="60" fill="#2f7d6b"/>
<rect x="140" y="10" width="30" height="80" fill="#2f7d6b"/></svg>
X
cat > script.py <<'X'
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print([fib(i) for i in range(10)])
X
echo '{"deer": {"count": 3, "names": ["Rudolf", "Bambi", "Sven"]}, "ok": true}' > facts.json
cat > notebook.ipynb <<'X'
{"nbformat": 4, "nbformat_minor": 5, "metadata": {"language_info": {"name": "python"}}, "cells": [
 {"cell_type": "markdown", "metadata": {}, "source": ["# A notebook\n", "With *text* and code."]},
 {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": ["1 + 1"],
  "outputs": [{"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": ["2"]}}]},
 {"cell_type": "code", "metadata": {}, "execution_count": 2, "source": ["print('hello')\n", "raise ValueError('no')"],
  "outputs": [{"output_type": "stream", "name": "stdout", "text": ["hello\n"]},
   {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["\u001b[31mValueError\u001b[0m: no"]}]}]}
X
python3 - <<'X'
import struct, zlib
w, h = 320, 200
rows = b"".join(b"\0" + bytes(v for x in range(w) for v in (x * 255 // w, y * 255 // h, 140)) for y in range(h))
chunk = lambda k, d: struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
open("picture.png", "wb").write(png)
text = b"BT /F1 24 Tf 72 700 Td (A paper about deer) Tj ET"
objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
  b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
  b"<</Length %d>>stream\n%s\nendstream" % (len(text), text), b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
out, at = b"%PDF-1.4\n", []
for n, o in enumerate(objects, 1):
    at.append(len(out)); out += b"%d 0 obj\n%s\nendobj\n" % (n, o)
xref = len(out)
out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % a for a in at) + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % xref
open("paper.pdf", "wb").write(out)
X
ls -l
'''

HOSTILE_DIAGRAM = """\
```mermaid
%%{init: {"securityLevel": "loose", "themeCSS": "svg { background: url(http://elsewhere.test/theme) }"}}%%
graph LR
  A["<img src=http://elsewhere.test/picture>A"] --> B["<b style='background:url(http://elsewhere.test/style)'>B</b>"]
  B --> C["<a href='http://elsewhere.test/link'>C</a>"]
```

```mermaid
graph LR
  A --> C
  style A fill:url(http://elsewhere.test/fill)
  classDef other background-image:url(http://elsewhere.test/class)
  class C other
```

That is the diagram.
"""

SUMMARY = """## Task and constraints
A report about sales in spring, short, with **one table**.
## Decisions
Growth is given as 34 %, not as "about a third".
## Files and state
`/mnt/user-data/outputs/report.md` holds the report.
## Failed
None
## Open
A chart, if it is wanted."""
