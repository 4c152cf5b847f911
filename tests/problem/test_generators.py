"""Generated sets: what their papers and parameters say, and nothing that depends on how they are made."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets import generators
from mpi_compress.problem.datasets.like_real_sets import RCV1, URL
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.partitions import Split

SMALL = {
    "gspar": {"samples": 50, "dim": 8},
    "gspar-svm": {"samples": 9000, "dim": 8},
    "rcv1-like": {"samples": 9000, "dim": 3000, "nonzeros": 20.0},
    "url-like": {"samples": 9000, "dim": 100_000, "nonzeros": 30.0},
    "gisette-like": {"samples": 1200, "dim": 30},
    "tridiagonal": {"samples": 9},
    "least-squares": {"samples": 50, "dim": 8},
}
ALL = pytest.mark.parametrize("name", sorted(SMALL))


def made(name, **parameters):
    chunks = list(generators.build({"name": name, **SMALL[name], **parameters}, "data").chunks())
    stack = sp.vstack if sp.issparse(chunks[0][0]) else np.vstack
    return stack([a for a, _ in chunks], **({"format": "csr"} if stack is sp.vstack else {})), np.concatenate(
        [y for _, y in chunks]
    )


def entries(a):
    """All values, and where sparse ones stand."""
    return (a.indptr, a.indices, a.data) if sp.issparse(a) else (a,)


def test_every_generator_is_tried_here():
    assert set(SMALL) == set(generators)


@ALL
def test_a_set_is_decided_by_its_parameters_and_seed(name):
    (a, y), (again, labels), (other, _) = made(name), made(name), made(name, seed=1)
    for one, two in zip(entries(a), entries(again), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(y, labels)
    assert entries(a)[-1][:100].tobytes() != entries(other)[-1][:100].tobytes() or np.any(a.indices[:100] != other.indices[:100])


@ALL
def test_size_is_known_beforehand(name):
    a, y = made(name)
    n, dim, nonzeros = generators.build({"name": name, **SMALL[name]}, "data").size()
    assert a.shape == (n, dim)
    assert y.shape == (n,)
    assert (a.nnz if sp.issparse(a) else a.size) == pytest.approx(nonzeros, rel=0.03)


@ALL
def test_what_is_read_is_what_was_made(name, tmp_path):
    a, y = made(name)
    real = generators[name].real_labels
    data = open_data(DataTable(generator=name, parameters=SMALL[name]), tmp_path, Split(), "number" if real else "sign")
    rows = data.read(0, data.n_samples)
    np.testing.assert_array_equal(rows.labels, y)
    np.testing.assert_array_equal(rows.matrix[-1].ravel(), a.data if sp.issparse(a) else a.ravel())
    if not real:
        assert 0.2 < np.mean(y > 0) < 0.8


@pytest.mark.parametrize(("name", "real"), [("rcv1-like", RCV1), ("url-like", URL)])
def test_features_are_as_popular_as_was_measured_and_come_together(name, real):
    generator = generators.build({"name": name, "samples": 3000}, "data")
    a = sp.vstack([chunk for chunk, _ in generator.chunks()], format="csr")
    counts = np.bincount(a.indices, minlength=a.shape[1])
    order = np.argsort(-counts)
    for rank, share in real.shares:
        if share * 3000 > 100:
            assert counts[order[rank - 1]] / 3000 == pytest.approx(share, rel=0.12)
    lengths = np.diff(a.indptr)
    assert lengths.std() / lengths.mean() == pytest.approx({"rcv1-like": 0.71, "url-like": 0.15}[name], abs=0.04)
    some = (a[:, order[200:500]] > 0).astype(float)
    both = (some.T @ some).toarray()
    jaccard = both / (np.diag(both)[:, None] + np.diag(both) - both)
    np.fill_diagonal(jaccard, 0)
    assert np.mean(jaccard.max(axis=1) > 0.5) == pytest.approx({"rcv1-like": 0.0, "url-like": 1.0}[name], abs=0.12)
    assert a.has_sorted_indices
    norms = np.sqrt(a.multiply(a).sum(axis=1)).A1
    assert np.median(norms) == pytest.approx({"rcv1-like": 1.0, "url-like": 10.1}[name], rel=0.04)
    assert name == "url-like" or np.ptp(norms[norms > 0]) < 1e-12


def test_gspar_svm_has_the_papers_scales_and_labels():
    a, y = made("gspar-svm", dim=400, samples=4096, c1=0.01, c2=0.9)
    deviations = a.std(axis=0)
    assert np.mean(deviations < 0.01) == pytest.approx(0.9, abs=0.05)
    assert deviations.max() <= 1.05
    assert set(y) == {-1.0, 1.0}


def test_gisette_like_is_dense_within_bounds_and_mostly_empty():
    a, _ = made("gisette-like")
    assert a.min() == -1
    assert a.max() <= 1
    assert np.mean(a == -1) == pytest.approx(0.87, abs=0.01)


def test_gisette_like_has_the_published_constants_of_gisette():
    a, y = made("gisette-like", dim=5000)
    assert np.mean(np.sum(a * a, axis=1)) / 4 == pytest.approx(1163.35, rel=0.01)
    assert np.linalg.norm(a, 2) ** 2 / (4 * len(a)) == pytest.approx(842.87, rel=0.01)
    assert np.mean(y) == pytest.approx(0.0, abs=0.1)


def test_noise_is_what_a_least_squares_fit_leaves():
    a, y = made("least-squares", samples=4000, noise=0.5)
    x = np.linalg.lstsq(a, y, rcond=None)[0]
    assert np.std(a @ x - y) == pytest.approx(0.5, rel=0.05)
    a, y = made("least-squares")
    assert np.linalg.norm(a @ np.linalg.lstsq(a, y, rcond=None)[0] - y) <= 1e-12 * np.linalg.norm(y)


@pytest.mark.parametrize(("name", "wrong"), [
    ("gspar", {"samples": 1}), ("gspar-svm", {"dim": 0}), ("rcv1-like", {"nonzeros": 0.0}), ("url-like", {"noise": -1.0}),
    ("gisette-like", {"empty": 2.0}), ("least-squares", {"condition": 0.5}), ("least-squares", {"samples": 7}),
    ("least-squares", {"noise": -1.0}),
])  # fmt: skip
def test_impossible_parameters_are_refused(name, wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        generators.build({"name": name, **SMALL[name], **wrong}, "data")


def test_fewer_features_than_there_are_is_no_d(tmp_path):
    with pytest.raises(UserError, match=r"data\.dim: 3 was given, and .* has 2048 features"):
        open_data(DataTable(generator="gspar", dim=3, parameters={"samples": 50}), tmp_path, Split(), "sign")


def test_a_generator_says_what_d_is(tmp_path):
    """Also where no sample has the last feature."""
    data = open_data(DataTable(generator="url-like", parameters={"samples": 50}), tmp_path, Split(), "sign")
    assert data.dim == 3231961
