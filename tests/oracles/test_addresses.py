"""What is drawn at random, and where: NumPy's Philox at the documented addresses, beside what runs draw."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import plain_literature as plain
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress.core.streams import Role, Streams

ROLES = {"WORKER": 0, "BATCH": 1, "MASTER": 2, "SHARED": 3, "MODEL": 4, "START": 5, "PARTICIPATION": 6, "ALIKE": 16}


@pytest.mark.parametrize("role", ROLES)
def test_a_stream_is_philox_with_the_seed_as_key_and_the_address_as_counter(role):
    for seed, who, k in ((0, 0, 0), (7, 3, 11), (2**40, 999, 10**6)):
        ours = Streams(seed).at(Role[role], who, k)
        alone = plain.stream(seed, ROLES[role], who, k)
        assert np.array_equal(ours.random(9), alone.random(9))
        assert np.array_equal(ours.integers(100, size=5), alone.integers(100, size=5))


@pytest.mark.parametrize("epoch", [False, True])
def test_minibatches_are_drawn_1024_rows_at_once_or_by_permutations(epoch):
    """Round 341 is the first with the next draw of 1024 // 3 minibatches of 3 rows."""
    f = SimpleNamespace(parts=[(None, np.zeros(size)) for size in (23, 17)])
    rows, ours = plain.batches(f, 3, seed=5, epoch=epoch), mc.Batches(3, "epoch" if epoch else "with-replacement")
    for k in (0, 1, 7, 8, 340, 341, 700):
        for i, size in enumerate((23, 17)):
            assert np.array_equal(ours.rows(size, mc.Round(k, Streams(5), Role.WORKER, i)), rows(i, k))


@pytest.mark.parametrize(("d", "n"), [(12, 4), (13, 4), (3, 5)])
def test_perm_k_deals_a_permutation_that_all_workers_draw(d, n):
    C, v = mc.compressors["perm-k"](n=n), np.arange(1.0, d + 1)
    for k in (0, 5):
        for i in range(n):
            kept, sent = plain.permuted(d, i, n, k, seed=3), C.compress(v, mc.Round(k, Streams(3), Role.WORKER, i)).dense()
            assert np.flatnonzero(sent).tolist() == kept.tolist()
            assert sent[kept] == pytest.approx(min(n, d) * v[kept])


@pytest.mark.parametrize(("d", "n", "s"), [(12, 4, 2), (13, 5, 3), (3, 8, 2), (7, 3, 3)])
def test_a_pattern_deals_its_columns_to_the_workers_by_one_draw_of_all(d, n, s):
    C, v = mc.compressors["pattern"](s=s, n=n), np.arange(1.0, d + 1)
    for k in (0, 5):
        for i in range(n):
            kept, sent = plain.cyclic(d, i, n, s, k, seed=3), C.compress(v, mc.Round(k, Streams(3), Role.WORKER, i)).dense()
            assert np.flatnonzero(sent).tolist() == kept.tolist()
            assert sent[kept] == pytest.approx(n / s * v[kept])


def test_the_workers_of_a_round_are_those_of_its_address(tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, count=5, rounds=12, seed=9, workers={"count": 5, "participate": 2})
    sent = np.diff(run.workers["paper_bits_up"], axis=0) > 0
    assert [np.flatnonzero(row).tolist() for row in sent] == [plain.participants(5, 2, k, seed=9) for k in range(12)]


def test_a_random_start_is_scale_times_normal_numbers_and_the_offset_is_added_to_every_start(tmp_path):
    normal = plain.stream(4, plain.START, 0, 0).standard_normal(40)
    starts = {
        "zero": ({"offset": 0.25}, np.full(40, 0.25)),
        "random": ({"at": "random", "scale": 0.5}, 0.5 * normal),
        "both": ({"at": "random", "scale": 2.0, "offset": -1.5}, 2 * normal - 1.5),
    }
    for name, (start, x0) in starts.items():
        assert np.array_equal(run_of(tmp_path / name, {"name": "gd"}, rounds=0, seed=4, start=start).x, x0)


@pytest.mark.parametrize("bias", [False, True])
def test_factors_start_at_normal_numbers_over_the_root_of_the_rank_and_biases_at_0(bias, tmp_path):
    (tmp_path / "ratings.svm").write_text("".join(f"{1 + (u * i) % 5} {u}:1 {i}:1\n" for u in range(1, 6) for i in range(6, 10)))
    model = {"name": "matrix-factorisation", "rank": 7, "bias": bias}
    tables = {"data": {"path": str(tmp_path / "ratings.svm")}, "objective": {"model": model}, "algorithm": {"name": "gd", "step": 0.1}}
    (run,) = mc.run({"name": "start", **tables, "seed": 6, "stop": {"rounds": 0}}, out=tmp_path)
    normal = plain.stream(6, plain.START, 0, 0).standard_normal(9 * 7)
    assert run.x == pytest.approx(np.append(normal / np.sqrt(7), np.zeros(9 * bias)), rel=1e-15)


@pytest.mark.parametrize(("share", "n"), [(0.5, 3), (0.4, 4), (1.0, 2), (0.0, 2)])
def test_a_mix_deals_a_share_by_label_in_file_order_and_the_rest_as_drawn(share, n):
    """Every worker has its slice of the rows by label, and then its slice of the others."""
    N = 21
    labels = np.random.default_rng(2).integers(0, 3, N).astype(float)
    parts = mc.partitions["mix"](share=share).deal(labels, n, np.random.default_rng(8))
    order = np.random.default_rng(8).permutation(N).tolist()
    taken = int(share * N)
    sorted_rows, others = sorted(order[:taken], key=lambda row: (labels[row], row)), order[taken:]
    ends = [i * N // n for i in range(n + 1)]
    for i, part in enumerate(parts):
        a, b = (end * taken // N for end in ends[i : i + 2])
        assert part.tolist() == sorted_rows[a:b] + others[ends[i] - a : ends[i + 1] - b]
