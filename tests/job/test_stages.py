"""The stages of [tune], on curves that are made up: what is played next, for how long, and which value wins."""

import math

import pytest

from mpi_compress.job.trials import FURTHEST, NEVER, WHOLE, Rank, answer, rank_of, stages_of, wanted


def searched(count, rank, is_ordered=True):
    """Play what is wanted until nothing is: the trials by place and share, and the answer."""
    played = {}
    while places := wanted(count, is_ordered, played):
        assert not set(places) & set(played), "no trial is played twice"
        played |= {(place, share): rank(place, share) for place, share in places}
    return played, answer(count, is_ordered, played)


def bowl(best, level=0.0):
    """Ranks of values whose cost to the target grows with the distance from the best one, and that need much of a run to get there."""

    def rank(place, share):
        took = 100.0 * 1.5 ** abs(place - best)
        return Rank(False, took, level) if took <= 1000 * share else Rank(True, 0.0, took / share)

    return rank


def test_every_stage_plays_half_as_many_values_for_twice_as_long_and_the_last_three_are_whole():
    assert stages_of(13) == [(1 / 8, 13), (1 / 4, 7), (1 / 2, 4), (1.0, 3)]
    assert stages_of(6) == [(1 / 2, 6), (1.0, 3)]
    assert stages_of(3) == [(1.0, 3)]
    assert stages_of(2) == [(1.0, 2)]
    assert stages_of(19)[0] == (1 / 8, 19)
    assert [stage.values for stage in stages_of(64)] == [64, 32, 16, 3]


@pytest.mark.parametrize("count", [2, 3, 5, 13, 19])
def test_the_best_value_of_a_bowl_is_found_wherever_it_lies_in_the_grid_or_near_it(count):
    for best in range(-5, count + 5):
        _, found = searched(count, bowl(best))
        assert found.place == best
        assert found.settled


def test_few_values_are_played_whole():
    played, found = searched(19, bowl(8))
    whole = [place for place, share in played if share == WHOLE]
    assert len(whole) <= 5
    assert {found.place - 1, found.place, found.place + 1} <= set(whole)
    assert sum(share for _, share in played) < 19 / 1.5, "the whole grid would be 19"


def test_what_is_best_after_an_eighth_of_the_run_and_worst_at_its_end_does_not_win():
    """The larger a step the lower it comes at first, and the earlier it stays where it is."""

    def rank(place, share):
        floor = 10.0 ** (place - 8) if place > 5 else 0.0
        now = max(floor, math.exp(-(2.0**place) * share))
        return Rank(False, 10 * 0.5**place, now) if now <= 1e-4 else Rank(True, 0.0, now)

    _, found = searched(13, rank)
    exhaustive = min((rank(place, WHOLE), place) for place in range(13))[1]
    assert found.place == exhaustive
    assert found.settled


def test_a_best_value_that_no_place_within_reach_ends_is_not_settled():
    played, found = searched(5, lambda place, share: Rank(True, 0.0, 100.0 - place))
    assert found.place == 4 + FURTHEST
    assert not found.settled
    assert max(place for place, _ in played) == found.place


def test_a_value_without_order_has_no_neighbours():
    played, found = searched(4, bowl(3), is_ordered=False)
    assert (found.place, found.settled) == (3, True)
    assert all(0 <= place < 4 for place, _ in played)


def test_values_that_end_badly_do_not_go_on_and_close_the_grid():
    played, found = searched(13, lambda place, share: NEVER if place > 6 else Rank(True, 0.0, 10.0 - place))
    assert found.place == 6
    assert found.settled
    assert not [place for place, share in played if place > 6 and share > 1 / 8]
    assert searched(13, lambda place, share: NEVER)[1] is None


def test_a_neighbour_that_reached_the_target_in_a_short_trial_later_is_not_played_again():
    """What it paid is the same in the whole run."""

    def rank(place, share):
        return Rank(False, 10.0 + abs(place - 6), 0.0)

    played, found = searched(13, rank)
    assert (found.place, found.settled) == (6, True)
    assert {place for place, share in played if share == WHOLE} == {5, 6, 7}


def test_a_value_that_all_seeds_bring_to_the_target_is_better_than_one_that_comes_nearer_with_most():
    inf = math.inf
    all_seeds, some, none, fewer = (
        rank_of([30.0, 10.0, 50.0], [0.1, 0.1, 0.1]), rank_of([1.0, 1.0, inf], [0.0, 0.0, 5.0]),
        rank_of([inf] * 3, [1.0, 2.0, 3.0]), rank_of([29.0, 10.0, 50.0], [1.0, 1.0, 1.0]),
    )  # fmt: skip
    assert all_seeds == (False, 30.0, 0.1)
    assert sorted([none, some, all_seeds, fewer]) == [fewer, all_seeds, some, none]
    assert none.merit == 2.0
    assert rank_of([inf], [inf]).is_hopeless
