"""Splits: every row goes to one worker, as many as asked for, drawn from the seed alone; and what is told of them."""

import textwrap

import numpy as np
import pytest
from helpers.own_parts import module_in
from helpers.refusals import naming, refused
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.cli.main import main
from mpi_compress.job.loading import parse_job
from mpi_compress.problem.datasets.store import open_data, outcome
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.partitions import Split, partitions

SPECS = [
    {"name": "contiguous"},
    {"name": "contiguous", "sizes": 0.7},
    {"name": "shuffled"},
    {"name": "shuffled", "sizes": 1.0},
    {"name": "by-label"},
    {"name": "sorted"},
    {"name": "sorted", "sizes": 0.3},
    {"name": "mix", "share": 0.3},
    {"name": "mix", "share": 0.8, "sizes": 0.5},
    {"name": "dirichlet", "alpha": 1.0, "least": 2},
    {"name": "everyone"},
]
DRAWN = [spec for spec in SPECS if spec["name"] not in ("contiguous", "by-label", "sorted", "everyone") or "sizes" in spec]
LABELS = np.random.default_rng(1).integers(0, 5, 400).astype(float)


def split(spec, n, seed=0):
    return Split(partitions.build(spec, "workers.partition"), n, seed)


def shards(spec, n, labels=LABELS, seed=0):
    """The rows of each worker."""
    rows, cuts = split(spec, n, seed).deal(labels)
    if cuts is None:
        cuts = np.arange(n + 1) * labels.size // n
    return np.split(rows, cuts[1:-1])


def counts(dealt, labels=LABELS):
    """How many rows of each class each worker has (n, 5)."""
    return np.array([np.bincount(labels[rows].astype(int), minlength=5) for rows in dealt])


def test_every_partition_has_an_example():
    assert {spec["name"] for spec in SPECS} == set(partitions)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_row_goes_to_one_worker_and_every_worker_has_rows(spec, data):
    N, n, seed = data.draw(st.integers(20, 300)), data.draw(st.integers(1, 8)), data.draw(st.integers(0, 2**32))
    labels = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, data.draw(st.integers(1, 6)), N).astype(float)
    try:
        dealt = shards(spec, n, labels, seed)
    except UserError as error:
        assume(not ("no samples" in str(error) or "least = 2" in str(error)))
        raise
    assert len(dealt) == n
    assert min(rows.size for rows in dealt) >= spec.get("least", 1)
    assert np.array_equal(np.sort(np.concatenate(dealt)), np.arange(N))
    again = shards(spec, n, labels, seed)
    assert all(np.array_equal(a, b) for a, b in zip(dealt, again, strict=True))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_partition_alone_deals_every_row_to_one_worker(spec):
    dealt = partitions.build(spec, "").deal(LABELS, 4, np.random.default_rng(0))
    assert len(dealt) == 4
    assert sorted(np.concatenate(dealt)) == list(range(400))


@pytest.mark.parametrize("spec", DRAWN, ids=str)
def test_other_seeds_deal_otherwise(spec):
    one, other = (shards(spec, 6, seed=seed) for seed in (0, 1))
    assert any(not np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert split(spec, 6, 0).key != split(spec, 6, 1).key


@pytest.mark.parametrize("name", ["contiguous", "by-label", "sorted"])
def test_an_order_that_is_not_drawn_is_prepared_once_for_all_seeds_and_workers(name):
    assert split({"name": name}, 6, 0).key == split({"name": name}, 3, 1).key
    assert split({"name": name, "sizes": [1, 2]}, 2, 0).key == split({"name": name, "sizes": [1, 2]}, 2, 1).key


def test_splits_that_differ_in_any_parameter_are_prepared_apart():
    keys = [split(spec, n).key for spec in (
        *SPECS, {"name": "dirichlet", "alpha": 1.5, "least": 2}, {"name": "dirichlet", "alpha": 1.0, "least": 3},
        {"name": "mix", "share": 0.4}, {"name": "contiguous", "sizes": 0.8}, {"name": "sorted", "by": 1}, {"name": "sorted", "by": 2},
    ) for n in (3, 4)]  # fmt: skip
    equal_slices = 4 + 2 + 1  # of which an order serves both numbers of workers, and so does all data for everyone
    assert len(set(keys)) == len(keys) - equal_slices


def test_dirichlet_goes_from_one_class_a_worker_to_the_mean_as_alpha_grows():
    def unevenness(alpha, seed):
        share = counts(shards({"name": "dirichlet", "alpha": alpha, "least": 1}, 5, seed=seed))
        share = share / share.sum(axis=0)  # of each class, by worker
        return np.abs(share - 0.2).max(axis=0).mean()

    means = [np.mean([unevenness(alpha, seed) for seed in range(5)]) for alpha in (0.1, 1.0, 10.0, 1e6)]
    assert np.all(np.diff(means) < 0)
    assert means[0] > 0.5
    assert means[-1] < 0.03  # whole rows are dealt: a share of about 80 rows is off by less than two


def test_dirichlet_cuts_each_class_at_the_proportions_that_are_drawn():
    """The recipe by its own lines, from the same random numbers."""
    rng = np.random.default_rng([3, LABELS.size, 4])
    wanted = np.zeros((4, 5), dtype=int)
    for c in range(5):
        size = np.sum(c == LABELS)
        sums = np.cumsum(rng.dirichlet([2.0] * 4))
        rng.permutation(size)
        wanted[:, c] = np.diff(np.floor([0, *(size * sums[:-1]), size]))
    assert np.array_equal(counts(shards({"name": "dirichlet", "alpha": 2.0, "least": 1}, 4, seed=3)), wanted)


def test_sorted_by_label_is_by_label():
    for a, b in zip(shards({"name": "sorted"}, 7), shards({"name": "by-label"}, 7), strict=True):
        assert np.array_equal(a, b)


def test_mix_goes_from_shuffled_to_by_label():
    none, half, whole = (counts(shards({"name": "mix", "share": share}, 5)) for share in (0.0, 0.5, 1.0))
    assert np.array_equal(whole, counts(shards({"name": "by-label"}, 5)))
    purity = [np.mean(table.max(axis=1) / table.sum(axis=1)) for table in (none, half, whole)]
    assert purity[0] < 0.4 < purity[1] < 0.75 < purity[2]
    assert {rows.size for rows in shards({"name": "mix", "share": 0.37}, 7)} == {57, 58}


def test_sizes_are_as_the_shares_say():
    assert [rows.size for rows in shards({"name": "shuffled", "sizes": [1, 1, 2, 4]}, 4)] == [50, 50, 100, 200]
    assert [rows.size for rows in shards({"name": "mix", "sizes": [1, 1, 2, 4]}, 4)] == [50, 50, 100, 200]
    equal, drawn = ([rows.size for rows in shards({"name": "contiguous", "sizes": sigma}, 7)] for sigma in (0.0, 1.0))
    assert equal == [(i + 1) * 400 // 7 - i * 400 // 7 for i in range(7)]
    xi = np.random.default_rng([0, 400, 7]).standard_normal(7)
    np.testing.assert_allclose(drawn, 400 * np.exp(xi) / np.exp(xi).sum(), atol=1)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=12))
def test_whole_shares_that_add_up_to_all_rows_are_the_sizes(sizes):
    labels = np.zeros(sum(sizes))
    assert [rows.size for rows in shards({"name": "contiguous", "sizes": sizes}, len(sizes), labels)] == sizes


@pytest.mark.parametrize(("spec", "complaint"), [
    ({"name": "dirichlet", "alpha": 0}, "alpha 0 0"),
    ({"name": "dirichlet", "alpha": -1.0}, "alpha -1.0 0"),
    ({"name": "dirichlet", "alpha": float("nan")}, "alpha 0"),
    ({"name": "dirichlet", "least": 0}, "least 0 1"),
    ({"name": "dirichlet", "alfa": 1.0}, "alfa alpha"),
    ({"name": "mix", "share": 1.5}, "share 1.5 0 1"),
    ({"name": "sorted", "by": 0}, r"by = 0 must be a feature"),
    ({"name": "sorted", "by": "lable"}, r"by: 'lable' 'label' or a whole number"),
    ({"name": "shuffled", "sizes": -0.1}, r"sizes = -0.1 must be from 0 to 100"),
    ({"name": "shuffled", "sizes": [1.0, 0.0, 1.0]}, "sizes = [1.0, 0.0, 1.0] must be shares above 0"),
    ({"name": "shuffled", "sizes": [1, 2]}, r"sizes has 2 shares for 3 workers"),
    ({"alpha": 0.3}, "names no partition; write { name"),
])  # fmt: skip
def test_wrong_parameters_are_refused_before_anything_is_read(tmp_path, spec, complaint):
    with pytest.raises(UserError, match=naming(f"workers.partition {complaint}")):
        job(tmp_path, spec)


@pytest.mark.parametrize(("spec", "n", "complaint"), [
    ({"name": "dirichlet", "least": 101}, 4, r"4 workers of least = 101 each are more than the 400 samples"),
    ({"name": "dirichlet", "alpha": 1e-3}, 8, r"'dirichlet' with seed 0: in 10 draws there was always one of 8 workers with fewer than least = 10 samples"),
    ({"name": "contiguous", "sizes": [1e-6, 1]}, 2, r"'contiguous' gives worker 0 of 2 no samples, of 400"),
    ({"name": "contiguous", "sizes": 0.0}, 401, r"401 workers are more than the 400 samples"),
    ({"name": "mix"}, 401, "401 400"),
])  # fmt: skip
def test_what_these_rows_do_not_allow_is_refused(spec, n, complaint):
    with pytest.raises(UserError, match=naming(f"workers. {complaint}")):
        split(spec, n).deal(LABELS)


def test_dirichlet_refuses_labels_that_are_numbers():
    with pytest.raises(UserError, match="it spreads classes, and the 50 samples have 50 different labels"):
        split({"name": "dirichlet"}, 2).deal(np.linspace(0, 1, 50))


def job(tmp_path, partition, source="", count=3, **tables):
    """A run of gradient descent under a split; a user's part comes from `source`."""
    written = {
        "plugins": [module_in(tmp_path, source)] if source else [], "data": {"generator": "gspar", "samples": 60, "dim": 8},
        "objective": {"mu": 0.1}, "workers": {"count": count, "partition": partition}, "algorithm": {"name": "gd"}, "stop": {"rounds": 3},
    }  # fmt: skip
    return parse_job({**written, **tables}, "splits", tmp_path, {})


OWN = """
@mc.partitions.register("mine")
@dataclass(frozen=True)
class Mine(mc.Partition):
    def {}:
        rows = np.arange(labels.size)
        return {}
"""


DEAL, ORDER = "deal(self, labels, n, rng)", "order(self, labels, seed)"


@pytest.mark.usefixtures("registered_for_one_test_only")
@pytest.mark.parametrize(("method", "returned", "complaint"), [
    (DEAL, "np.array_split(rows[1:], n)", "mine, deal: it leaves out 1 of 60 samples, such as sample 0; every sample goes to one worker"),
    (DEAL, "[rows] * n", "mine, deal: it assigns twice 60 of 60 samples, such as sample 0"),
    (DEAL, "np.array_split(rows + 1, n)", "mine, deal: sample numbers go from 41 to 60; they should be from 0 to 59"),
    (DEAL, "[rows, rows[:0], rows[:0]]", "workers.partition: 'mine' gives worker 1 of 3 no samples, of 60"),
    (DEAL, "np.array_split(rows, n + 1)", "mine, deal: it should be sample numbers (m,) of each of 3 workers"),
    (DEAL, "None", "mine, deal: None was given; it should be sample numbers"),
    (DEAL, "[rows[:20] / 1.0, rows[20:40], rows[40:]]", "mine, deal: sample numbers are of type float64"),
    (DEAL, "[rows[:20, None], rows[20:40], rows[40:]]", "mine, deal: sample numbers have shape (20, 1); it should be (20,)"),
    (DEAL, "[labels > 0] * 3", "mine, deal: sample numbers are of type bool; they should be whole numbers"),
    (DEAL, "[[[1], [1, 2]], 3, 4]", "mine, deal"),
    (DEAL, "rows.reshape(7)", "workers.partition: 'mine': cannot reshape"),
    (ORDER, "rows[2:]", "mine 2 60 0"),
    (ORDER, "rows // 2", "mine, order: it leaves out 30 of 60 samples"),
    (ORDER, "rows.reshape(2, 30)", "mine, order: sample numbers have shape (2, 30); it should be (60,)"),
    ("arrange(self, labels)", "rows", "workers.partition: 'mine': it defines neither deal nor order"),
])  # fmt: skip
def test_a_split_of_ones_own_that_loses_or_doubles_rows_is_refused_by_its_name(tmp_path, method, returned, complaint):
    with pytest.raises(UserError, match=naming(complaint)):
        mc.run(job(tmp_path, "mine", OWN.format(method, returned)), out=tmp_path, quiet=True)


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_a_split_of_ones_own_is_one_method_and_its_source_is_part_of_the_run_id(tmp_path):
    ids, sizes = [], []
    for body in ("np.split(rng.permutation(rows), [10, 20])", "np.split(rows, [1, 2])"):
        (run,) = mc.run(job(tmp_path, "mine", OWN.format(DEAL, body)), out=tmp_path, quiet=True)
        ids.append(run.attrs["run_id"])
        sizes.append(run.split["rows"].tolist())
    assert len(set(ids)) == 2
    assert sizes == [[10, 10, 40], [1, 1, 58]]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_f_is_the_mean_over_all_rows_whatever_the_split(tmp_path, spec):
    plain, other = (
        mc.run(job(tmp_path, partition, count=5, log={"theory": True}), out=tmp_path, quiet=True)[0] for partition in ("contiguous", spec)
    )
    np.testing.assert_allclose(other.trace["loss"], plain.trace["loss"], rtol=1e-12)
    np.testing.assert_allclose(other.x, plain.x, rtol=1e-9)
    assert other.attrs["L"] == pytest.approx(plain.attrs["L"], rel=1e-10)


EF21 = {
    "algorithm": {"name": "ef21"},
    "up": {"compressor": {"name": "top-k", "k": 3}},
    "objective": {"loss": "least-squares", "mu": 0.0},
}


def test_the_smoothness_of_uneven_shards_is_that_of_the_workers_own_terms(tmp_path):
    uneven = job(tmp_path, {"name": "contiguous", "sizes": [1, 2, 3]}, **EF21)
    (run,) = mc.run(uneven, out=tmp_path, quiet=True)
    data = open_data(DataTable(generator="gspar", parameters={"samples": 60, "dim": 8}), tmp_path, Split(), "number")
    rows = data.read(0, 60).dense()
    each = [3 / 60 * np.linalg.eigvalsh(a.T @ a)[-1] for a in np.split(rows, [10, 30])]
    assert run.split["rows"].tolist() == [10, 20, 30]
    assert run.attrs["L_max"] == pytest.approx(max(each), rel=1e-9)


def test_rows_are_sorted_by_a_feature_of_the_file(tmp_path):
    """Features are counted from 1; rows that lack it have a zero; what comes after `rows` is not looked at."""
    values = [3, None, -1, 2.5, None, 9, -7, 4]
    (tmp_path / "rows.svm").write_text("".join(
        f"{1 - 2 * (j % 2)} 1:{j + 1}" + ("" if v is None else f" 3:{v}") + " 4:1\n" for j, v in enumerate(values)
    ))  # fmt: skip
    table = DataTable(path=str(tmp_path / "rows.svm"), rows=7, normalize="rows")
    data = open_data(table, tmp_path, split({"name": "sorted", "by": 3, "sizes": [2, 5]}, 2), "sign")
    first = [rows.dense() for rows in data.shards(range(2), 2)]
    whole = np.concatenate(first)
    assert (whole[:, 0] / whole[:, 3]).round().tolist() == [7, 3, 2, 5, 4, 1, 6]
    assert [len(a) for a in first] == [2, 5]
    with pytest.raises(UserError, match=r"workers\.partition: feature 5 was asked for, and rows.svm has 4"):
        open_data(table, tmp_path, split({"name": "sorted", "by": 5}, 2), "sign")


def test_the_outcome_counts_rows_and_the_labels_of_the_file(tmp_path):
    labels = [7, 7, 9, 20, 9, 7, 20, 20, 20, 7]
    (tmp_path / "rows.svm").write_text("".join(f"{y} 1:{j + 1}\n" for j, y in enumerate(labels)))
    table = DataTable(path=str(tmp_path / "rows.svm"))
    found = outcome(open_data(table, tmp_path, split({"name": "contiguous", "sizes": [3, 2, 5]}, 3), "class"), 3)
    assert found["rows"].tolist() == [3, 2, 5]
    assert found["labels"].tolist() == [7, 9, 20]
    assert found["counts"].tolist() == [[2, 1, 0], [0, 1, 1], [2, 0, 3]]
    numbers = DataTable(generator="least-squares", parameters={"samples": 30, "dim": 3})
    assert set(outcome(open_data(numbers, tmp_path, Split(), "number"), 4)) == {"rows"}


class TestShow:
    """The split in `mpi-compress show`."""

    def of(self, tmp_path, capsys, *options, **changes):
        (run,) = mc.run(job(tmp_path, **changes), out=tmp_path, quiet=True)
        assert main(["show", str(run.file), *options]) == 0
        return run, capsys.readouterr().out

    def test_there_is_a_line_for_each_worker(self, tmp_path, capsys):
        run, out = self.of(tmp_path, capsys, partition={"name": "by-label", "sizes": [1, 2, 3]})
        minus, plus = run.split["counts"].sum(axis=0)
        wanted = f"""
          partition by-label, sizes = [1, 2, 3]: 10 to 30 samples a worker, of each label:
                    worker  samples  -1   1
                         0       10  10   0
                         1       20  {minus - 10:2d}  {30 - minus:2d}
                         2       30   0  30
        """
        assert plus >= 30
        assert textwrap.indent(textwrap.dedent(wanted).strip(), "  ") in out

    @pytest.mark.parametrize("kind", ["png", "svg"])
    def test_a_picture_is_drawn_in_the_format_of_its_name(self, tmp_path, capsys, kind):
        picture = tmp_path / f"split.{kind}"
        _, out = self.of(tmp_path, capsys, "--split", str(picture), partition={"name": "dirichlet", "alpha": 1.0, "least": 1})
        assert out == f"{picture}\n"
        assert picture.stat().st_size > 1000
        if kind == "svg":
            text = picture.read_text()
            assert all(f">{word}</text>" in text for word in ("worker", "rows", "label", "-1", "gspar, dirichlet, alpha = 1.0, least = 1"))

    def test_a_wrong_format_is_refused(self, tmp_path, capsys):
        (run,) = mc.run(job(tmp_path, "contiguous"), out=tmp_path, quiet=True)
        refused(["show", run.file, "--split", "split.txt"], capsys, "--split split.txt: a figure is written as one of .png")


@pytest.mark.parametrize("labels", [3, 25])
def test_a_picture_has_a_bar_for_each_worker_and_label(labels, tmp_path):
    from mpi_compress.figures.of_run import draw_split
    from mpi_compress.results.reader import Run

    counts_ = np.arange(4 * labels).reshape(4, labels)
    found = {"rows": counts_.sum(axis=1), "labels": np.arange(labels) * 2.0, "counts": counts_}
    figure = draw_split(Run(tmp_path / "a.h5", {"data": "some"}, {}, {}, {}, None, {}, found))
    bars = np.array([bar.get_height() for bar in figure.axes[0].patches]).reshape(labels, 4)
    assert np.array_equal(bars.T, counts_)
    assert len(figure.legends) == (labels <= 10)
