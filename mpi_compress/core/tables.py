"""Tables of texts for a terminal, Markdown, LaTeX, CSV and HTML: heads, and rows that have as many cells."""

import csv
import io
import os
import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import chain, zip_longest
from typing import TextIO
from urllib.parse import quote

from mpi_compress.core.terminal import BOLD, LEAST, coloured, printable, room, shortened, wrapped

Rows = Sequence[Sequence[str]]

_SIGNS = """≤=le ≥=ge µ=mu ×=times ‖=| ·=cdot ∞=infty →=to ≈=approx ±=pm √=surd ∂=partial ⌈=lceil ⌉=rceil ℓ=ell ∈=in ≠=ne α=alpha
β=beta γ=gamma δ=delta ε=epsilon ζ=zeta η=eta θ=theta ι=iota κ=kappa λ=lambda μ=mu ν=nu ξ=xi π=pi ρ=rho σ=sigma τ=tau υ=upsilon
φ=phi χ=chi ψ=psi ω=omega Γ=Gamma Δ=Delta Θ=Theta Λ=Lambda Ξ=Xi Π=Pi Σ=Sigma Φ=Phi Ψ=Psi Ω=Omega"""
_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "…": r"\dots{}", "–": "--", "−": "$-$",
    "∇": r"$\nabla $",
    **{sign: rf"\{sign}" for sign in "{}$&#%_"},
    **{sign: f"${sign}$" for sign in "<>|"},
    **{sign: rf"$\{name}$" for sign, name in (pair.split("=") for pair in _SIGNS.split())},
})  # fmt: skip
RAISED, LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "₀₁₂₃₄₅₆₇₈₉₋"
_IN_MATH = re.compile(rf"(f\(x\)|\b[fx]\*|[{RAISED}]+|[{LOWERED}]+)")
_MARKDOWN = re.compile(r"[\\`*\[\]<>|~&$]|(?<!\w)_|_(?!\w)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*(e[+-]?\d+)?|inf|nan)")
_COLUMN = 56  # letters of a footnote in a paper's column of 3.3 inches
_LABEL = 28  # letters that a label may have before columns are left out for it
_RANGE = re.compile(r" \([^()]* … [^()]*\)")
_NUMBERED = r"[≥<−-]?\d[\d.,]*(e[+-]?\d+)?( ?\S{1,6}| of [\d,]+)?( \(.*\))?"  # a number, its unit, and its range
_AMOUNT = re.compile(rf"({_NUMBERED}|not reached)( [{RAISED}]+)?")  # with its note
_SECOND_LINE = re.compile(r" (?=[≤≥] \S+$|\([^()]*–[^()]*\))")  # what stands before a level or a range
_ALIGNED: dict[str, Callable[[str, int], str]] = {"l": str.ljust, "r": str.rjust, "c": str.center}


def plain(heads: Sequence[str], rows: Rows, aligned: str = "l", widths: Sequence[int] = (), indent: str = "") -> list[str]:
    """Lines for a terminal, whose columns are two spaces apart.

    Args:
        heads: none: the rows stand alone.
        aligned: a letter for each column, l, r or c; the last one holds for all further columns.
        widths: the least widths of the first columns.
    """
    whole = [list(map(printable, row)) for row in (*([heads] if heads else []), *rows)]
    found = [max(map(len, column)) for column in zip(*whole, strict=True)]
    least = [max(pair) for pair in zip_longest(found, widths[: len(found)], fillvalue=0)]
    columns = [(_ALIGNED[letter], n) for letter, n in zip(aligned.ljust(len(found), aligned[-1]), least, strict=False)]
    return [indent + "  ".join(put(cell, n) for cell, (put, n) in zip(row, columns, strict=True)).rstrip() for row in whole]


def shown(stream: TextIO, heads: Sequence[str], rows: Rows, less_needed: Sequence[str] = (), aligned: str = "l") -> list[str]:
    """The lines of `plain` as they fit into a stream's width, with bold heads where it has colours. If they are too wide, it
    takes away in turn what all cells of a column begin with; columns with `less_needed` heads, those without a value first, and
    ranges, as a last line says; and the middle of texts, but never of a number."""
    columns: list[Sequence[str]] = [*zip(*(map(printable, row) for row in (heads, *rows)), strict=True)]
    letter_of = {cells[0]: letter for cells, letter in zip(columns, aligned.ljust(len(columns), aligned[-1]), strict=False)}
    left_out, letters = [], room(stream)
    if letters is not None and _size(columns) > letters:
        columns = [*map(_without_common, columns)]
        unknown = [cells[0] for cells in columns if set(cells[1:]) == {"–"}]
        for head in sorted(less_needed, key=lambda head: head not in unknown):
            if _size(columns, _LABEL) > letters or _merges(columns, letters):
                left_out.append(head)
                columns = [cells for cells in columns if cells[0] != head]
        without_ranges = [columns[0], *([_RANGE.sub("", cell) for cell in cells] for cells in columns[1:])]
        if _size(columns, _LABEL) > letters and _size(without_ranges) < _size(columns):
            left_out, columns = [*left_out, "ranges"], without_ranges
    drawn = columns if letters is None else _shortened(columns, letters)
    first, *others = zip(*drawn, strict=True)
    line, *lines = plain(first, others, "".join(letter_of[cells[0]] for cells in columns))
    if left_out:
        lines += wrapped(f"left out for width: {', '.join(left_out)}; a wider terminal or `| cat` shows them", letters).splitlines()
    return [coloured(line, BOLD, stream), *lines]


def _size(columns: Sequence[Sequence[str]], most: int = 10**9) -> int:
    """The letters of a line, if a cell has at most so many."""
    return sum(min(max(map(len, cells)), most) + 2 for cells in columns) - 2


def _merges(columns: Sequence[Sequence[str]], letters: int) -> bool:
    """True if different cells of a column would be the same once they are shortened."""
    return any(len({*short}) < len({*cells}) for short, cells in zip(_shortened(columns, letters), columns, strict=True))


def _without_common(column: Sequence[str]) -> Sequence[str]:
    """A head and its cells without the words that several cells begin with, if these are some words."""
    head, *cells = column
    n = os.path.commonprefix(cells).rfind(", ") + 2 if len(cells) > 1 else 0  # noqa: RUF071
    return (head, *(f"…{cell[n:]}" for cell in cells)) if n > 2 else column


def _shortened(columns: Sequence[Sequence[str]], letters: int) -> list[list[str]]:
    """Columns in so many letters or as few as their numbers need, the widest ones shortened."""
    most = [max(map(len, cells)) for cells in columns]
    least = [max([LEAST, *(len(cell) for cell in cells if _AMOUNT.fullmatch(cell))]) for cells in columns]
    while sum(most) + 2 * (len(most) - 1) > letters and (can := [i for i, size in enumerate(most) if size > least[i]]):
        most[max(can, key=most.__getitem__)] -= 1
    return [[shortened(cell, size) for cell in cells] for cells, size in zip(columns, most, strict=True)]


class Markup(str):
    """A cell that is Markdown already."""


def in_markdown(text: str) -> str:
    """A text in one line with what has a meaning in Markdown escaped, HTML included."""
    return text.replace("|", r"\|") if isinstance(text, Markup) else _MARKDOWN.sub(r"\\\g<0>", _in_one_line(text))


def link(text: str, to: str) -> Markup:
    """A link of Markdown."""
    return Markup(f"[{in_markdown(text)}]({quote(to, safe='/:#')})")


def _in_one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def markdown(heads: Sequence[str], rows: Rows, caption: str = "", texts: int | None = None) -> str:
    """A table of Markdown under its caption. The columns after the first `texts` stand to the right; None: none does."""
    rules = [Markup("---" if texts is None or i < texts else "---:") for i in range(len(heads))]
    lines = [" | ".join(map(in_markdown, row)) for row in (heads, rules, *rows)]
    return (f"{in_markdown(caption)}\n\n" if caption else "") + "".join(f"| {line} |\n" for line in lines)


def latex(heads: Sequence[str], rows: Rows, caption: str = "", notes: Sequence[str] = (), texts: int = 1, label: str = "") -> str:
    r"""A floating table of LaTeX as wide as its column, or as the page where a first cell would have more than three lines, or no
    room for a word, with its caption and the `label` tab:…, in the letters of a footnote, with the rules of booktabs: its first
    line names the packages. The first column breaks its lines, and the first `texts` columns stand to the left. Ranges, and levels
    in heads, have a second line, "not reached" is a dash, and `notes` stand below the table."""
    table = [[[_in_one_line(first)], *map(_lines, others)] for first, *others in (heads, *rows)]
    firsts, *others = zip(*table, strict=True)
    room = _COLUMN - sum(2 + max(map(len, chain(*column))) for column in others)
    is_wide = any(max(len(first) / 3, *map(len, re.split("[ -]", first))) > room for (first,) in firsts)
    star, width = ("*", r"\textwidth") if is_wide else ("", r"\columnwidth")
    lines = [" & ".join(_stacked(cell, "t" if i else "b") for cell in row) for i, row in enumerate(table)]
    head, *body = (f"{_not_as_option(line)} \\\\\n" for line in lines)
    columns = rf"@{{}}>{{\raggedright\arraybackslash}}X{'l' * (texts - 1)}{'r' * (len(heads) - texts)}@{{}}"
    named = rf"\label{{tab:{re.sub('[^A-Za-z0-9]+', '-', label)}}}" if label else ""
    caption = _in_latex(caption[:1].upper() + caption[1:])
    below = "".join(f"{_not_as_option(_in_latex(note))}\\par\n" for note in notes)
    below = below and f"\\smallskip\\raggedright\n{below}"
    return rf"""% \usepackage{{booktabs,tabularx}}
\begin{{table{star}}}
\caption{{{caption}}}{named}
\footnotesize\parindent=0pt\tabcolsep=3pt
\begin{{tabularx}}{{{width}}}{{{columns}}}
\toprule
{head}\midrule
{"".join(body)}\bottomrule
\end{{tabularx}}\par
{below}\end{{table{star}}}
"""


def _lines(cell: str) -> list[str]:
    """A cell, whose range, or whose level, stands in a second line."""
    return _SECOND_LINE.split(_in_one_line(cell).replace("not reached", "–").replace(" … ", "–"), maxsplit=1)


def _stacked(lines: Sequence[str], aligned: str) -> str:
    """A cell of these lines; the line of the row is the top or the bottom one."""
    stacked = r"\\".join(map(_in_latex, lines))
    return stacked if len(lines) == 1 else rf"\begin{{tabular}}[{aligned}]{{@{{}}r@{{}}}}{stacked}\end{{tabular}}"


def _not_as_option(line: str) -> str:
    """A line of cells that the command of the line before does not take for its option, as it would a first letter [ or *."""
    return "{}" + line if line.lstrip().startswith(("[", "*")) else line


def _in_latex(text: str) -> str:
    """A text in one line with what has a meaning in LaTeX escaped; signs, f(x), f*, x*, raised and lowered numbers are in math.
    Math beside math is one formula, and so is a raised number with its base."""
    parts = _IN_MATH.split(_in_one_line(text))
    found = [in_math(part) if i % 2 else part.translate(_LATEX) for i, part in enumerate(parts)]
    with_base = re.sub(r"(?<![\w.,])(\d+)\$\^", r"$\1^", "".join(found))
    return re.sub(r"(?<!\\)\$ \$", " ", re.sub(r"(?<!\\)\$\$", "", with_base))


def in_math(part: str) -> str:
    """Raised or lowered digits, x* or f(x) as a formula: "$^{-4}$"."""
    for letters, sign in ((RAISED, "^"), (LOWERED, "_")):
        if part[0] in letters:
            return f"${sign}{{{part.translate(str.maketrans(letters, '0123456789-'))}}}$"
    return f"${{{part[0]}^*}}$" if part.endswith("*") else f"${part}$"


def comma_separated(heads: Sequence[str], rows: Rows, caption: str = "") -> str:
    """CSV, which has no caption."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([map(_as_data, row) for row in (heads, *rows)])
    return out.getvalue()


def _as_data(cell: str) -> str:
    """A cell of CSV that no spreadsheet takes for a formula: an apostrophe stands before = + - @ where they begin no number."""
    is_formula = cell.lstrip().startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(cell)
    return f"'{printable(cell)}" if is_formula else printable(cell)


def html(heads: Sequence[str], rows: Rows, caption: str = "") -> str:
    """A table of HTML. Without heads the first cell of each row is its head."""
    above = (f"<caption>{in_html(caption)}</caption>" if caption else "") + (f"<tr>{_cells('th', heads)}</tr>" if heads else "")
    body = [_cells("td", row) if heads else _cells("th", row[:1]) + _cells("td", row[1:]) for row in rows]
    return f"<table>{above}{''.join(f'<tr>{cells}</tr>' for cells in body)}</table>"


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{in_html(text)}</{tag}>" for text in texts)


def in_html(text: str) -> str:
    """A text with what has a meaning in HTML escaped."""
    return escape(printable(text))


WRITERS = {".md": markdown, ".tex": latex, ".csv": comma_separated}
"""What writes a table, by the ending of its file, each as `markdown` is called."""
