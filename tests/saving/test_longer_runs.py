"""A longer run goes on from the last state of a shorter one, to the bytes of one that was never stopped."""

import subprocess

import pytest
from helpers.layouts import assert_equal
from helpers.own_parts import module_in
from helpers.running import BIN, GSPAR, PATIENT, command, gone_on, here, rows_in, wait_for

import mpi_compress as mc
from mpi_compress.core.signals import Interrupts
from mpi_compress.engine import keeper
from mpi_compress.engine.request import Request
from mpi_compress.engine.runner import run_as
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.results.files import checkpoint_of, part_of, set_aside

TABLES = {"title": "longer", "data": GSPAR, "workers": {"count": 4}, "objective": {"mu": 1e-3}, "log": {"every": 7}}
DIANA = {"algorithm": {"name": "diana", "step": "0.1/L"}, "up": {"compressor": {"name": "qsgd", "levels": 4}}}
EF21 = {"algorithm": {"name": "ef21"}, "up": {"compressor": {"name": "top-k", "k": 3}}}
LINKS = {"model": "trace", "of_workers": [[[0, "1 ms", "200 kbit/s"]], [[0, "4 ms", "50 kbit/s"], ["0.3 s", "1 ms", "1 Mbit/s"]]]}
RANDOM_TIMES = {"law": "lognormal", "unit": "10 ms", "sigma": 1.0}
SHORT, LONG = {"rounds": 80}, {"rounds": 160}
KINDS = {
    "draws": DIANA,
    "theory": {**EF21, "log": {"every": 7, "theory": True}},
    "time, waits": {**EF21, "algorithm": {"name": "ef21", "step": 0.1}, "time": {"compute": RANDOM_TIMES, "wait": 3}, "cost": LINKS},
    "time, a queue": {**DIANA, "time": {"compute": RANDOM_TIMES, "wait": 2, "stale": 1}},
    "time, a row every so often": {**EF21, "time": {"compute": RANDOM_TIMES}, "cost": LINKS, "log": {"every": "0.7 s"}},
    "minibatches, momentum": {"algorithm": {"name": "sgd", "step": 0.1, "batch": 5, "server": {"name": "heavy-ball", "beta": 0.9}}},
    "marina": {"algorithm": {"name": "marina", "step": "0.1/L"}, "up": {"compressor": {"name": "random-k", "k": 4}}},
}  # fmt: skip


def lengthened(tables, out, capsys, short=SHORT, long=LONG):
    """A run after a shorter one, where it went on, and the run without that."""
    (first,) = mc.run({**TABLES, **tables, "stop": short}, out=out / "one")
    before = first.file.read_bytes()
    (found,) = run_as(mc.load_job({**TABLES, **tables, "stop": long}), Request(out / "one", Ranks(), Interrupts(), details=True))
    assert first.file.read_bytes() == before
    began = gone_on(capsys.readouterr().err)
    (whole,) = mc.run({**TABLES, **tables, "stop": long}, out=out / "other")
    assert_equal(whole.file, found.file)
    return began, found


@pytest.mark.parametrize("tables", KINDS.values(), ids=KINDS)
def test_80_rounds_and_then_160_are_160_at_once(tables, tmp_path, capsys):
    began, _ = lengthened(tables, tmp_path, capsys)
    assert began == [80]


@pytest.mark.parametrize(("short", "long", "begins"), [
    ({"loss": 0.4, "rounds": 500}, {"loss": 0.3, "rounds": 500}, True),
    ({"loss": 0.4, "rounds": 500}, {"rounds": 300}, True),
    ({"wire_bits_up": 60_000}, {"wire_bits_up": 100_000, "rounds": 500}, True),
    ({"rounds": 200}, {"wire_bits_up": 30_000}, False),  # spent before
    ({"rounds": 200}, {"loss": 0.4, "rounds": 500}, False),  # reached before
    ({"rounds": 200}, {"rounds": 150}, False),
])  # fmt: skip
def test_other_stops_go_on_where_they_would_not_have_ended_the_run_before(short, long, begins, tmp_path, capsys):
    began, found = lengthened(DIANA, tmp_path, capsys, short, long)
    assert bool(began) == begins
    assert found.status == "complete"


OF_DIANA = """
data = { generator = "gspar", samples = 100, dim = 40, seed = 2 }
workers.count = 4
algorithm = { name = "diana", step = "0.1/L" }
up.compressor = { name = "qsgd", levels = 4 }
"""


def test_it_goes_on_from_the_longest_and_on_other_ranks(tmp_path):
    job = tmp_path / "ranks.toml"
    job.write_text(OF_DIANA + """
        stop.rounds = 200
    """)
    out = ("--out", tmp_path / "one")
    assert here("run", job, *out, "--set", "stop.rounds=20").returncode == 0
    assert here("run", job, *out).returncode == 0
    longer, longest = (("--set", f"stop.rounds={rounds}") for rounds in (300, 1100))
    assert "to do: goes on from round 200" in here("plan", job, *out, *longer).stdout
    ended = command("run", job, *out, *longer, ranks=2)
    assert gone_on(ended.stderr) == [200]
    assert gone_on(here("run", job, *out, *longest).stderr) == [300]
    assert "to do: goes on from round 1,100" in here("plan", job, *out, "--set", "stop.rounds=2000").stdout
    assert here("run", job, "--out", tmp_path / "other", *longest).returncode == 0
    (whole,) = (tmp_path / "other").rglob("*.h5")
    assert_equal(whole, tmp_path / "one" / "ranks" / whole.name)


def test_plan_says_from_where_a_tuned_run_goes_on_if_its_value_stays(tmp_path):
    job = tmp_path / "tuned.toml"
    job.write_text("""
        data = { generator = "gspar", samples = 100, dim = 40, seed = 2 }
        workers.count = 4
        algorithm.name = "gd"
        stop.rounds = 20
        tune = { parameter = "algorithm.step", values = ["1/2 theory", "theory"], to = { squared_grad_norm = 1e-9 } }
        grid.seed = [0, 1]
    """)
    out = ("--out", tmp_path)
    assert here("run", job, *out, "--index", "0").returncode == 0
    assert "to do, a copy of " in here("plan", job, *out).stdout
    longer = ("--set", "stop.rounds=30")
    said = here("plan", job, *out, *longer).stdout
    assert said.count("to do: goes on from round 20, if tuning finds the same value") == 1, said
    assert gone_on(here("run", job, *out, *longer).stderr) == [20], "of the run, and not of its trials"


def test_trials_go_on_too(tmp_path, capsys):
    tune = {"parameter": "algorithm.step", "values": "2^-3..2^3 theory", "to": {"squared_grad_norm": 1e-9}}
    began, found = lengthened({**EF21, "algorithm": {"name": "ef21", "step": "theory"}, "tune": tune}, tmp_path, capsys)
    assert began[-1] == 80
    assert {20, 40, 80} == {*began}  # longer trials, too
    trials = {out: sorted((tmp_path / out).rglob("tuning/*.h5")) for out in ("one", "other")}
    for trial in trials["other"]:
        assert_equal(trial, next(own for own in trials["one"] if own.name == trial.name))
    assert found.tuned["settled"]


def test_rounds_in_a_formula_begin_anew(tmp_path, capsys, monkeypatch):
    began, _ = lengthened({**DIANA, "algorithm": {"name": "diana", "step": "20/(L*rounds)"}}, tmp_path / "formula", capsys)
    assert not began
    monkeypatch.syspath_prepend(tmp_path)
    for number, (of_method, goes_on) in enumerate([("1.0", [5]), ("self.setting.numbers['rounds']", [])]):
        module = module_in(tmp_path, f"""
            @mc.algorithms.register("own-{number}")
            @dataclass(frozen=True)
            class Own(mc.algorithms["gd"]):
                def worker_sends(self, node, w, f, t):
                    return self.up.pack({of_method} * f.gradient(node.x), t)
        """)
        own = {"plugins": [module], "algorithm": {"name": f"own-{number}", "step": 1e-3}}
        began, _ = lengthened(own, tmp_path / str(number), capsys, {"rounds": 5}, {"rounds": 9})
        assert began == goes_on


def test_what_is_not_kept(tmp_path, capsys, monkeypatch):
    began, found = lengthened({**DIANA, "checkpoint": {"keep": False}}, tmp_path / "told", capsys)
    assert not began
    assert not checkpoint_of(found.file).exists()
    (diverged,) = mc.run({**TABLES, **DIANA, "algorithm": {"name": "gd", "step": "900/L"}, "stop": SHORT}, out=tmp_path)
    assert diverged.status == "diverged"
    assert not checkpoint_of(diverged.file).exists()
    monkeypatch.setattr(keeper, "KEPT", 1000)
    began, found = lengthened(DIANA, tmp_path / "large", capsys)
    assert not began
    assert not checkpoint_of(found.file).exists()


def test_a_kept_state_that_is_damaged_or_a_result_set_aside_begins_anew(tmp_path, capsys):
    (first,) = mc.run({**TABLES, **DIANA, "stop": SHORT}, out=tmp_path)
    state = checkpoint_of(first.file).read_bytes()
    checkpoint_of(first.file).write_bytes(state[:-9] + b"x" + state[-8:])
    (longer,) = mc.run({**TABLES, **DIANA, "stop": LONG}, out=tmp_path, quiet=False)
    assert not gone_on(capsys.readouterr().err)
    set_aside(longer.file)
    (again,) = mc.run({**TABLES, **DIANA, "stop": LONG}, out=tmp_path, quiet=False)
    assert not gone_on(capsys.readouterr().err)
    assert_equal(longer.file, again.file)


@pytest.mark.parametrize("moment", ["as it goes on", pytest.param("as it ends", marks=pytest.mark.slow)])
def test_a_kill_loses_nothing(moment, tmp_path):
    job = tmp_path / "killed.toml"
    job.write_text(OF_DIANA + """
        stop.rounds = 50
        checkpoint.every = 500
    """)
    out, longer = ("--out", tmp_path / "one"), ("--set", "stop.rounds=3000")
    assert here("run", job, *out).returncode == 0
    (short,) = (tmp_path / "one").rglob("*.h5")
    before, state = short.read_bytes(), checkpoint_of(short).read_bytes()
    program = subprocess.Popen([str(a) for a in (BIN / "mpi-compress", "run", job, *out, *longer, "--quiet")])
    wait_for(lambda: rows_in(tmp_path / "one") or program.poll() is not None)
    if moment == "as it ends":
        wait_for(lambda: len([*(tmp_path / "one").rglob("*.h5")]) == 2, every=0.0005)
    program.kill()
    program.wait(timeout=PATIENT)
    ended = here("run", job, *out, *longer)
    assert ended.returncode == 0
    assert (short.read_bytes(), checkpoint_of(short).read_bytes()) == (before, state)
    assert here("run", job, "--out", tmp_path / "other", *longer).returncode == 0
    (whole,) = (tmp_path / "other").rglob("*.h5")
    found = tmp_path / "one" / "killed" / whole.name
    assert_equal(whole, found)
    assert not part_of(found).exists()
    assert here("results", "gc", job, *out, "--yes").returncode == 0
    assert not list((tmp_path / "one").rglob(f"{found.name}*"))
    assert checkpoint_of(short).exists()


ENDED = {
    "a level": ({**DIANA, "stop": {"loss": 0.4}}, "loss ≤ 0.4"),
    "a level, of other budgets": ({**DIANA, "stop": {"loss": 0.4, "wire_bits_up": 1e6, "seconds": "2 h"}}, "loss ≤ 0.4"),
    "a loss that is not finite": ({"algorithm": {"name": "gd", "step": "1e4/L"}, "objective": {"loss": "least-squares"}, "stop": {}}, "not finite"),
    "nothing drawn": ({"algorithm": {"name": "gd"}, "stop": {"loss": 0.4}}, "loss ≤ 0.4"),
}  # fmt: skip


@pytest.mark.parametrize(("tables", "why"), ENDED.values(), ids=ENDED)
@pytest.mark.parametrize("rounds", [2000, 800])
def test_a_run_that_ended_before_its_last_round_is_the_same_with_another_number_of_rounds(tables, why, rounds, tmp_path, capsys):
    """It has the bytes of one that is executed, with the id, the echo and the label of its own job."""
    short, long = ({**TABLES, **tables, "stop": {**tables["stop"], "rounds": rounds}} for rounds in (1000, rounds))
    long["stop"] |= {"wire_bits_up": 2e6} if "wire_bits_up" in long["stop"] else {}
    (first,) = mc.run(short, out=tmp_path / "one")
    assert first.trace["round"][-1] < 800
    (found,) = mc.run(long, out=tmp_path / "one", quiet=False)
    said = capsys.readouterr().err
    assert f"{first.file} had ended before (" in said
    assert why in said
    (whole,) = mc.run(long, out=tmp_path / "other")
    assert_equal(whole.file, found.file)
    assert found.has_checksums
    measured = {"wall", "versions", "host", "commit", "cores"}
    assert {name for name, value in whole.attrs.items() if str(found.attrs.get(name)) != str(value)} <= measured
    assert found.attrs.keys() == whole.attrs.keys()


def test_a_finished_run_is_taken_unless_it_reached_what_is_not_in_both_jobs(tmp_path, monkeypatch, capsys):
    """A stop of one's own that ended a run ends it again, unless a parameter of the stop changed."""
    monkeypatch.syspath_prepend(tmp_path)
    module = module_in(tmp_path, """
        @mc.stops.register("low-enough")
        @dataclass(frozen=True)
        class LowEnough(mc.StopRule):
            loss: float = 0.4
            def ends(self, row, memory):
                return row["loss"] <= self.loss and "low enough"
    """)
    own = {**DIANA, "plugins": [module]}
    steps = {**DIANA, "algorithm": {"name": "diana", "step": "100/(L*rounds)"}}
    for name, tables, short, long, is_taken in [
        ("own", own, {"low-enough": {}}, {"low-enough": {}}, True),
        ("own, lower", own, {"low-enough": {}}, {"low-enough": {"loss": 0.39}}, False),
        ("a lower level", DIANA, {"loss": 0.4}, {"loss": 0.39}, False),
        ("a level reached before", DIANA, {"loss": 0.4}, {"loss": 0.4, "grad_norm": 0.1}, False),
        ("a level not reached", DIANA, {"loss": 0.4, "grad_norm": 1e-9}, {"loss": 0.4}, True),
        ("the same bits", DIANA, {"wire_bits_up": 1e4}, {"wire_bits_up": 1e4}, True),
        ("bits ended it", DIANA, {"loss": 0.3, "wire_bits_up": 1e4}, {"loss": 0.3, "wire_bits_up": 2e4}, False),
        ("bits would have ended it", DIANA, {"loss": 0.4}, {"loss": 0.4, "wire_bits_up": 1e4}, False),
        ("a formula", steps, {"loss": 0.5}, {"loss": 0.5}, False),
    ]:
        (first,) = mc.run({**TABLES, **tables, "stop": {"rounds": 1000, **short}}, out=tmp_path / name)
        assert first.trace["round"][-1] < 1000, name
        mc.run({**TABLES, **tables, "stop": {"rounds": 2000, **long}}, out=tmp_path / name, quiet=False)
        assert ("had ended before (" in capsys.readouterr().err) == is_taken, name


def test_seeds_and_plan_count_the_results_that_a_longer_run_takes(tmp_path):
    job = tmp_path / "seeds.toml"
    job.write_text("""
        data = { generator = "gspar", samples = 100, dim = 40, seed = 2 }
        workers.count = 4
        algorithm.name = "gd"
        stop = { rounds = 100, loss = 0.65 }
        grid.seed = [0, 1, 2]
    """)
    out, longer = ("--out", tmp_path), ("--set", "stop.rounds=200")
    assert here("run", job, *out).returncode == 0
    said = here("plan", job, *out, *longer).stdout
    assert said.count("done, as ") == 3, said
    assert "3 of 3 runs done; 2 differ in their seed alone" in said
    assert "nothing to submit" in here("submit", job, *out, *longer).stdout
    assert here("plan", job, *out, *longer).stdout.count("done, a copy of") == 2
    tuned = tmp_path / "tuned.toml"
    tuned.write_text(job.read_text() + 'tune = { parameter = "algorithm.step", values = ["1/2 theory", "theory"], by = "round" }')
    assert here("run", tuned, *out).returncode == 0
    said = here("plan", tuned, *out, *longer).stdout
    assert said.count("to do, as ") == said.count(", if tuning finds the same value") == 3, said
    ended = here("run", tuned, *out, *longer).stderr
    assert ended.count("had ended before (loss ≤ 0.65); its result is taken") == 3, ended
