"""The rule by which rank 0 hosts workers beside the master's part."""

import math

import pytest

import mpi_compress as mc
from mpi_compress.preparing.shapes import rank_0


def choice(n, ranks, rows=10_000, dim=100, cores=None, **settings):
    """What the rule says of n workers with dense rows."""
    table = {
        "data": {"generator": "gspar", "samples": rows, "dim": dim},
        "workers": {"count": n, **settings.pop("workers", {})},
        "stop": {"rounds": 1},
        "run": [{"label": "a", "algorithm": {"name": "gd"}, **settings}],
    }
    (spec,) = mc.load_job(table).runs
    return rank_0(spec, rows * dim, rows, dim, ranks, cores)


@pytest.mark.parametrize(("n", "ranks", "hosts"), [(8, 2, True), (8, 3, True), (4, 5, False), (4, 4, True), (6, 5, False), (1, 2, False)])
def test_rank_0_hosts_workers_where_the_largest_share_becomes_smaller(n, ranks, hosts):
    assert choice(n, ranks).hosts == hosts == (math.ceil(n / ranks) < math.ceil(n / (ranks - 1)))


def test_rank_0_stays_apart_where_the_fold_takes_nearly_the_whole_round():
    few_rows = {"algorithm": {"name": "sgd", "batch": 1}}
    assert choice(3000, 20, rows=10**7).hosts
    assert not choice(3000, 20, rows=10**7, **few_rows).hosts
    assert choice(3000, 2, rows=10**7, **few_rows).hosts  # the only other rank would host all


@pytest.mark.parametrize("master", ["dedicated", "worker"])
def test_what_the_job_says_holds(master):
    said = choice(4, 3, workers={"master": master})
    assert said.hosts == (master == "worker")
    assert str(said).endswith(f'(master = "{master}")')


@pytest.mark.parametrize(("rows", "ranks", "cores", "share"), [(100, 2, None, 1.2), (10_000, 2, None, None), (8000, 5, 2, 1.2), (100, 5, 2, 7.7)])
def test_ranks_that_do_not_pay_are_told_with_their_share_of_one_process(rows, ranks, cores, share):
    said = choice(4, ranks, rows=rows, cores=cores).warning
    assert (said == "") == (share is None)
    if said:
        assert said.startswith(f"{ranks} ranks: about ")
        assert float(said.split()[3]) == pytest.approx(share, rel=0.05)


def test_what_is_not_counted_is_not_judged():
    assert choice(4, 2, rows=100, algorithm={"name": "fednl"}).warning == ""
