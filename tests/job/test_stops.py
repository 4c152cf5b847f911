"""Targets and budgets of [stop], and stops that plugins register: they end a run in the same row on any layout, and where it went on from a checkpoint."""

import pytest
from helpers.layouts import Layout, Plan, assert_equal, play_all, results
from helpers.refusals import naming

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import is_ours
from mpi_compress.results.columns import column_of
from mpi_compress.results.targets import Target

SOURCE = """
from dataclasses import dataclass
import mpi_compress as mc

@mc.stops.register("stalled")
@dataclass(frozen=True)
class Stalled(mc.StopRule):
    rows: int = 3
    share: float = 0.05

    def ends(self, row, memory):
        if row["loss"] < (1 - self.share) * memory.get("least", 1e9):
            memory |= {"least": row["loss"], "since": 0}
        else:
            memory["since"] += 1
        return f"the loss stays at {memory['least']:.3g}" if memory["since"] >= self.rows else False

@mc.stops.register("in-round")
@dataclass(frozen=True)
class InRound(mc.StopRule):
    last: int = 4

    def ends(self, row, memory):
        return row["round"] >= self.last and row["accuracy"] > 0

@mc.stops.register("odd")
class Odd(mc.StopRule):
    answer: str = "number"
    seen = []

    def ends(self, row, memory):
        if self.answer == "memory":
            memory["loss"] = [row["loss"]]
        return 3 if self.answer == "number" else False
"""
JOB = """
plugins = ["own_stops"]
data = {{ generator = "gspar", samples = 60, dim = 12 }}
objective = {{ mu = 0.1 }}
workers = {{ count = 4 }}
log = {{ every = 2, metrics = ["accuracy"] }}
stop = {{ rounds = 400, {stop} }}
[[run]]
label = "EF"
algorithm = {{ name = "ef", step = "0.5/L" }}
up = {{ compressor = {{ name = "top-k", k = 2 }} }}
"""


RULES = ["stalled = { rows = 4 }"]  # each ends the job above; every rule of the package is among them


@pytest.fixture
def job(tmp_path):
    (tmp_path / "own_stops.py").write_text(SOURCE)

    def of(stop=RULES[0]):
        file = tmp_path / "stops.toml"
        file.write_text(JOB.format(stop=stop))
        return file

    return of


def test_a_stop_of_one_s_own_ends_a_run_and_says_why(job, tmp_path):
    (run,) = mc.run(mc.load_job(job()), out=tmp_path)
    assert run.status == "complete"
    loss, ended = run.trace["loss"], int(run.trace["round"][-1])
    assert run.attrs["reason"] == f"stalled: the loss stays at {loss[-5]:.3g}, after {ended} rounds"
    assert 0 < ended < 400
    assert loss[-1] >= 0.95 * loss[-5]
    (other,) = mc.run(mc.load_job(job("stalled = { rows = 5 }")), out=tmp_path)
    assert other.trace["round"][-1] == ended + 2
    assert other.attrs["run_id"] != run.attrs["run_id"]


def test_it_sees_metrics_and_true_is_named_by_the_stop(job, tmp_path):
    (run,) = mc.run(mc.load_job(job("in-round = {}, stalled = { rows = 300 }")), out=tmp_path)
    assert run.attrs["reason"] == "in-round, after 4 rounds"


def test_every_rule_of_the_package_has_an_example():
    assert {name for name, rule in mc.stops.items() if is_ours(rule)} <= {stop.partition(" ")[0] for stop in RULES}


@pytest.mark.parametrize("stop", RULES)
def test_it_ends_in_the_same_row_on_any_layout_and_after_kills(stop, job, tmp_path):
    file = job(stop)
    layouts = {"one": Layout(), "three": Layout(ranks=3), "stopped": Layout(stop_after=5, until_done=True)}
    for name, layout in layouts.items():
        play_all([Plan([file], tmp_path / name, layout)])
    ((_, one),) = results(tmp_path / "one").items()
    for name in ("three", "stopped"):
        ((_, other),) = results(tmp_path / name).items()
        assert mc.read(other).attrs["reason"] == mc.read(one).attrs["reason"]
        assert mc.read(other).attrs["reason"].startswith(stop.partition(" ")[0])
        assert_equal(one, other)


@pytest.mark.parametrize(("stop", "complaint"), [
    ("staled = {}", "stop staled stalled"),
    ("stalled = 3", "stop.stalled: 3 a table of its parameters"),
    ("stalled = { row = 3 }", "stop.stalled row rows"),
    ("stalled = { rows = 'a' }", "stop.stalled.rows a"),
    ("odd = {}", "stop.odd: ends gives 3; it should be True, False, or why in words"),
    ("odd = { answer = 'memory' }", "stop.odd: memory['loss'] = [ ; it should be a number by a name"),
])  # fmt: skip
def test_a_wrong_stop_is_refused_in_one_line(stop, complaint, job, tmp_path):
    with pytest.raises(UserError, match=naming(complaint)):
        mc.run(mc.load_job(job(f"{stop}")), out=tmp_path)


def test_a_run_needs_a_level_or_a_budget_beside_it(job):
    file = job()
    file.write_text(file.read_text().replace("rounds = 400, ", ""))
    with pytest.raises(UserError, match="stop: rounds = … is needed"):
        mc.load_job(file)


PLAIN = """
data = {{ generator = "gspar", samples = 60, dim = 12 }}
objective = {{ mu = 0.1 }}
workers = {{ count = 4 }}
algorithm = {{ name = "ef", step = "0.5/L" }}
up = {{ compressor = {{ name = "top-k", k = 2 }} }}
{more}
stop = {{ {stop} }}
"""
LINKS = 'cost = { model = "trace", rows = [["0 s", "1 ms", "1 Mbit/s"]] }'
ENDS = [  # [stop], what the job has beside, and the column of its key
    ("wire_bits = 6000", "log.every = 10", "wire_bits"), ("paper_bits_up = 3000", "log.every = 10", "paper_bits_up"),
    ("bits_cat = 3000", 'log = { every = 10, count = ["cat"] }', "bits_cat"), ("epoch = 5", "", "epoch"),
    ("accuracy = 0.7", 'log.metrics = ["accuracy"]', "accuracy"), ("distance = 0.5", "", "distance"),
    ("nonzeros = 12", 'log.metrics = ["nonzeros"]', "nonzeros"), ("error_norm = 0.05", "", "error_norm"),
    ("squared_error = 2e-3", "", "squared_error"), ("relative_distance = 0.5", "", "relative_distance"), ("bits_up = 20", "", "bits_up"),
]  # fmt: skip


@pytest.mark.parametrize(("stop", "more", "column"), ENDS, ids=[column for *_, column in ENDS])
def test_any_column_that_a_run_logs_ends_it_as_its_result_says(stop, more, column, tmp_path):
    (tmp_path / "any.toml").write_text(PLAIN.format(stop=f"rounds = 200, {stop}", more=more))
    (run,) = mc.run(mc.load_job(tmp_path / "any.toml"), out=tmp_path)
    target = Target.of(column, float(stop.split(" = ")[1]), run.rising)
    ended = run.trace["round"][-1]
    assert run.trace["round"][target.row_of(run)] == ended < 200
    assert run.ended_by == str(target)
    if column_of(column).counted:
        assert ended % 10, "it is judged every round"


def test_the_clock_of_the_links_is_a_budget(tmp_path):
    (tmp_path / "links.toml").write_text(PLAIN.format(stop='rounds = 200, model_seconds = "20 ms"', more=f"{LINKS}\nlog.every = 50"))
    (run,) = mc.run(mc.load_job(tmp_path / "links.toml"), out=tmp_path)
    assert run.trace["model_seconds"][-1] >= 0.02 > run.trace["model_seconds"][-1] * (1 - 1 / run.trace["round"][-1]) - 1e-3


@pytest.mark.parametrize(("stop", "complaint"), [
    ("los = 1", "stop los loss"), ("round = 3", "stop round rounds"), ("kappa = 3", "stop kappa"), ("worst_case = 1", "stop worst_case"),
    ("test_accuracy = 0.9", "stop.test_accuracy: not test set: [data] test ="), ("model_seconds = 3", "stop.model_seconds: not clock [cost]"),
    ("bits_cat = 3", "stop.bits_cat: not [log] count"), ("lyapunov = 1", "stop.lyapunov: not [log] theory"), ("hit_rate = 0.5", "stop hit_rate"),
    ("budget = 3", "stop budget logs"), ("loss = '1'", "stop.loss: '1' number"), ("diverged = 3", "stop: rounds = … is needed"),
])  # fmt: skip
def test_a_column_that_the_run_does_not_log_is_refused_in_one_line(stop, complaint, tmp_path):
    (tmp_path / "no.toml").write_text(PLAIN.format(stop=stop, more=""))
    with pytest.raises(UserError, match=naming(complaint)):
        mc.run(mc.load_job(tmp_path / "no.toml"), out=tmp_path)
