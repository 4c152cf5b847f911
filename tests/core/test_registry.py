"""Parts: what is declared stays as it is, and a bound part knows more."""

from dataclasses import FrozenInstanceError, dataclass, replace
from functools import cached_property

import pytest

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
