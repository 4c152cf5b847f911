"""Runs that differ in their seed alone, and draw no random number, are executed once: the others are copies of the result."""

import pytest
from helpers.layouts import assert_equal
from helpers.own_parts import module_in
from helpers.running import GSPAR, After, command, here

import mpi_compress as mc
from mpi_compress.core.signals import Stopped
from mpi_compress.results.files import part_of
from mpi_compress.results.reader import ANY_SEED, COPY_OF

SEEDS = {"seed": [0, 1, 2, 3, 4]}
TABLES = {"data": GSPAR, "workers": {"count": 4}, "objective": {"mu": 1e-3}, "stop": {"rounds": 9}, "grid": SEEDS}
EF21 = {"algorithm": {"name": "ef21"}, "up": {"compressor": {"name": "top-k", "k": 3}}}
RANDOM_TIMES = {"law": "lognormal", "unit": "10 ms", "sigma": 1.0}
DRAW_NOTHING = {
    "gd": {"algorithm": {"name": "gd"}},
    "ef21": EF21,
    "cat": {"algorithm": {"name": "cat"}},
    "of the meter": {**EF21, "log": {"theory": True}},
}
DRAW = {
    "qsgd": {"algorithm": {"name": "diana"}, "up": {"compressor": {"name": "qsgd", "levels": 4}}},
    "minibatches": {"algorithm": {"name": "sgd", "step": 0.1, "batch": 5}},
    "participants": {"algorithm": {"name": "gd", "step": 0.1}, "workers": {"count": 4, "participate": 2}},
    "the split": {**EF21, "workers": {"count": 4, "partition": "shuffled"}},
    "x0": {**EF21, "start": {"at": "random"}},
    "time": {**EF21, "time": {"compute": RANDOM_TIMES}},
}  # fmt: skip


def copies(runs):
    return [run.attrs.get(COPY_OF) for run in runs]


@pytest.mark.parametrize("tables", DRAW_NOTHING.values(), ids=DRAW_NOTHING)
def test_a_run_that_draws_nothing_is_executed_once_and_copies_have_its_bytes(tables, tmp_path):
    first, *others = runs = mc.run({**TABLES, **tables}, out=tmp_path / "together")
    assert copies(runs) == [None, *[first.attrs["run_id"]] * 4]
    assert [run.written["seed"] for run in runs] == SEEDS["seed"]
    assert len({run.attrs["run_id"] for run in runs}) == 5
    assert all(run.has_checksums and run.file.stem.endswith(run.attrs["run_id"]) for run in runs)
    (alone,) = mc.run({**TABLES, **tables, "grid": {"seed": [4]}}, out=tmp_path / "alone")
    assert COPY_OF not in alone.attrs
    assert_equal(alone.file, others[-1].file)
    measured = {"wall", "versions", "host", "commit", "cores", COPY_OF}
    assert {name for name, value in others[-1].attrs.items() if str(alone.attrs.get(name)) != str(value)} <= measured
    assert others[-1].attrs.keys() - alone.attrs.keys() == {COPY_OF}


@pytest.mark.parametrize("tables", DRAW.values(), ids=DRAW)
def test_a_run_whose_seed_changes_something_is_executed_with_each(tables, tmp_path):
    runs = mc.run({**TABLES, **tables}, out=tmp_path)
    assert copies(runs) == [None] * 5
    assert not any(ANY_SEED in run.attrs for run in runs)
    assert len({run.trace["model_seconds" if "time" in tables else "loss"].tobytes() for run in runs}) == 5


ONCE = """
    @mc.compressors.register("once-{0}")
    @dataclass(frozen=True)
    class Once(mc.Compressor):
        makes = mc.Dense
        def compress(self, v, t):
            draws = t.k == 1 and t.who == 3
            return mc.Dense(v + 1e-6 * t.rng.standard_normal(v.size) if draws else v)
        def delta(self, dim):
            return 0.5
"""


@pytest.mark.parametrize("ranks", [None, 2])
def test_a_draw_of_one_worker_before_a_stop_counts(ranks, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = module_in(tmp_path, ONCE.format(ranks or 1))
    job = tmp_path / "once.toml"
    job.write_text(f"""
        plugins = ["{module}"]
        data = {{ generator = "gspar", samples = 100, dim = 40, seed = 2 }}
        workers.count = 4
        checkpoint.every = 2
        algorithm.name = "ef21"
        up.compressor = {{ name = "once-{ranks or 1}" }}
        stop.rounds = 9
        grid.seed = [0, 1]
    """)
    if ranks:
        assert command("run", job, "--out", tmp_path / "out", ranks=ranks, PYTHONPATH=str(tmp_path)).returncode == 0
    else:
        with pytest.raises(Stopped):
            mc.run(mc.load_job(job), out=tmp_path / "out", interrupts=After(4))
        assert "round" in mc.read(next((tmp_path / "out").rglob("*.part"))).trace
        mc.run(mc.load_job(job), out=tmp_path / "out")
    runs = [mc.read(file) for file in sorted((tmp_path / "out").rglob("*.h5"))]
    assert copies(runs) == [None, None]
    assert not any(ANY_SEED in run.attrs for run in runs)


def test_a_tuned_job_of_five_seeds_takes_a_fifth_of_its_rounds(tmp_path):
    tune = {"parameter": "algorithm.step", "values": ["0.5 theory", "theory", "2 theory"], "to": {"squared_grad_norm": 1e-6}}
    tables = {**TABLES, "run": [{"label": name, **DRAW_NOTHING[name]} for name in ("gd", "ef21", "cat")], "tune": tune}
    for run in tables["run"]:
        run["algorithm"] = {**run["algorithm"], "step": "theory"}
    runs = mc.run({**tables, "title": "five"}, out=tmp_path)
    executed = [run for run in map(mc.read, tmp_path.rglob("*.h5")) if COPY_OF not in run.attrs]
    assert sum(name is None for name in copies(runs)) == 3
    assert 5 * len(executed) == len(list(tmp_path.rglob("*.h5")))
    tables |= {"title": "one", "tune": {**tune, "seeds": [4]}, "grid": {"seed": [4]}}
    for alone, run in zip(mc.run(tables, out=tmp_path / "one"), runs[4::5], strict=True):
        assert_equal(alone.file, run.file)
        paid = [5 * each for each in alone.tuned["paid"]]
        assert {**alone.tuned, "seeds": SEEDS["seed"], "paid": paid} == run.tuned


def test_tasks_of_their_own_copy_what_is_finished_and_what_a_kill_left_is_replaced(tmp_path, capsys):
    job = {**TABLES, **EF21, "title": "tasks"}
    alone = [{**job, "grid": {"seed": [seed]}} for seed in (3, 0, 1)]
    (first,) = mc.run(alone[0], out=tmp_path)
    (second,) = mc.run(alone[1], out=tmp_path, quiet=False)
    assert copies([first, second]) == [None, first.attrs["run_id"]]
    assert f"tasks, seed 0: nothing is drawn, so it is a copy of {first.file}" in capsys.readouterr().err
    whole = second.file.read_bytes()
    second.file.unlink()
    part_of(second.file).write_bytes(whole[: len(whole) // 2])  # as a kill in the middle of a copy leaves it
    first.file.unlink()
    (third,) = mc.run(alone[2], out=tmp_path)
    (again,) = mc.run(alone[1], out=tmp_path)
    assert copies([third, again]) == [None, third.attrs["run_id"]]
    assert_equal(third.file, again.file)
    assert not list(tmp_path.rglob("*.part"))


def test_fresh_executes_one_again_and_a_copy_stays_whole_without_its_original(tmp_path):
    job = {**TABLES, **EF21}
    runs = mc.run(job, out=tmp_path)
    with_wall = [run.attrs["wall"] for run in runs]
    again = mc.run(job, out=tmp_path, fresh=True)
    assert copies(again) == copies(runs)
    assert not {run.attrs["wall"] for run in again} & {*with_wall}
    again[0].file.unlink()
    (copy,) = mc.run({**job, "grid": {"seed": [1]}}, out=tmp_path)
    assert copy.attrs[COPY_OF] == runs[0].attrs["run_id"]
    (first,) = mc.run({**job, "grid": {"seed": [0]}}, out=tmp_path)
    assert COPY_OF not in first.attrs
    assert_equal(first.file, copy.file)


def test_plan_table_and_submit_count_one(tmp_path):
    job = tmp_path / "jobs" / "seeds.toml"
    job.parent.mkdir()
    job.write_text("""
        data = { generator = "gspar", samples = 100, dim = 40, seed = 2 }
        workers.count = 4
        algorithm.name = "gd"
        stop.rounds = 5
        grid.seed = [0, 1, 2, 3, 4]
    """)
    out = ("--out", tmp_path / "out")
    assert here("run", job, *out, "--index", "2").returncode == 0
    said = here("plan", job, *out).stdout
    assert said.count("done, a copy of ") == 4
    assert "5 of 5 runs done; 4 differ in their seed alone, and nothing is drawn: copies" in said
    submitted = here("submit", job, *out)
    assert "nothing to submit: all runs are done" in submitted.stdout
    assert submitted.stderr.count("nothing is drawn, so it is a copy of") == 4
    assert here("plan", job, *out).stdout.count("done, a copy of ") == 4
    said = here("table", job, *out, "--to", "loss=0.69").stdout
    assert "5 seeds, equal: 1 run: seeds" in said
    assert "median" not in said
