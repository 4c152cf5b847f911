"""Tables as text."""

import csv

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


def test_without_heads_the_first_cell_of_a_row_of_html_is_its_head():
    assert html((), [["loss", "1"]], "a & b") == "<table><caption>a &amp; b</caption><tr><th>loss</th><td>1</td></tr></table>"
