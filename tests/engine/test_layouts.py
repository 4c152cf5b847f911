"""A run gives the same bytes wherever it is played: on any ranks, stopped and resumed, with kernels compiled or cached.

All jobs are played by one start of MPI for each number of ranks, and every result is compared with that of one process.
"""

import re
import subprocess
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tomli_w
from fixtures.runs import of
from helpers.examples import ALGORITHMS, CHANGING, GENERATED, SHARED_MEMORY
from helpers.layouts import Ended, Layout, Plan, assert_equal, play, play_all, results
from helpers.problems import problem_files, problems_job
from helpers.refusals import naming
from helpers.running import BIN, PATIENT, SMALL_JOB
from helpers.timed import ARRIVALS, QUEUE, THREE_IN_TURN

import mpi_compress as mc
from mpi_compress.algorithms import algorithms
from mpi_compress.results.reader import attributes
from mpi_compress.saving import checkpoint


def runs(tables: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"label": label, **more} for label, more in tables.items()]


THEORY = {
    **{"data": GENERATED["data"], "objective": {"loss": "squared-hinge", "mu": "1e-3 L"}, "workers": {"count": 5}},
    **{"stop": {"rounds": 12}, "log": {"theory": True, "every": 3}, "cost": {"model": "wire"}},
    "run": runs(
        {
            "top-k": of("cat", "top-k", batch=5),
            "sq": of("cat", "sq", batch=4, sampling="epoch"),
            "stochastic": of("cat", "stochastic", batch=6),
            "V of vectors": of("marina", {"name": "random-k", "k": 3}),
            "V at x*": of("diana", {"name": "random-k", "k": 3}),
        }
    ),
}
OWN_PARTS = """
from dataclasses import dataclass
import numpy as np
import mpi_compress as mc

@mc.compressors.register("mine")
@dataclass(frozen=True)
class Mine(mc.Compressor):
    share: float = 0.5

    def compress(self, v, t):
        i = t.rng.permutation(v.size)[:3]
        return mc.Sparse(v.size, i, v[i])

@mc.compressors.register("in-turn")
@dataclass(frozen=True)
class InTurn(mc.Compressor):
    k: int = 3

    def start(self, dim):
        return {"next": 0, "sent": np.zeros(dim), "lengths": []}

    def compress(self, v, t, state):
        i = (state["next"] + np.arange(self.k)) % v.size
        state["next"] += self.k
        state["sent"][i] += v[i]
        state["lengths"].append(float(abs(state["sent"]).sum()))
        return mc.Sparse(v.size, i, v[i] + 1e-3 * sum(state["lengths"]))

@dataclass
class Node:
    x: np.ndarray

@mc.algorithms.register("in-part")
@dataclass(frozen=True)
class InPart(mc.Algorithm):
    step: mc.Step = "0.1/L"
    silent: bool = False

    def start(self, x0):
        return Node(x0.copy())

    def worker_sends(self, node, worker, f, t):
        return mc.SILENT if self.silent or t.rng.random() < 0.5 else self.up.pack(f.gradient(node.x), t)

    def master_answers(self, node, master, ups, t):
        return mc.SILENT if t.k % 3 == 1 else self.down.pack(self.mean(ups), t)

    def all_hear(self, node, down, t):
        down.add_to(node.x, -self.gamma(t.k))
"""
IN_TURN = {"name": "in-turn"}
OWN_PART = {
    **{"plugins": ["own_part"], "data": {"generator": "gspar", "samples": 40, "dim": 20}, "objective": {"mu": 0.1}},
    **{"workers": {"count": 4}, "stop": {"rounds": 10}},
    "run": runs(
        {
            "own part": of("ef", "mine"),
            "in turn": of("ef", IN_TURN, batch=2, down={"compressor": IN_TURN}),
            "in turn, gd": of("gd", {**IN_TURN, "k": 5}, down={"compressor": {**IN_TURN, "k": 4}}),
            "in part": of("in-part", IN_TURN),
            "in part, levels": of("in-part", {"name": "qsgd", "levels": 4}),
            "nobody": of("in-part", {"name": "lattice", "sigma": 0.1}, silent=True),
        }
    ),
}

MANY_WORKERS = {
    **{**GENERATED, "workers": {"count": 70}, "stop": {"rounds": 8}, "log": {"every": 4, "count": ["padded", "values-only-32"]}},
    "run": runs(
        {
            "gd": of("gd"),
            "cat": of("cat", "sq"),
            "ef hard": of("ef", {"name": "hard-threshold", "threshold": 0.5}, batch=1),
            "marina-p": of("marina-p"),
            "bf16 down": of("ef21", {"name": "top-k", "k": 3}, down={"codec": {"float": "bf16"}}),
            "power-sgd": of("power-sgd", shapes=[[5, 6], [10]], batch=1),
            "some workers": of(
                "ef", "top-k", "bitmap", batch=1, budget="cat", cost=CHANGING, workers={"count": 70, "participate": 9}
            ),
            "one worker": of("diana", {"name": "random-k", "k": 3}, workers={"count": 1}),
        }
    ),
}


def too_fine(way: str) -> dict[str, Any]:
    """Two workers have small samples; the last one's gradients are 2³¹ steps of the grid and more."""
    return {
        **{"data": {"path": "uneven.svm"}, "objective": {"mu": 0.1}, "workers": {"count": 3}, "stop": {"rounds": 20}},
        "run": runs({"too fine": {"algorithm": {"name": "gd"}, way: {"compressor": {"name": "rounding", "step": 1e-9}}}}),
    }


SHORT = {label: run for label, run in ALGORITHMS.items() if run["algorithm"]["name"] == "ship-data"}
LONG = {label: run for label, run in ALGORITHMS.items() if label not in SHORT}  # runs of several rounds, which can be stopped
ONE_EACH = {run["algorithm"]["name"]: (label, run) for label, run in LONG.items()}.values()
JOBS: dict[str, str] = {
    "algorithms": tomli_w.dumps({**GENERATED, "run": runs(LONG)}),
    "one-round": tomli_w.dumps({**GENERATED, "run": runs(SHORT)}),
    "one-each": tomli_w.dumps({**GENERATED, "run": runs(dict(ONE_EACH))}),
    "small": SMALL_JOB,
    "theory": tomli_w.dumps(THEORY),
    "many": tomli_w.dumps(MANY_WORKERS),
    "own-part": tomli_w.dumps(OWN_PART),
    "too-fine-up": tomli_w.dumps(too_fine("up")),
    "too-fine-down": tomli_w.dumps(too_fine("down")),
    "problems": tomli_w.dumps(problems_job()),
    "shared-memory": tomli_w.dumps({**GENERATED, "run": runs(SHARED_MEMORY)}),
    "arrivals": tomli_w.dumps(ARRIVALS),
    "queue": tomli_w.dumps(QUEUE),
    "some-each": tomli_w.dumps({**GENERATED, "run": runs(dict([*ONE_EACH][::3]))}),
    "some-queued": tomli_w.dumps({**QUEUE, "run": [run for i, run in enumerate(QUEUE["run"]) if i > 15 or i % 2 == i // 8]}),
}
WHOLE = {"some-each": "one-each", "some-queued": "queue"}
"""Jobs of some runs of another job, which is played in one process."""
TIMED = ("arrivals", "queue")  # which have no allgather
ON_RANKS = tuple(name for name in JOBS if name not in ("shared-memory", "one-each", *TIMED, *WHOLE))
FEW = ("one-round", "small", "many", "own-part", "too-fine-up", "too-fine-down")

MASTER_WORKS, APART = {"workers.master": "worker"}, {"workers.master": "dedicated"}
ALLGATHER = {"workers.exchange": "allgather"}


class Way(NamedTuple):
    """How jobs are played: a later layout resumes, in the same folder, what an earlier one stopped."""

    jobs: tuple[str, ...]
    layouts: tuple[Layout, ...]


ONE, ALL = "one process", "one process, all settings"  # what all others are compared with
WAYS = {
    ONE: Way(tuple(name for name in JOBS if name not in ("algorithms", *WHOLE)), (Layout(),)),
    "three ranks": Way(("one-each", *ON_RANKS[1:], "arrivals", "some-queued"), (Layout(3),)),
    "three ranks, the master apart": Way((*FEW, "arrivals"), (Layout(3, APART),)),
    "allgather in one process": Way(("small", "own-part"), (Layout(None, ALLGATHER),)),
    "allgather on three ranks": Way(("small",), (Layout(3, ALLGATHER),)),
    "stopped and resumed in one process": Way(("own-part", "shared-memory", "arrivals"), (Layout(stop_after=3, until_done=True),)),
    "stopped on three ranks, resumed in one process": Way(("some-each", "arrivals"), (Layout(3, stop_after=3), Layout())),
}
SLOW_WAYS = {
    ALL: Way(("algorithms",), (Layout(),)),
    "three ranks, all settings": Way(("algorithms", "queue"), (Layout(3),)),
    "allgather in one process, all settings": Way(ON_RANKS, (Layout(None, ALLGATHER),)),
    "allgather on three ranks, each method": Way(("one-each",), (Layout(3, ALLGATHER),)),
    "stopped on three ranks, resumed in one process, each method, many workers and a queue": Way(
        ("one-each", "many", "queue"), (Layout(3, stop_after=3), Layout())
    ),
    "three ranks, the master apart, each method": Way(("one-each", "queue"), (Layout(3, APART),)),
    "five ranks, more than three workers need": Way(ON_RANKS, (Layout(5),)),
    "four ranks, the master hosts workers": Way(ON_RANKS, (Layout(4, MASTER_WORKS),)),
    "allgather on five ranks, more than three workers need": Way(ON_RANKS, (Layout(5, ALLGATHER),)),
    "stopped on two ranks, resumed in one process": Way(("algorithms",), (Layout(2, stop_after=3), Layout())),
    "stopped again and again in one process": Way(("one-each", "problems", "queue"), (Layout(stop_after=3, until_done=True),)),
    "one rank": Way(ON_RANKS, (Layout(1),)),
    "two ranks": Way((*ON_RANKS, *TIMED), (Layout(2),)),
    "ten ranks, more than seven workers need": Way(ON_RANKS, (Layout(10),)),
    "allgather on ten ranks, more than seven workers need": Way(ON_RANKS, (Layout(10, ALLGATHER),)),
    "twenty-one ranks": Way(ON_RANKS, (Layout(21),)),
    "five ranks, the master hosts workers": Way(ON_RANKS, (Layout(5, MASTER_WORKS),)),
    "stopped on four ranks, on five where the master works, on three where it is apart, resumed in one process": Way(
        ("algorithms",), (Layout(4, stop_after=3), Layout(5, MASTER_WORKS, stop_after=2), Layout(3, APART, stop_after=1), Layout())
    ),
    "stopped in one process, resumed by allgather on four ranks": Way(
        ("algorithms",), (Layout(stop_after=3), Layout(4, ALLGATHER))
    ),
}
STATUS = {"too-fine-up": 3, "too-fine-down": 3}  # these diverge

Played = dict[tuple[str, str], Path]  # the result of each job and label


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> Path:
    """The folder of the jobs."""
    folder = tmp_path_factory.mktemp("jobs")
    for name, text in JOBS.items():
        (folder / f"{name}.toml").write_text(text)
    for name, text in {"own_part.py": OWN_PARTS, "three_in_turn.py": THREE_IN_TURN, **problem_files()}.items():
        (folder / name).write_text(text)
    (folder / "uneven.svm").write_text("".join(f"{y} 1:{y * size}\n" for size in (1, 1, 1e3) for y in (-1, 1)))
    return folder


@pytest.fixture(scope="module")
def begun(jobs, tmp_path_factory) -> Callable[[str], tuple[Path, Ended]]:
    """The folder of a way, and what became of its jobs on its first layout: ways on equally many ranks are begun by one start."""
    failed: set[int | None] = set()

    @cache
    def on_ranks(ranks: int | None) -> dict[str, tuple[Path, Ended]]:
        assert ranks not in failed, "it was played before, and failed"
        failed.add(ranks)
        plans = {
            name: Plan([jobs / f"{job}.toml" for job in way.jobs], tmp_path_factory.mktemp("out"), way.layouts[0])
            for name, way in WAYS.items()
            if way.layouts[0].ranks == ranks
        }
        found = dict(zip(plans, play_all([*plans.values()]), strict=True))
        failed.remove(ranks)
        return {name: (plan.out, found[name]) for name, plan in plans.items()}

    def begin(name: str) -> tuple[Path, Ended]:
        if name in WAYS:
            return on_ranks(WAYS[name].layouts[0].ranks)[name]
        way, out = SLOW_WAYS[name], tmp_path_factory.mktemp("out")
        return out, play([jobs / f"{job}.toml" for job in way.jobs], out, way.layouts[0])

    return begin


@pytest.fixture(scope="module")
def played(jobs, begun) -> Callable[[str], Played]:
    """Plays the jobs in a given way, once."""

    failed: set[str] = set()

    @cache
    def play_once(name: str) -> Played:
        assert name not in failed, "it was played before, and failed"
        failed.add(name)
        way = {**WAYS, **SLOW_WAYS}[name]
        files = [jobs / f"{name}.toml" for name in way.jobs]
        out, ended = begun(name)
        rounds: dict[Path, int] = {}
        for i, layout in enumerate(way.layouts):
            ended = play(files, out, layout) if i else ended
            if layout.stop_after is None:
                assert ended == {file: STATUS.get(file.stem, 0) for file in files}
            else:
                assert min(min(stops) for stops in ended.values()) >= 1
                assert_all_saved(out, layout, rounds, sum(job in way.jobs for job, _ in LABELS))
        assert {f.suffix for f in out.rglob("*") if f.is_file()} <= {".h5", ".ckpt"}  # a result, and its last state
        failed.remove(name)
        return results(out)

    return play_once


def assert_all_saved(out: Path, layout: Layout, rounds: dict[Path, int], n: int) -> None:
    """Every one of n runs that was stopped once is saved, later than in `rounds`, which is brought up to date."""
    parts = list(out.rglob("*.part"))
    assert len(parts) == (0 if layout.until_done else n)
    for part in parts:
        run = mc.read(part)
        assert (run.status, run.attrs["n_ranks"]) == ("stopped", layout.ranks or 1)
        saved = checkpoint.read_header(part.with_suffix(".ckpt")).k
        assert saved > rounds.get(part, 0)
        rounds[part] = saved


LABELS = [(name, run["label"]) for name, text in JOBS.items() for run in tomllib.loads(text)["run"]]
FAST, SLOW = (
    [(n, *case) for n, way in ways.items() if n not in (ONE, ALL) for case in LABELS if case[0] in way.jobs] for ways in (WAYS, SLOW_WAYS)
)


@pytest.mark.parametrize(("way", "job", "label"), [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)])
def test_a_result_is_equal_byte_for_byte_on(way, job, label, played):
    whole = WHOLE.get(job, job)
    one, other = played(ONE if whole in WAYS[ONE].jobs else ALL)[whole, label], played(way)[job, label]
    last = {**WAYS, **SLOW_WAYS}[way].layouts[-1]
    assert attributes(other)["n_ranks"] == (last.ranks or 1)
    assert_equal(one, other, last.left_out)


def test_every_algorithm_has_an_example():
    assert {run["algorithm"]["name"] for run in (*ALGORITHMS.values(), *SHARED_MEMORY.values())} == set(algorithms)


@pytest.mark.parametrize(("way", "who"), [("up", "worker 2"), ("down", "the master")])
def test_a_diverged_run_names_who_could_not_send_and_what_to_change(way, who, played):
    run = mc.read(played(ONE)[f"too-fine-{way}", "too fine"])
    assert run.status == "diverged"
    assert re.search(naming(f"update of round 0 is not finite: {who}: magnitude larger step"), run.attrs["reason"])


@pytest.mark.parametrize(
    ("way", "on_rank_0"),
    [("three ranks", 2), ("three ranks, the master apart", 0), ("allgather on three ranks", 2)],
)
def test_bytes_received_from_other_ranks_are_those_logged_for_their_workers(way, on_rank_0, played):
    run = mc.read(played(way)["small", "top-3"])
    per_worker = run.workers["wire_bits_up"][-1]
    assert 8 * run.attrs["mpi_bytes_received_up"] == per_worker[on_rank_0:].sum()
    assert per_worker.sum() == run.trace["wire_bits_up"][-1]


@pytest.mark.parametrize("way", ["allgather in one process", "allgather on three ranks"])
def test_allgather_has_no_messages_down(way, played):
    run = mc.read(played(way)["small", "top-3"])
    assert [run.trace[name].max() for name in ("wire_bits_down", "paper_bits_down", "cost_down")] == [0, 0, 0]


def test_silence_costs_its_length_alone(played):
    run = mc.read(played(ONE)["own-part", "nobody"])
    assert run.trace["wire_bits_up"].tolist() == [32 * 4 * k for k in run.trace["round"]]
    assert not run.trace["paper_bits_up"].any()
    assert np.all(run.trace["loss"] == run.trace["loss"][0])


def test_theory_is_logged_for_every_row_and_sparsity(played):
    for label in ("V at x*", "V of vectors"):
        assert np.all(mc.read(played(ONE)["theory", label]).trace["lyapunov"] > 0)
    for label in ("top-k", "sq", "stochastic"):
        run = mc.read(played(ONE)["theory", label])
        assert run.theory["alpha"].shape == (5, run.attrs["theory_T"].size)


WATCH = """
import hashlib, sys
from mpi4py import MPI
import mpi_compress as mc
from mpi_compress.engine import executing
from mpi_compress.exchange import Exchange
from mpi_compress.engine.observer import Observer

seen = []

class Watch(Observer):
    def look(self, k, algorithm, node, workers, finite, master=None):
        if type(self.exchange) is not Exchange:
            held = hashlib.sha256(b"".join(a.tobytes() for a in vars(node).values() if hasattr(a, "tobytes"))).digest()
            everyone = MPI.COMM_WORLD.allgather(held)
            assert len(set(everyone)) == 1, f"round {k}"
            seen.append(k)
        return super().look(k, algorithm, node, workers, finite, master)

executing.Observer = Watch
job = mc.load_job(sys.argv[1])
runs = mc.run(job, comm=MPI.COMM_WORLD, out=sys.argv[2])
assert len(runs) == (len(job.runs) if MPI.COMM_WORLD.rank == 0 else 0)
assert len(seen) > 7 * len(job.runs)
"""


def test_by_a_python_call_every_rank_holds_the_same_node_at_every_round_and_the_bytes_are_the_same(jobs, played, tmp_path):
    line = [BIN / "mpiexec", "-n", "2", BIN / "python", "-m", "mpi4py", "-c", WATCH, jobs / "small.toml", tmp_path]
    done = subprocess.run([str(a) for a in line], capture_output=True, text=True, timeout=PATIENT)
    assert done.returncode == 0, done.stderr
    for case, file in results(tmp_path).items():
        assert_equal(played(ONE)[case], file)


COMPILED = """
data = { generator = "gspar", samples = 60, dim = 5000 }
objective.mu = "1e-3 L"
workers.count = 2
stop.rounds = 6
[[run]]
label = "EF"
algorithm = { name = "ef", batch = 2 }
up = { compressor = { name = "hard-threshold", threshold = 0.1 } }
[[run]]
label = "CAT"
algorithm = { name = "cat" }
up = { compressor = "stochastic" }
"""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_from_the_cache_give_the_bits_of_those_that_were_compiled_here(dtype, tmp_path, monkeypatch):
    """Ranks of one run have both: one compiles, the others read what it wrote."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    job = tmp_path / f"{dtype}.toml"
    job.write_text(COMPILED.replace("dim = 5000", f'dim = 5000, dtype = "{dtype}"'))
    for folder in ("compiled", "cached"):
        assert play([job], tmp_path / folder, Layout()) == {job: 0}
    compiled, cached = (results(tmp_path / folder) for folder in ("compiled", "cached"))
    assert len(compiled) == 2
    for case, file in compiled.items():
        assert_equal(file, cached[case])
