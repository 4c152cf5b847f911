"""What `check-part` says of a part: the worst vector that was found, the constant that the class states, and the cause first."""

import importlib
import os
import re
import sys
from functools import cache

import numpy as np
import pytest
from helpers.running import command, here

import mpi_compress as mc

pytestmark = pytest.mark.usefixtures("registered_for_one_test_only")

PARTS = '''
from dataclasses import dataclass

import numpy as np

import mpi_compress as mc


@mc.compressors.register("mean-top-k")
@dataclass(frozen=True)
class MeanTopK(mc.Compressor):
    """The k largest, each as the mean of their sizes with its sign."""

    k: int = 3
    makes = mc.SignSparse

    def delta(self, dim):
        return min(1 / self.k, self.k / dim)  # one coordinate loses 1 − 1/k, ones lose 1 − k/d

    def compress(self, v, t):
        i = np.sort(np.argsort(-np.abs(v), kind="stable")[: self.k])
        return mc.SignSparse(v.size, i, v[i] < 0, np.abs(v[i]).mean())


@mc.compressors.register("one-norm")
@dataclass(frozen=True)
class OneNorm(mc.Compressor):
    """k draws of coordinates with chances |v_j|/‖v‖₁."""

    k: int = 3
    share: float = 1.0  # of ω, which ones attain
    factor: float = 1.0  # of C(v)
    makes = mc.Dense

    def omega(self, dim):
        return self.share * omega_of(self.factor, (dim - 1) / self.k)

    def compress(self, v, t):
        size = np.abs(v).sum()
        chances = np.abs(v) / size if size else np.full(v.size, 1 / v.size)
        return mc.Dense(self.factor * t.rng.multinomial(self.k, chances) * np.sign(v) * size / self.k)


def omega_of(factor, omega):
    """E‖aC(v) − v‖²/‖v‖² of E C(v) = v."""
    return factor**2 * (omega + 1) - 2 * factor + 1


@mc.compressors.register("times-random-k")
@dataclass(frozen=True)
class TimesRandomK(mc.Compressor):
    k: int = 1
    factor: float = 1.0  # of C(v)

    def omega(self, dim):
        return omega_of(self.factor, dim / self.k - 1)

    def compress(self, v, t):
        i = np.sort(t.rng.choice(v.size, self.k, replace=False))
        return mc.Sparse(v.size, i, v[i] * (self.factor * v.size / self.k))


@mc.compressors.register("last")
@dataclass(frozen=True)
class Last(mc.Compressor):
    """The vector before this one, whoever sent it."""

    last = 0.0
    makes = mc.Dense

    def delta(self, dim):
        return 0.5

    def compress(self, v, t):
        sent = self.last + np.zeros(v.size) if np.size(self.last) in (1, v.size) else v
        type(self).last = v * 1e60 if np.isfinite(v).all() else v
        return mc.Dense(sent)


@mc.compressors.register("sums-up")
@dataclass(frozen=True)
class SumsUp(mc.Compressor):
    """The k largest of the sum of all vectors that any of its kind was given."""

    k: int = 3
    total = 0.0

    def delta(self, dim):
        return self.k / dim

    def compress(self, v, t):
        type(self).total = type(self).total + v
        i = np.sort(np.argsort(-np.abs(self.total), kind="stable")[: self.k])
        return mc.Sparse(v.size, i, self.total[i])
'''
JOB = """plugins = ["new_parts"]
data = { generator = "gspar", samples = 40, dim = 13 }
objective = { mu = "1e-2 L" }
stop = { rounds = 2 }
run = [{ label = "ours, with k = 3", algorithm = { name = "diana" }, up = { compressor = { name = "one-norm", share = 0.5 } } }]
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    (tmp_path / "new_parts.py").write_text(PARTS)
    (tmp_path / "job.toml").write_text(JOB)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "new_parts", raising=False)
    importlib.import_module("new_parts")
    return tmp_path / "job.toml"


@cache
def found_of(name, **parameters):
    """What is found of a part of the module, the same in every test."""
    return {each.what: str(each) for each in mc.testing.findings(mc.compressors[name](**parameters), dim=13)}


@pytest.mark.usefixtures("job")
def test_the_worst_vector_of_a_bound_is_told_and_that_it_is_tight_where_it_is_met():
    right = found_of("mean-top-k")["δ"]
    assert right == "holds  δ: 0.230769 is stated for d = 13; at worst 0.230769 was found with a vector of ones: tight"
    right = found_of("one-norm")["ω"]
    assert right.startswith("holds  ω: 4 is stated for d = 13; at worst "), right
    assert right.endswith(" was found with a vector of ones: tight"), right
    wrong = found_of("one-norm", share=0.5)["ω"]
    said, found = map(float, re.fullmatch(r"WRONG  ω: (\S+) is stated for d = \d+; at worst (\S+) .*was found with a vector of ones", wrong).groups())
    assert found > 1.9 * said, "ones are its worst vector, and the first one that breaks the bound is another"


@pytest.mark.parametrize(("name", "k", "dim", "factor"), [
    pytest.param(*compressor, factor, marks=[] if factor in fast else pytest.mark.slow)
    for *compressor, fast in (("one-norm", 2, 34, (1.0,)), ("times-random-k", 1, 50, (0.8,))) for factor in (0.8, 1.0, 1.1, 1.3)
])  # fmt: skip
@pytest.mark.usefixtures("job")
def test_a_mean_that_is_a_multiple_of_v_is_told_with_the_factor(name, k, dim, factor):
    found = {each.what: each for each in mc.testing.findings(mc.compressors[name](k=k, factor=factor), dim=dim)}
    assert found["ω"].holds, "it is stated right"
    assert found["unbiased"].holds == (factor == 1), found["unbiased"]
    mean, error = re.search(r"the mean of C\(v\) is (\S+) v along v, ± (\S+), for d = ", found["unbiased"].text).groups()
    assert abs(float(mean) - factor) <= 4 * float(error) + 1e-9
    assert float(error) < 0.1


@pytest.mark.usefixtures("job")
def test_a_mean_of_which_omega_leaves_too_much_unseen_is_not_judged():
    found = found_of("one-norm", share=1e4)["unbiased"]
    unseen = r"a bias below \d+% cannot be seen in 20000 draws, for d = 12 with a vector of ones"
    loose = r"the stated ω = 36666\.7 is loose, and leaves so much unseen"
    assert re.fullmatch(rf"not judged  unbiased: {unseen}: {loose}", found), found


@pytest.mark.usefixtures("job")
def test_a_bound_that_was_passed_by_chance_says_how_far_chance_may_go():
    found = found_of("one-norm", share=0.999)["ω"]
    said, seen, limit = map(float, re.match(r"holds  ω: (\S+) is stated .*; at worst (\S+) ± \S+ \(a standard error; up to 6 of them, (\S+), may be chance\)", found).groups())
    assert said < seen < limit, found


def test_a_method_is_told_that_its_layouts_are_checked_and_not_its_lines():
    first = here("check-part", "diana").stdout.splitlines()[1]
    assert first.startswith("  not judged  algorithm: layouts and states are checked here, not the algorithm; --theorem "), first
    assert "algorithm:" not in here("check-part", "top-k").stdout


@pytest.mark.usefixtures("job")
def test_what_is_no_number_never_holds():
    """C(0) ≠ 0 is infinitely much of ‖0‖², and NaN that is kept is no wrong message."""
    found = found_of("last")
    assert found["memory"].startswith("WRONG"), found
    assert found["δ"].startswith("WRONG  δ: "), found
    assert not [said for said in found.values() if said.startswith("holds") and re.search(r"\b(nan|inf)\b was found", said)]
    assert not found["round trip"].endswith("nan comes back as nan"), found


@pytest.mark.usefixtures("job")
def test_a_bound_twice_too_large_is_called_loose():
    loose = found_of("one-norm", share=2.0)["ω"]
    assert re.match(r"holds  ω: 666 is stated for d = 1000; at worst 33[0-9.]+ ± \S+ was found .*: loose by 2 times$", loose), loose


def test_a_bound_that_is_tight_for_a_small_d_alone_is_called_loose_for_the_other():
    class OfEachBlock(mc.Compressor):
        """The largest coordinate of each 32: δ = 1/32 at best, and 1/d is stated."""

        def compress(self, v, t):
            best = [start + np.argmax(np.abs(v[start : start + 32])) for start in range(0, v.size, 32)]
            return mc.Sparse(v.size, np.array(best, dtype=np.uint32), v[best])

        def delta(self, dim):
            return 1 / dim

    found = {each.what: str(each) for each in mc.testing.findings(OfEachBlock(), dim=128)}["δ"]
    assert re.fullmatch(r"holds  δ: 0\.08.* is stated for d = 12; .*: tight; for d = 1000 it is loose by 32 times", found), found


@pytest.mark.usefixtures("job")
def test_rounds_that_differ_name_both_causes():
    assert found_of("sums-up")["repetition"].endswith("random numbers come from t.rng, and memory from start(dim)")


def test_a_part_of_a_plugin_without_its_job_is_not_taken_for_another_one():
    said = here("check-part", "sign-top").stderr
    assert "did you mean" not in said, said
    assert said.startswith("mpi-compress: --job JOB knows those of its plugins, too; without it there is no part called 'sign-top'"), said
    assert "did you mean 'top-k'?" in here("check-part", "topk").stderr


@pytest.mark.slow  # between the bounds that are met and those that are loose
@pytest.mark.usefixtures("job")
def test_a_bound_that_is_not_met_is_not_called_tight():
    loose = found_of("one-norm", share=1.5)["ω"]
    assert loose.startswith("holds  ω: "), loose
    assert loose.endswith("was found with a vector of ones"), loose


def test_a_theorem_names_the_constant_that_the_class_states_and_measures_no_v_by_a_wrong_one(job):
    done = here("check-part", "diana", "--theorem", "--job", job)
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert not any("δ" in line for line in lines), "it states ω, and δ is 1 − ω"
    assert lines[1].startswith("  WRONG  ω of one-norm: "), lines
    assert lines[1].endswith(" was found with a vector of ones"), lines
    assert lines[-1] == "  WRONG  theorem: V is not measured, as what the theorem assumes is wrong: ω of one-norm"


@pytest.mark.usefixtures("job")
def test_a_vector_that_ends_a_diverging_run_is_named_with_what_would_do():
    found = found_of("one-norm")
    for bad in ("nan", "inf"):
        said = found[f"a vector of {bad}"]
        assert said.startswith(f"WRONG  a vector of {bad}: ends a run that diverges with ValueError: pvals"), said
        assert said.endswith("; send nan or inf, or raise OverflowError"), said


@pytest.mark.usefixtures("job")
def test_what_a_part_keeps_comes_before_what_follows_from_it():
    found = [*found_of("sums-up").values()]
    assert found[0].startswith("WRONG  memory: sums-up keeps something in SumsUp.total"), found
    assert found[0].endswith("; what else is wrong may follow from it"), found
    assert any(each.startswith("WRONG") for each in found[1:]), found


def test_a_parameter_that_has_a_default_says_nothing_of_what_is_left_out(job):
    source = job.parent / "new_parts.py"
    source.write_text(source.read_text() + '\n\n@mc.algorithms.register("heavy")\nclass Heavy(mc.algorithms["ef21"]):\n    server = "heavy-ball"\n')
    listed = command("list", job).stdout
    assert re.search(r'^    server = "heavy-ball" +how x moves$', listed, re.MULTILINE), listed
    assert re.search(r'^    server, optional .*; left out: "step", or the first of', here("list", "ef21").stdout, re.MULTILINE)


def test_the_first_line_says_which_class_and_which_run(job):
    job.write_text(JOB.replace('"diana"', '"ef"').replace('"one-norm", share = 0.5', '"mean-top-k"'))
    names = "mean-top-k", "sums-up", "fixed"
    ours, none, shipped = (here("check-part", name, "--job", job).stdout.splitlines()[0] for name in names)
    file = os.path.relpath(job.parent / "new_parts.py")
    assert ours == f'mean-top-k (MeanTopK of {file}, in the run "ours, with k = 3"):'
    assert none == f"sums-up (SumsUp of {file}, in no run):"
    assert shipped == 'fixed (Fixed, in the run "ours, with k = 3"):'


def test_a_set_that_no_command_fetches_is_said_to_be_put_into_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPI_COMPRESS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    listed = here("data", "list").stdout
    assert re.search(r"^census-income .* put census-income into ./data; no command fetches it$", listed, re.MULTILINE), listed
    assert re.search(r"^austen .* put austen.txt into ./data; no command fetches it$", listed, re.MULTILINE), listed
    assert here("data", "info", "census-income").stderr.endswith("; no command fetches it: put census-income into one of them\n")
