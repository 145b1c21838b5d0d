"""Twenty-one texts that are hard to write in the markup of a chat platform."""

from __future__ import annotations

_LONG = "\n\n".join(
    f"Paragraph {i} with **bold {i}** and `code_{i}` and [link {i}](https://e.x/{i}?a=1&b=2).\n\n- item {i}a\n- item {i}b"
    for i in range(100)
)
_CODE = "\n".join(f"x{i} = f('{{{i}}}') # 注释 <{i}>" for i in range(420))
TEXTS = {
    "table": "| Name | Qty |\n|:--|--:|\n| apple | 3 |\n| pear_x | 14 |",
    "table with code and links": "| f | doc |\n|--|--|\n| `a_b(*x)` | [d](https://e.x/a_(b)) |\n| **c** | 5 < 6 & 7 |",
    "wide cjk table": "| 名称 | 数量 |\n|--|--|\n| 苹果（红） | 三 |\n| banana | 14 |",
    "nested lists": "1. one\n   - two\n     1. three\n        - four\n2. five\n\n   para in item\n\n   ```sh\n   ls -l\n   ```",
    "task list": "- [ ] open\n- [x] done *now*",
    "code with backticks": "Use `` a`b `` and\n\n````md\n```py\nx = 1\n```\n````",
    "code html": '```html\n<b>&amp; "x"</b>\n```\nand `<script>`',
    "cjk emphasis": "这是**重点**，还有*斜体*和`代码`。链接：[文档](https://e.x/文档)。",
    "parentheses link": "[w](https://en.wikipedia.org/wiki/Foo_(bar)) and <https://e.x/?a=1&b=2> end",
    "link with pipe and bracket": "[a | b [c]](https://e.x/a|b)",
    "snake and stars": "run my_var_name * 2 ** 3 and __init__.py in ~/x~y and 2*3*4",
    "pings": "hi <!channel> <@U123> @everyone @here <https://evil|click>",
    "headings": "# One *two* `three`\n## Four\ntext\n\n---\n\nend",
    "quote": "> quoted **b**\n> - item\n>\n> more\n\nafter",
    "html": "a <div onclick=x>b</div>\n\n<script>alert(1)</script>\n\n<b>raw</b> 1 < 2 && 3 > 2",
    "javascript link": "[x](javascript:alert(1)) [y](data:text/html,hi) ![img](https://e.x/i.png)",
    "emoji": "👨‍👩‍👧‍👦 " * 300 + "end 🇩🇪",
    "10k": _LONG[:10_000],
    "10k one code block": f"```py\n{_CODE}\n```",
    "10k one paragraph": " ".join(f"word{i} **b{i}**" for i in range(700)),
    "unclosed": "**bold never closed and `code never closed\n\n- list\n```py\nprint(1)",
}
