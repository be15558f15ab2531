"""`make docs`: write the tables of options in the docs from the product's own tables.

A table stands between two lines of comment, `<!-- options: write -->` and `<!-- end -->`.
"""

import re
from pathlib import Path
from typing import Any

from spark_eos._options import READ_OPTIONS, WRITE_OPTIONS
from spark_eos._options.option import Option, Where

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "source.md")
TABLES = {"read": READ_OPTIONS, "write": WRITE_OPTIONS}
FOR = {Where.STREAM: "stream", Where.BATCH: "batch", Where.BOTH: "stream, batch"}
HEAD = ("| option | default | for | meaning |", "|---|---|---|---|")
CLIENT = (
    "| `kafka.*` | | stream, batch | Passed to librdkafka, in its names. The Java client's names"
    " are taken where they mean the same. |"
)


def row(option: Option[Any]) -> str:
    default = option.shown_default
    if default is None:
        shown = str(option.default).lower() if isinstance(option.default, bool) else option.default
        default = "" if shown is None else f"`{shown}`"
    return f"| `{option.name}` | {default} | {FOR[option.where]} | {option.doc} |".replace(
        "|  |", "| |"
    )


def written(page: str) -> str:
    """The page with its tables as they have to be."""

    def table(match: re.Match[str]) -> str:
        rows = [*HEAD, *map(row, TABLES[match[2]]), CLIENT]
        return "\n".join([match[1], *rows, match[3]])

    pattern = r"(<!-- options: (\w+) -->)\n.*?\n(<!-- end -->)"
    return re.sub(pattern, table, page, flags=re.DOTALL)


def main() -> None:
    for page in PAGES:
        page.write_text(written(page.read_text()))


if __name__ == "__main__":
    main()
