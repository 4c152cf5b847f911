"""An error in a user's part is one line, one in the package a traceback."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from mpi_compress.core.blame import SWITCH, place_in_part, text_of
from mpi_compress.core.expressions import evaluate
from mpi_compress.core.registry import checked


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
