import math
import time

import pytest
from helpers.refusals import naming

from mpi_compress.core.expressions import bits, evaluate, names_in, seconds

NAMES = {"L": 4.0, "L_max": 5.0, "mu": 0.5, "n": 20.0, "d": 5000.0, "N": 6000.0}


@pytest.mark.parametrize(("text", "value"), [
    ("1/L", 0.25), ("1e-4 L", 4e-4), ("1e-4*L", 4e-4), ("2/(L + mu)", 2 / 4.5), (".5 L", 2.0), ("2 (L + 1)", 10.0),
    ("-L**2", -16.0), ("sqrt(L)/log(exp(1))", 2.0), ("min(1, L, 3)", 1.0), ("1/N", 1 / 6000), ("3", 3.0), (0.7, 0.7), (2, 2.0),
])  # fmt: skip
def test_formulas_have_the_value_that_they_read_as(text, value):
    assert evaluate(text, NAMES) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(("text", "complaint"), [
    ("1/(L-4)", "with L = 4"), ("Lmax", "Lmax"), ("1/", "cannot be read"), ("", "''"),
    ("__import__('os')", "not allowed"), ("L.real", "not allowed"), ("[1][0]", "not allowed"), ("open(L)", "not allowed"),
    ("(-L)**0.5", "not a real number"), ("2 * (-L)**0.5", "not a real number"), ("min()", "'min()'"), ("sqrt(1, 2)", "sqrt(1, 2)"),
    ("max(3)", "max(3)"), ("exp(1e9)", "too large"), ("'1'", "not allowed"), ("True", "not allowed"),
    ("10.0**400", "too large"), ("lambda: 1", "not allowed"),
])  # fmt: skip
def test_what_is_no_formula_is_refused_with_the_reason(text, complaint):
    with pytest.raises(ValueError, match=naming(complaint)):
        evaluate(text, NAMES)


@pytest.mark.parametrize(("text", "complaint"), [
    ("1" + "0" * 400, "too large a number"), ("-" * 3000 + "1", "3001 characters"), ("7" * 30_000, "30000 characters"),
    ("-" * 60 + "1", "more than 50 levels"), ("(" * 400 + "1" + ")" * 400, "read"), ("+".join("1" * 300), "50 levels"),
    ("-" * 999 + "1", "50 levels"),
])  # fmt: skip
def test_long_and_deep_formulas_are_refused_at_once_in_one_line(text, complaint):
    begun = time.process_time()
    with pytest.raises(ValueError, match=naming(complaint)):
        evaluate(text, NAMES)
    assert time.process_time() - begun < 1
    if complaint != "too large a number":
        with pytest.raises(ValueError, match=naming(complaint)):
            names_in(text)


def test_a_formula_needs_the_names_in_it_that_are_no_functions():
    assert names_in("2/(L_max + mu) + sqrt(n)") == {"L_max", "mu", "n"}
    assert names_in(0.1) == set()


@pytest.mark.parametrize(("size", "value"), [("576 B", 4608), ("54 bits", 54), ("1.5 kB", 12000), ("1 KiB", 8192), ("1 MiB", 8 * 2**20), ("1 GB", 8e9), ("3 MB", 24e6), (3.5, 3.5)])
def test_sizes_are_in_bits(size, value):
    assert bits(size) == value


@pytest.mark.parametrize("size", ["12", "12 apples", "B", "-1 B", -1.0, math.inf, math.nan, "1e B"])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(ValueError, match="size"):
        bits(size)


@pytest.mark.parametrize(
    ("time", "value"),
    [(3, 3.0), ("3", 3.0), ("2 ms", 2e-3), ("5 min", 300.0), ("1.5 h", 5400.0), ("01:30:00", 5400.0), ("0:02:03", 123.0), (" 1-02:03:04 ", 93784.0), ("0:120:00", 7200.0)],
)
def test_times_are_in_seconds(time, value):
    assert seconds(time) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("time", ["soon", "1:2:3", "1:30", "5 fortnights", "-", "1--02:03:04", ""])
def test_what_is_no_time_is_refused(time):
    with pytest.raises(ValueError, match="time"):
        seconds(time)
