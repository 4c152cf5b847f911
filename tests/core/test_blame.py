"""An error in a user's part is one line, one in the package a traceback."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mpi_compress.core.blame import SWITCH, place_in_part, text_of
from mpi_compress.core.expressions import evaluate
from mpi_compress.core.registry import checked
from mpi_compress.exchange.ranks import Ranks


@dataclass(frozen=True)
class Mine:
    def __post_init__(self):
        raise RuntimeError("broken\non purpose")


class Own:
    name = "own"


def error_of(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def test_a_users_error_names_its_place_in_one_line(monkeypatch):
    error = error_of(lambda: checked(Mine, {}, "mine"))
    line = Mine.__post_init__.__code__.co_firstlineno + 1
    place, source = f"{__file__}, line {line}, in Mine.__post_init__", 'raise RuntimeError("broken\\non purpose")'
    assert text_of(error) == f"RuntimeError: broken on purpose ({place}: {source}); {SWITCH}=1 prints the traceback"
    monkeypatch.setenv(SWITCH, "1")
    assert text_of(error).startswith("Traceback")


def test_an_error_of_the_package_keeps_its_traceback_and_a_user_error_blames_no_part_that_only_stands_by():
    assert text_of(error_of(lambda: evaluate(None, {}))).startswith("Traceback")
    own = Own()
    said = [place_in_part(error_of(call)) for call in (lambda: own and evaluate(None, {}), lambda: own and checked(Mine, {"k": 1}, ""))]
    assert ["perhaps by Own" in each for each in said] == [True, False]


def test_an_object_of_the_standard_library_that_has_a_name_is_no_part():
    place = Path("a")
    assert place_in_part(error_of(lambda: place and evaluate(None, {}))) == ""


ELSEWHERE = "/opt/other/lib/python3/site-packages/theirs.py"  # of an environment that this one takes over


def drawn():
    np.random.default_rng(0).choice(3, p=[2.0, 2.0, 2.0])


def factored():
    np.linalg.cholesky(-np.eye(2))


def of_others():
    exec(compile("raise ValueError", ELSEWHERE, "exec"))


@pytest.mark.parametrize("own", [drawn, factored, of_others])
def test_an_error_inside_of_what_is_installed_names_the_users_last_line(own):
    """NumPy's generators name their lines by numpy/random/_generator.pyx, as it was where NumPy was built."""
    line = own.__code__.co_firstlineno + 1
    assert place_in_part(error_of(lambda: Ranks().on_root(own))).startswith(f" ({__file__}, line {line}, in {own.__name__}: ")
