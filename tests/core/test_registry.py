"""Parts: what is declared stays as it is, a bound part knows more, and values of jobs are as fields' types want them."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, make_dataclass, replace
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import AfterValidator, ConfigDict, ValidationError, create_model

from mpi_compress.core import fields
from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import Size
from mpi_compress.core.registry import Part


@dataclass(frozen=True)
class Ramp(Part):
    step: float = 1.0
    links: tuple[str, ...] = ()

    @cached_property
    def doubled(self) -> float:
        return 2 * self.step


def test_a_bound_part_knows_more_and_the_declared_one_stays_as_it_is():
    declared = Ramp(0.5)
    assert declared.doubled == 1.0
    bound = declared.bound_to(step=3.0, outline="4 rows")
    assert (bound.step, bound.outline, declared) == (3.0, "4 rows", Ramp(0.5))
    assert not hasattr(declared, "outline")
    assert bound.links is declared.links


def test_a_bound_part_computes_again_what_follows_from_its_fields():
    declared = Ramp(0.5)
    assert (declared.doubled, declared.bound_to(step=3.0).doubled, declared.doubled) == (1.0, 6.0, 1.0)
    assert declared.bound_to(doubled=7.0).doubled == 7.0


def test_a_bound_part_is_frozen_too_and_can_be_bound_again():
    bound = Ramp(0.5).bound_to(step=3.0)
    with pytest.raises(FrozenInstanceError):
        bound.step = 4.0
    assert bound.bound_to(links=("up",)) == replace(bound, links=("up",)) == Ramp(3.0, ("up",))


TYPES = [
    bool, int, float, str, Any, Path, float | None, int | float, float | str, str | int | None, Literal["a", 16, 1], Literal["a"] | int, list[float],
    list[Any], list[str] | None, dict[str, float], Mapping[str, Any], tuple[float, ...], Size, Size | None, list[Size] | float, Annotated[int, "a note"],
]  # fmt: skip
VALUES = [
    True, False, 0, 1, 16, -3, 10**400, 2**53 + 1, 1.0, 0.5, float("inf"), "a", "b", "3 kB", "1e-3 L", "", None, [], [1, 2.5], [True], ["a", 1], ["1 B"],
    {}, {"a": 1}, {"a": {"b": [1]}}, {1: 2.0}, (1, 2.0),
]  # fmt: skip


def outcome(act):
    """What a conversion gives, with its types, or that it refuses."""
    try:
        return repr(act()["x"])
    except (UserError, ValidationError):
        return "refused"


def of_pydantic(hint):
    """The type whose checks pydantic knows."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Annotated and isinstance(inner[1], fields.Checked):
        return Annotated[inner[0], AfterValidator(inner[1].check)]
    if kind in (Union, UnionType):
        return Union[tuple(map(of_pydantic, inner))]  # noqa: UP007
    return list[of_pydantic(inner[0])] if kind is list else hint


@pytest.mark.parametrize("hint", TYPES, ids=range(len(TYPES)))
def test_a_value_is_converted_as_pydantic_would(hint):
    cls = make_dataclass("Part", [("x", hint)], frozen=True)
    model = create_model("Part", __config__=ConfigDict(strict=True), x=(of_pydantic(hint), ...))
    for value in VALUES:
        given = Path(value) if hint is Path and isinstance(value, str) else value
        given = tuple(value) if get_origin(hint) is tuple and isinstance(value, list) else given
        wanted = outcome(lambda v=given: vars(model.model_validate({"x": v})))
        if hint is TYPES[10] and type(value) in (bool, float):
            wanted = "refused"  # pydantic takes True and 1.0 for 1
        assert outcome(lambda v=value: fields.converted(cls, {"x": v}, "job")) == wanted, value


def test_a_field_without_a_default_is_needed():
    cls = make_dataclass("Part", [("x", float), ("y", float)], frozen=True)
    with pytest.raises(UserError, match=r"job\.y: is missing"):
        fields.converted(cls, {"x": 1.0}, "job")


@pytest.mark.parametrize(("interval", "inside", "outside", "words"), [
    ("(0, 1]", [1e-300, 1, None], [0, -1, 1.1, float("nan"), float("inf")], "above 0 and at most 1"),
    ("[0, 1)", [0.0, 0.99], [1.0, -0.1], "at least 0 and below 1"),
    ("[0, 1]", [0.0, 1.0], [1.5, -0.1], "from 0 to 1"),
    ("(0, inf)", [5e-324, 1e308], [0.0, float("inf"), float("nan")], "above 0"),
    ("[1, inf]", [1.0, float("inf")], [0.99, float("nan")], "at least 1, or inf"),
])  # fmt: skip
def test_a_number_out_of_its_interval_is_refused_from_a_job_and_from_python(interval, inside, outside, words):
    cls = make_dataclass("Mine", [("x", Annotated[float, fields.within(interval)] | None)], bases=(Part,), frozen=True)
    for value in inside:
        assert cls(value).x == fields.converted(cls, {"x": value}, "up")["x"] == value
    for value in outside:
        with pytest.raises(ValueError, match=f"^x = {value!r} was given; it should be {words}$"):
            cls(value)
        with pytest.raises(UserError, match=rf"^up\.x: {value!r} was given; it should be {words}$"):
            fields.converted(cls, {"x": value}, "up")
