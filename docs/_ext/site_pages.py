"""Show flowcharts as text, long tables as downloads, and members that are our own."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

HOOKS = tomllib.loads((Path(__file__).parents[1] / "hooks.toml").read_text("utf-8"))["hooks"]
LONGEST = 14  # lines of a table that is shown; longer ones are files
TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def long_tables_as_files(app: Sphinx, name: str, source: list[str]) -> None:
    """Write the long tables of the generated page of results as CSV, and link to them."""
    if name != "results":
        return
    folder = Path(app.outdir) / "_static" / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    used: dict[str, int] = {}

    def shown(match: re.Match[str]) -> str:
        lines = match[0].splitlines()
        if len(lines) - 2 <= LONGEST:
            return match[0]
        title = HEADING.findall(source[0][: match.start()])[-1]
        stem = re.sub(r"\W+", "-", title.lower()).strip("-")
        used[stem] = used.get(stem, 0) + 1
        file = folder / f"{stem}{used[stem] if used[stem] > 1 else ''}.csv"
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        with file.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([cells[0], *cells[2:]])
        address = f"_static/tables/{file.name}"
        return (
            f"{len(lines) - 2} rows: "
            f'<a class="reference download" href="{address}" download>{file.name}</a>\n'
        )

    source[0] = TABLE.sub(shown, source[0])


def inherited_elsewhere(
    app: Sphinx, what: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out members that scikit-learn and the standard library document themselves."""
    del app, what, options
    if name in HOOKS:
        return True
    module = getattr(member, "__module__", None) or "expecta"
    return None if module.split(".")[0] == "expecta" else True


def setup(app: Sphinx) -> dict[str, bool]:
    """Register them."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("autodoc-skip-member", inherited_elsewhere)
    app.connect("source-read", long_tables_as_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
