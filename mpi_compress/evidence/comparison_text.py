"""Tables as text: for a terminal, as Markdown, LaTeX and CSV."""

import csv
import io
import math
import re
from collections.abc import Sequence

from mpi_compress.evidence.comparison import Comparison

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "≤": r"$\le$", "≥": r"$\ge$", "<": "$<$", ">": "$>$", "|": "$|$",
    "µ": r"$\mu$", "×": r"$\times$", "−": "$-$", "…": r"\dots{}", "–": "--",
}  # fmt: skip


def plain(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, two spaces apart."""
    whole = [list(heads), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in whole]


def markdown(table: Comparison) -> str:
    """A table of Markdown under its caption."""
    rows = [table.heads, ["---"] * len(table.heads), *table.cells]
    return f"{table.caption}\n\n" + "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def latex(table: Comparison) -> str:
    r"""A tabular of LaTeX with the rules of the package booktabs; its first line says so."""
    rows = [" & ".join(map(_escaped, row)) + r" \\" for row in [table.heads, *table.cells]]
    lines = [r"% \usepackage{booktabs}", f"% {table.caption}", rf"\begin{{tabular}}{{l{'r' * len(table.targets)}}}", r"\toprule"]
    return "\n".join([*lines, rows[0], r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}", ""])


def comma_separated(table: Comparison) -> str:
    """CSV, in full precision: for each target the median, the least and the most over seeds, and how many seeds reached it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{table.by} to {t.column}{'>=' if t.rising else '<='}{t.level:g}" for t in table.targets]
    writer.writerow(["method", "seeds", *(f"{head}{what}" for head in heads for what in ("", ", least", ", most", ", seeds"))])
    for method in table.methods:
        cells: list[object] = []
        for cell in method.cells:
            reached = [value for value in cell.took if value < math.inf]
            cells += [
                *(_number(v) for v in (cell.median, min(cell.took, default=math.inf), max(cell.took, default=math.inf))),
                len(reached),
            ]
        writer.writerow([method.label, len(method.runs), *cells])
    return out.getvalue()


def _number(value: float) -> str:
    """A number without loss; nothing where the target is not reached."""
    return "" if math.isinf(value) else f"{value:.0f}" if value.is_integer() else repr(value)


def _escaped(text: str) -> str:
    return re.sub(".", lambda letter: _LATEX.get(letter[0], letter[0]), text)


WRITERS = {".md": markdown, ".tex": latex, ".csv": comma_separated}
"""What writes a table, by the ending of its file."""
