"""Parts are checked against what they state, and played in other ways: what passed in silence is named."""

import importlib
import random
import re

import numpy as np
import pytest
from helpers import unseen_parts as parts
from helpers.running import command, here

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import is_ours, registries
from mpi_compress.engine.checking import findings_by_name, findings_in_job
from mpi_compress.engine.verifying import ROUNDS, verify
from mpi_compress.guard.checks import after_rounds
from mpi_compress.guard.of_data import format_of_files
from mpi_compress.guard.of_messages import links_in_runs
from mpi_compress.messages.compressors import signs
from mpi_compress.problem.datasets.formats import Format, Reading

pytestmark = pytest.mark.usefixtures("registered_for_one_test_only")
BY_THEMSELVES = [
    (registry.kind, name)
    for registry in registries
    if registry.kind != "format"
    for name, part in registry.items()
    if is_ours(part)
]
PARAMETERS = {
    "affine": {"c0": 8.0},
    "packet": {"c1": "128 B", "c0": "8 B", "pmax": "128 B"},
    "trace": {"rows": [[0, "5 ms", "20 kbit/s"]]},
}
IN_A_JOB = {"table", "quadratic", "matrix-factorisation", "gspar-cnn", "lstm", "ncf", "resnet-8", "resnet-18"}
IN_A_JOB |= {"cat", "kimad", "power-sgd", "hit-rate", "perplexity", "async-sgd"}


@pytest.mark.slow  # 25 s of sampling; those of one kind each are checked below
@pytest.mark.parametrize(("kind", "name"), [each for each in BY_THEMSELVES if each[1] not in IN_A_JOB])
def test_the_packages_parts_are_what_they_state(kind, name):
    (registry,) = (each for each in registries if each.kind == kind)
    assert mc.testing.check(registry[name](**PARAMETERS[name]) if name in PARAMETERS else registry[name])


@pytest.mark.parametrize("part", [
    *("compressors random-k", "codecs rice", "costs wire", "losses huber", "penalties group", "penalties ratio"),
    *("algorithms diana", "algorithms marina-p", "partitions dirichlet", "metrics nonzeros", "generators tridiagonal"),
])  # fmt: skip
def test_a_part_of_each_kind_is_what_it_states_and_its_check_draws_and_keeps_nothing(part):
    kind, name = part.split()
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert mc.testing.check(getattr(mc, kind)[name])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


@pytest.mark.parametrize(("share", "holds"), [pytest.param(0.5, False, marks=pytest.mark.slow), (0.88, False), pytest.param(1.0, True, marks=pytest.mark.slow)])
def test_an_omega_that_vectors_of_two_levels_alone_attain_is_caught_where_it_is_too_small(share, holds, monkeypatch):
    """TernGrad's ω = (√d − 1)/2 is attained by one coordinate 1 and d − 1 of 1/(√d + 1)."""
    monkeypatch.setattr(signs.TernGrad, "omega", lambda self, dim: share * (np.sqrt(dim) - 1) / 2)
    wrong = [each.text for each in mc.testing.findings(mc.compressors["terngrad"]) if not each.holds]
    assert bool(wrong) != holds, wrong
    for text in wrong:
        d, a = re.search(r"for d = (\d+); at worst .* with a vector of 1 ones and (\S+) elsewhere", text).groups()
        assert float(a) == pytest.approx(1 / (1 + np.sqrt(int(d))), rel=1e-2), text


STOPS = {
    "right": """
        if row["loss"] < 0.9 * memory.get("least", 1e300):
            memory |= {"least": row["loss"], "since": 0}
        else:
            memory["since"] += 1
        return memory["since"] >= self.rows and "it stalls"
""",
    "keeps what it saw beside itself": """
        SEEN.append(row["loss"])
        return len(SEEN) >= self.rows and SEEN[-1] > 0.9 * SEEN[-self.rows]
""",
    "keeps what it saw in itself": """
        self.seen.append(row["loss"])
        return len(self.seen) >= self.rows
""",
    "answers by chance": "        return random.random() < 0.1",
    "answers a number": "        return row['loss']",
    "notes an array": "        memory['last'] = [row['loss']]\n        return False",
    "asks for a column that is not there": "        return row['lss'] < 1",
}
FOUND = {
    "right": set(), "keeps what it saw beside itself": {"calls", "checkpoints", "memory"},
    "keeps what it saw in itself": {"calls", "checkpoints", "memory"}, "answers by chance": {"calls", "checkpoints", "draws"},
    "answers a number": {"answers"}, "notes an array": {"answers"}, "asks for a column that is not there": {"answers"},
}  # fmt: skip


@pytest.mark.parametrize("which", STOPS)
def test_a_stop_is_asked_again_and_from_a_checkpoint(which, tmp_path, monkeypatch):
    text = f"""
import random
from dataclasses import dataclass, field
import mpi_compress as mc

SEEN = []

@mc.stops.register("mine")
@dataclass(frozen=True)
class Mine(mc.StopRule):
    rows: int = 5
    seen: list = field(default_factory=list)

    def ends(self, row, memory):
{STOPS[which].rstrip()}
"""
    (tmp_path / "mine_stops.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(importlib.sys.modules, "mine_stops", raising=False)
    importlib.import_module("mine_stops")
    wrong = {each.what for each in mc.testing.findings(mc.stops["mine"]) if not each.holds}
    assert wrong == FOUND[which]


def test_the_stops_of_a_job_are_checked_as_it_has_them(tmp_path, monkeypatch):
    right = STOPS["right"].rstrip()
    (tmp_path / "mine_stops.py").write_text(
        "import mpi_compress as mc\n@mc.stops.register('mine')\nclass Mine(mc.StopRule):\n    rows: int = 5\n"
        f"    def ends(self, row, memory):\n{right}\n"
    )
    job = tmp_path / "job.toml"
    job.write_text(
        'plugins = ["mine_stops"]\ndata = { generator = "gspar", samples = 20, dim = 4 }\nobjective.mu = 0.1\nworkers.count = 2\n'
        '[stop]\nrounds = 50\nmine = { rows = 3 }\n[[run]]\nlabel = "GD"\nalgorithm = { name = "gd" }\n'
    )
    done = here("check-part", "mine", "--job", str(job))
    assert done.returncode == 0, done.stderr
    assert "holds  checkpoints: a run that goes on from a checkpoint ends with the same record" in done.stdout


@pytest.mark.parametrize("name", ["kimad", "lstm", "hit-rate", "power-sgd", "libsvm", "affine"])
def test_a_part_that_cannot_be_checked_by_itself_is_refused_in_one_line(name):
    with pytest.raises(UserError, match=f"^{name}.*(is missing|--job JOB checks it as a job has it)$"):
        findings_by_name(name, {})


def test_parts_are_checked_as_a_job_has_them(tmp_path):
    (tmp_path / "rows").write_text("".join(f"{(-1) ** i} {1 + i % 3}:1 {4 + i % 5}:{i}\n" for i in range(1, 40)))
    job = tmp_path / "job.toml"
    job.write_text(
        'data = { path = "rows", format = "libsvm" }\nworkers = { count = 5, partition = "shuffled" }\nstop = { rounds = 2 }\n'
        'algorithm = { name = "cat" }\nlog = { metrics = ["accuracy"] }\n'
    )
    for name in ("libsvm", "shuffled", "cat", "accuracy"):
        (found,) = findings_in_job(name, mc.load_job(job)).values()
        assert found
        assert [each for each in found if not each.holds] == []


def test_a_compressor_is_checked_by_each_codec_and_with_all_parameters_that_runs_have(tmp_path):
    job = tmp_path / "job.toml"
    up = 'up = {{ compressor = {{ name = "top-k", k = {k} }}, codec = {{ name = "{codec}", float = {float} }} }}'
    runs = [up.format(k=k, codec=codec, float=form) for k, codec, form in ((2, "fixed", 32), (2, "rice", '"bf16"'), (2, "fixed", 32), (3, "fixed", 16))]
    runs[0] += '\ndown = { by = "ef21-p", compressor = { name = "top-k", k = 2 } }'
    runs.append('up = { compressor = { name = "blocks", of = { name = "top-k", k = 2 }, slices = 2 }, codec = { name = "blocks", float = 32 } }')
    job.write_text(
        'data = { generator = "gspar", samples = 20, dim = 8 }\nstop = { rounds = 2 }\nalgorithm = { name = "ef21", step = 0.1 }\n'
        + "".join(f'[[run]]\nlabel = "{i}"\n{text}\n' for i, text in enumerate(runs))
    )
    found = findings_in_job("top-k", mc.load_job(job))
    assert [each for of_run in found.values() for each in of_run if not each.holds] == []
    by = [re.search(r"by (\S+ with float = \w+)", str(each))[1] for each in map(str, map(list, found.values()))]
    assert by == ["fixed with float = 32", "fixed with float = 64", "rice with float = bf16", "fixed with float = 16"]
    first, second, *others = found
    assert first == 'TopK, in the run "0"'
    assert second.startswith(f"{first}, TopK(k=2), Fixed(float=64,")
    assert others == ['TopK, in the run "1"', 'TopK, in the run "3"']


def test_a_format_that_reads_its_shares_wrong_is_named(tmp_path):
    class LosesRows(Format):
        def read(self, path, dim, part, parts):
            return Reading(iter([(part, np.eye(2), np.ones(2))] if part < 2 else []))

    found = [str(each) for each in format_of_files(LosesRows(), (tmp_path, None))]
    assert found[-1] == "WRONG  shares: 3 shares, each block in the place of its number, are other samples than the whole"
    assert sum("WRONG" in each for each in found) == 1


def test_a_model_is_checked_on_the_data_of_a_job(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(
        'data = { generator = "tridiagonal", samples = 6 }\nobjective = { model = { name = "quadratic", dim = 9 } }\n'
        'stop = { rounds = 2 }\nalgorithm = { name = "ef21", step = 0.1 }\nup = { compressor = { name = "top-k", k = 2 } }\n'
    )
    for name in ("quadratic", "top-k", "ef21", "fixed"):
        found = findings_in_job(name, mc.load_job(job))
        assert [each for of_run in found.values() for each in of_run if not each.holds] == []
        assert all(found.values())
        assert name != "top-k" or "holds  dimensions: d = 12, 1000, 9; the job's is 9" in map(str, *found.values())
    with pytest.raises(UserError, match=r"'top'; .*'top-k'"):
        findings_in_job("top", mc.load_job(job))


@pytest.fixture
def wrong_parts(tmp_path, monkeypatch):
    (tmp_path / "wrong_parts.py").write_text(parts.WRONG + parts.WRONG_DATA)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("wrong_parts")


@pytest.mark.parametrize("name", [*parts.NAMED, *parts.NAMED_DATA])
@pytest.mark.usefixtures("wrong_parts")
def test_a_part_that_is_not_what_it_states_is_named(name):
    (part,) = (registry[name] for registry in registries if name in registry)
    with pytest.raises(AssertionError, match="WRONG  " + (f"{parts.NAMED[name]}: " if name in parts.NAMED else parts.NAMED_DATA[name])):
        mc.testing.check(part)


@pytest.fixture
def remembering(tmp_path):
    """A job with a plugin of several compressors that have a state, of which one run has one."""
    (tmp_path / "remembering.py").write_text(parts.REMEMBERING)
    (tmp_path / "job.toml").write_text(
        'plugins = ["remembering"]\ndata = { generator = "gspar", samples = 40, dim = 14 }\nobjective = { mu = 0.1 }\n'
        'stop = { rounds = 2 }\nalgorithm = { name = "ef", step = 0.1 }\nup = { compressor = { name = "by-age", k = 3 } }\n'
    )
    return mc.load_job(tmp_path / "job.toml")


@pytest.mark.parametrize(("name", "k"), [
    pytest.param(name, k, marks=pytest.mark.slow if (name, k) == ("first-random", "10%") else []) for name in parts.BREAKS for k in (1, "10%")
])  # fmt: skip
@pytest.mark.usefixtures("remembering")
def test_a_compressor_whose_state_breaks_its_theorem_is_named_with_the_vector_and_what_came_before(name, k):
    theorem, told = parts.BREAKS[name]
    found = mc.testing.findings(mc.compressors[name](k))
    (wrong,) = [each for each in found if not each.holds]
    assert (wrong.what, wrong.by) == (theorem, "after rounds")
    assert told in str(wrong)


QUICK = ("honest-top", 1), ("honest-top", "10%")
ALL = [(name, k) for name in parts.HONEST for k in (1, "10%", 3)]


@pytest.mark.parametrize(("name", "k"), [case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in ALL])
def test_a_compressor_whose_state_does_no_harm_passes(name, k, remembering):
    (found,) = findings_in_job(name, remembering, {"k": k}).values()
    assert [each for each in found if not each.holds] == []
    c = mc.compressors[name](k)
    assert any(each.what in ("δ", "ω") for each in after_rounds(c, links_in_runs(c)))


def test_every_part_of_a_jobs_plugins_is_found_and_all_are_listed_where_there_is_no_such(remembering):
    folder = remembering.runs[0].folder
    said = [
        here("check-part", name, "--job", folder / "job.toml", "-v") for name in ("by-age", "honest-top", "descent-of-plugin")
    ]
    assert [each.returncode for each in said] == [1, 0, 0]
    assert [re.sub(r" of \S*/", " of ", each.stdout.splitlines()[0]) for each in said] == [
        'by-age (ByAge of remembering.py, in the run "job"):', "honest-top (HonestTop of remembering.py, in no run):",
        "descent-of-plugin (Descent of remembering.py, in no run):",
    ]  # fmt: skip
    assert "was found with a vector (0.4, 0.4, 0.4, …, 1)" in said[0].stdout
    assert "holds  dimensions: d = 12, 1000, 14; the job's is 14 [compress]" in said[1].stdout
    assert (
        "n = 3: 6 rounds are the same where each worker is by itself, and saved and read after each [rounds]"
        in said[2].stdout
    )
    with pytest.raises(UserError) as caught:
        findings_in_job("honest-bottom", remembering)
    assert str(caught.value).startswith("no part in this job called 'honest-bottom'; did you mean 'honest-top'?")


def test_parameters_of_a_part_that_a_run_has_are_the_runs(remembering):
    with pytest.raises(UserError, match=r"^by-age: its parameters are those of the job's runs; leave k out$"):
        findings_in_job("by-age", remembering, {"k": 2})


@pytest.fixture
def twelve(tmp_path):
    (tmp_path / "helper_of_twelve.py").write_text(parts.HELPER)
    (tmp_path / "twelve.py").write_text(parts.DEPENDENT)

    def of(*names):
        file = tmp_path / "job.toml"
        file.write_text(parts.job_of_twelve(*names))
        return file

    return of


RARE = ("random-sample", "seeded-once", "mutable-default", "helper-counts")  # each beside one of its kind


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in RARE)) for name in parts.KEEPS])
def test_what_a_part_keeps_or_draws_beside_its_state_is_seen_by_check_part(name, twelve):
    (found,) = findings_in_job(name, mc.load_job(twelve((name,)))).values()
    assert [each for each in found if not each.holds and re.search(parts.KEEPS[name], f"{each.what}: {each.text}")], found


@pytest.mark.slow
def test_verification_names_each_of_twelve_parts_that_depend_on_the_layout_and_no_other(twelve):
    found = {each.label: each for each in verify(mc.load_job(twelve()))}
    steady = found.pop("steady")
    assert steady.holds
    assert steady.text.startswith(
        f"{ROUNDS} rounds are the same with another PYTHONHASHSEED and the workers in the opposite order, on 3 ranks, on from"
    )
    assert set(found) == {*parts.COMPRESSORS, *parts.ALGORITHMS}
    for name, each in found.items():
        assert not each.holds, each
        assert f"it comes from {name} (" in each.text
    assert "message differs in round 5, run" in found["from-round-5"].text


@pytest.mark.slow
def test_verification_says_that_there_is_no_mpiexec(twelve, monkeypatch):
    monkeypatch.setattr("mpi_compress.engine.verifying._mpiexec", lambda: None)
    (steady,) = mc.verify(twelve(("steady",)), rounds=2)
    assert steady.holds
    assert "there is no mpiexec here to start several ranks" in steady.text


OWN_PROBLEM = """
from dataclasses import dataclass
import numpy as np
import mpi_compress as mc

@mc.datasets.register("clusters")
@dataclass(frozen=True)
class Clusters(mc.Generator):
    samples: int = 60
    dim: int = 5
    real_labels = True

    def make(self):
        y = np.arange(self.samples) % 3
        a = self.stream(0).standard_normal((self.samples, self.dim)) + y[:, None]
        yield a[:20], y[:20]
        yield a[20:], y[20:]

@mc.formats.register("numbers")
@dataclass(frozen=True)
class Numbers(mc.Format):
    names = r"\\.numbers$"

    def read(self, path, dim, part, parts):
        rows = np.loadtxt(path)
        starts = range(0, len(rows), 10)
        blocks = ((i, rows[at : at + 10, 1:], rows[at : at + 10, 0]) for i, at in enumerate(starts) if i % parts == part)
        return mc.Reading(blocks, dim=rows.shape[1] - 1)

@mc.models.register("two-layers")
@dataclass(frozen=True)
class TwoLayers(mc.Model):
    hidden: int = 4
    slope: float = 1.0

    def check(self):
        if self.outline.classes != 3:
            raise ValueError(f"{self.outline.classes} classes; it is for 3")

    @property
    def blocks(self):
        return {"V": (self.outline.features, self.hidden), "W": (self.hidden, 3)}

    def start(self, rng):
        return rng.standard_normal(self.dim) / 2

    def loss_and_gradient(self, x, rows, draw):
        V, W = self.split(x).values()
        a, y = rows.dense(), rows.labels.astype(int)
        h = np.tanh(a @ V)
        p = np.exp(h @ W)
        p /= p.sum(axis=1, keepdims=True)
        loss = -np.log(p[np.arange(y.size), y]).mean()
        p[np.arange(y.size), y] -= 1
        p /= y.size
        return loss, self.slope * np.concatenate([(a.T @ ((p @ W.T) * (1 - h * h))).ravel(), (h.T @ p).ravel()])

    def scores(self, x, rows):
        V, W = self.split(x).values()
        return np.tanh(rows.dense() @ V) @ W
"""


@pytest.fixture
def own_problem(tmp_path):
    """A job of a model and data of one's own, from a generator or a file of one's own format."""
    (tmp_path / "own_problem.py").write_text(OWN_PROBLEM)
    rows = np.random.default_rng(0).standard_normal((45, 5)) + np.arange(45)[:, None] % 3
    (tmp_path / "a.numbers").write_text("".join(f"{i % 3} {' '.join(f'{v:.4f}' for v in row)}\n" for i, row in enumerate(rows)))

    def of(data, model='"two-layers"', source=OWN_PROBLEM):
        (tmp_path / "own_problem.py").write_text(source)
        file = tmp_path / "own_problem.toml"
        file.write_text(
            f'plugins = ["own_problem"]\ndata = {{ {data} }}\nobjective = {{ model = {model} }}\nworkers = {{ count = 4 }}\n'
            'stop = { rounds = 6 }\nlog = { metrics = ["accuracy"] }\n[[run]]\nlabel = "EF21"\nalgorithm = { name = "ef21", step = 0.1 }\n'
            'up.compressor = { name = "top-k", k = 5 }\n[[run]]\nlabel = "SGD"\nalgorithm = { name = "sgd", step = 0.1, batch = 4 }\n'
        )
        return file

    return of


@pytest.mark.parametrize(("data", "part"), [('generator = "clusters"', "clusters"), ('path = "a.numbers"', "numbers")])
def test_a_model_with_data_of_its_own_is_checked_in_its_job(data, part, own_problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (part, "two-layers"):
        found = findings_in_job(name, mc.load_job(own_problem(data)))
        assert [str(each) for of_run in found.values() for each in of_run if not each.holds] == []
        assert all(len(of_run) >= 3 for of_run in found.values())
    wrong = findings_in_job("two-layers", mc.load_job(own_problem(data, '{ name = "two-layers", slope = 1.1 }')))
    assert {each.what for of_run in wrong.values() for each in of_run if not each.holds} == {"gradient"}


@pytest.mark.slow
@pytest.mark.parametrize("data", ['generator = "clusters"', 'path = "a.numbers"'])
def test_a_model_with_data_of_its_own_is_verified(data, own_problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = command("run", own_problem(data), "--verify", "4", timeout=400)
    assert said.returncode == 0, said.stdout + said.stderr
    assert [line.partition(":")[0] for line in said.stdout.splitlines()] == ["EF21", "SGD"]
    assert said.stdout.count("4 rounds are the same") == 2


def test_a_pattern_of_names_that_is_none_is_one_line(own_problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = own_problem('path = "a.numbers"', source=OWN_PROBLEM.replace(r"\.numbers$", "*.numbers"))
    with pytest.raises(
        UserError, match=r"^[^\n]*the format 'numbers': names = '\*.numbers' was given; it should be a regular expression[^\n]*$"
    ):
        mc.run(mc.load_job(file), out=tmp_path)
