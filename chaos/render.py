"""Blocks of a report, as Markdown and as a page."""

import base64
import html

PICTURE = "report.png"
STYLE = """body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}
pre{background:#f6f6f6;padding:.6em;overflow-x:auto}img{max-width:100%}
.bad{color:#d62728}.good{color:#2ca02c}"""


def page(blocks, picture):
    """All blocks as one HTML file, with the picture inside of it."""
    head = f"<!doctype html><meta charset=utf-8><title>chaos bench</title><style>{STYLE}</style>"
    body = "\n".join(_html(block, picture) for block in blocks)
    return f"{head}\n{body}\n"


def markdown(block):
    """A block as text; the picture is a file of its own."""
    kind, *rest = block
    if kind == "table":
        head, rows = rest
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)
    if kind == "pre":
        return f"```\n{rest[0]}\n```"
    if kind == "picture":
        return f"![{rest[0]}]({PICTURE})"
    return {"h1": "# ", "h2": "## ", "p": ""}[kind] + rest[0]


def _cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ")


def _html(block, picture):
    kind, *rest = block
    if kind == "picture":
        data = base64.b64encode(picture).decode()
        return f'<img alt="{html.escape(rest[0])}" src="data:image/png;base64,{data}">'
    if kind != "table":
        return f"<{kind}>{html.escape(rest[0])}</{kind}>"
    head, rows = rest

    def line(cells, tag):
        inner = "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
