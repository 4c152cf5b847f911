"""Tables as text."""

import csv
import re
import shutil
import subprocess

import pytest

from mpi_compress.core.tables import comma_separated, html, latex, markdown, plain

HEADS, ROWS = ["method", "loss ≤ 0.4"], [["50 % | x_1", "1"], ["a", "22"]]


def test_columns_of_a_terminal_are_as_wide_as_their_widest_cell():
    assert plain(HEADS, ROWS) == ["method      loss ≤ 0.4", "50 % | x_1  1", "a           22"]
    assert plain((), ROWS, "lr", (12,), "> ") == ["> 50 % | x_1     1", "> a             22"]
    assert plain((), [["a", "b", "c"], ["x1x", "y1y", "z1z"]], "rc") == ["  a   b    c", "x1x  y1y  z1z"]
    assert plain((), []) == []


def test_a_cell_cannot_break_the_table_that_it_stands_in():
    assert markdown(HEADS, [["50 % | x_1", "two\nlines"]], "c") == "c\n\n| method | loss ≤ 0.4 |\n| --- | --- |\n| 50 % \\| x_1 | two lines |\n"
    assert r"50 \% $|$ x\_1 & 1 \\" in latex(HEADS, ROWS).splitlines()
    assert list(csv.reader(comma_separated(HEADS, [['a "quoted", cell', "1"]]).splitlines()))[1] == ['a "quoted", cell', "1"]
    assert html(HEADS, [["<b>", "1"]]) == "<table><tr><th>method</th><th>loss ≤ 0.4</th></tr><tr><td>&lt;b&gt;</td><td>1</td></tr></table>"


def test_a_cell_of_csv_is_no_formula_and_numbers_stay_numbers():
    cells = ["=1+2", "+cmd", "-x", "@SUM(A1)", "\t=1", "-1.5", "+2e-3", "-inf", "a-b", "−1", ""]
    assert next(csv.reader([comma_separated(cells, [])])) == ["'=1+2", "'+cmd", "'-x", "'@SUM(A1)", r"'\t=1", *cells[5:]]


def test_without_heads_the_first_cell_of_a_row_of_html_is_its_head():
    assert html((), [["loss", "1"]], "a & b") == "<table><caption>a &amp; b</caption><tr><th>loss</th><td>1</td></tr></table>"


NASTY = [
    "50 %", "x_1", "#3", "a & b", "~tilde", "x^2", "a\\b", "{", "}", "}{", "$5", "$<5", "$$", "\\$<", "‖∇f(x)‖² ≤ 10⁻⁵", "f*", "x*²", "f(x) − f*", "‖x − x*‖²",
    "[CAT]", "*", "* [x]", "  [y]", "%", "\\", "\\\\", "^_^", "<|>", "two\nlines", "two\n\nparagraphs", "a\tb", "µ = 10⁻³ L", "δ, ω, λ₁₂ → ∞", "T ≥ ⌈log₂ d⌉ · ½", "größe", "",
    "≤≥", "⁻⁻", "²₁", "f*f*", "x*x", "-- ---", "–…×", "`'\"",
]  # fmt: skip


STACKED = re.compile(r"\\begin\{tabular\}\[[bt]\]\{@\{\}r@\{\}\}(.*?)\\\\(.*?)\\end\{tabular\}")  # two lines of a cell


def cells_of(line):
    """The cells of a line of a tabular as LaTeX takes it apart; AssertionError where LaTeX would stop."""
    assert line.endswith(r" \\")
    line = STACKED.sub(r"\1 \2", line)
    assert not re.match(r"\s*[\[*]", line), "the command before takes it for its option"
    body, cells, depth, in_math, before = line.removesuffix(r"\\"), [""], 0, False, ""
    for token in re.findall(r"\\(?:[A-Za-z]+|.)|.", body):
        if token in ("{", "}"):
            depth += 1 if token == "{" else -1
            assert depth >= 0
        elif token == "$":
            in_math = not in_math
            assert depth == 0 and before != "$"  # noqa: PT018
        elif token in "^_":
            assert in_math
        elif token == "&":
            assert depth == 0 and not in_math  # noqa: PT018
            cells.append("")
        assert token not in ("%", "#", "~", r"\\")
        assert in_math or token not in (r"\le", r"\nabla", r"\delta")
        cells[-1] += token
        before = token
    assert depth == 0
    assert not in_math
    assert not re.search(r"\^(?:\{[^{}]*\}|.)\^|\^\*\^", body), "a double superscript"
    return [cell.strip() for cell in cells]


@pytest.mark.parametrize("nasty", NASTY)
def test_latex_takes_a_table_of_nasty_labels_apart_as_it_was_put_together(nasty):
    table = latex([nasty, "loss ≤ 0.4", nasty], [[nasty, "1", nasty], ["a", nasty, ""]], f"of {nasty}\nand more", [nasty])
    package, first, caption, letters, begin, top, head, middle, *rows, bottom, end, below, note, last, empty = table.split("\n")
    assert package.startswith("%")
    assert caption.startswith(r"\caption{Of ")
    assert caption.endswith("}")
    assert (first, begin, top, middle, bottom, end, last, empty) == (
        r"\begin{table}", r"\begin{tabularx}{\columnwidth}{@{}>{\raggedright\arraybackslash}Xrr@{}}", r"\toprule", r"\midrule",
        r"\bottomrule", r"\end{tabularx}\par", r"\end{table}", "",
    )  # fmt: skip
    assert (letters, below) == (r"\footnotesize\parindent=0pt\tabcolsep=3pt", r"\smallskip\raggedright")
    assert [len(cells_of(line)) for line in (head, *rows)] == [3, 3, 3]
    assert note.endswith(r"\par")
    (inner,) = cells_of("{}" + note.removesuffix(r"\par") + r" \\")
    assert set(re.findall(r"[^\x00-\x7f]", table)) <= set("½öß"), "what pdfTeX has no sign for"
    assert (inner.replace("{}", "") == "") == (nasty.strip() == "")


SIGNS = ("‖∇f(x)‖² ≤ 10⁻⁵", "x*²", "f(x) − f* ≤ 2.5×10⁻⁴", "cost $5⁻¹", "$<5", "[a] * b", "δ ≤ λ₁")


def test_signs_of_tables_in_latex():
    said = {text: latex([text], []).splitlines()[6].removesuffix(r" \\") for text in SIGNS}
    assert said == {
        "‖∇f(x)‖² ≤ 10⁻⁵": r"$\|\nabla f(x)\|^{2} \le 10^{-5}$",
        "x*²": r"${x^*}^{2}$",
        "f(x) − f* ≤ 2.5×10⁻⁴": r"$f(x) - {f^*} \le$ 2.5$\times10^{-4}$",
        "cost $5⁻¹": r"cost \$$5^{-1}$",
        "$<5": r"\$$<$5",
        "[a] * b": r"{}[a] * b",
        "δ ≤ λ₁": r"$\delta \le \lambda_{1}$",
    }


LONG = [[f"({i}) MARINA, QSGD of {i} levels, max norm, entropy codec", "4096 theory", "1.24 Mbit (1.01 … 1.28)", "999 kbit (998 … 999) ¹"] for i in range(12)]


def test_a_table_whose_labels_have_no_room_in_a_column_is_as_wide_as_the_page():
    heads = ["method", "tuned step", "‖∇f(x)‖² ≤ 0.1", "≤ 10⁻³"]
    widths = {n: latex(heads[:n], [row[:n] for row in LONG], "c").splitlines() for n in (2, 3, 4)}
    for n, star, width in ((2, "", r"{\columnwidth}"), (3, "", r"{\columnwidth}"), (4, "*", r"{\textwidth}")):
        assert (widths[n][1], widths[n][-1]) == (rf"\begin{{table{star}}}", rf"\end{{table{star}}}")
        assert widths[n][4].startswith(rf"\begin{{tabularx}}{width}")
    (word,) = (line for line in latex(heads, [["a" * 18, *LONG[0][1:]]]).splitlines() if "begin{table" in line)
    assert word == r"\begin{table*}", "a word has no room, either"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="not installed: pdflatex (Debian: texlive-latex-recommended)")
def test_a_document_of_such_tables_is_compiled_without_an_error_or_a_warning(tmp_path):
    tables = [latex([nasty, "loss ≤ 0.4"], [[nasty, "1"], ["a", nasty]], f"of {nasty}", [nasty]) for nasty in NASTY]
    heads = ["method", "tuned step", "‖∇f(x)‖² ≤ 0.1", "≤ 10⁻³", "≤ 10⁻⁶"]
    numbers = ["1.24 Mbit (1.01 … 1.28)", "999 kbit (998 … 999) ¹", "not reached ²"]
    tables.append(latex(heads, [["MARINA with a long label", "4096 theory", *numbers]] * 2, "c", ["² not reached in 704 kbit" * 5], 2, "to 0.1_%"))
    assert r"\label{tab:to-0-1-}" in tables[-1]
    tables += [latex(heads[:n], [row[:n] for row in LONG], "c", ["¹ reached by 2 of 5 seeds"] * 9, 2) for n in (2, 3, 4)]
    begin = r"\documentclass[twocolumn]{article}\usepackage[T1]{fontenc}\usepackage{lmodern,booktabs,tabularx}\textwidth=6.9in\columnsep=0.3in\begin{document}"
    document = begin + "\n\\clearpage\n".join(tables) + r"\end{document}"
    (tmp_path / "document.tex").write_text(document, encoding="utf-8")
    line = ["pdflatex", "-interaction=nonstopmode", "document.tex"]
    for _ in range(2):  # the second time labels are known
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert [text for text in done.stdout.splitlines() if text.startswith("!") or "Warning" in text or "Overfull" in text] == []
    assert (done.returncode, (tmp_path / "document.pdf").exists()) == (0, True)
