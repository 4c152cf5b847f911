"""Job files: what they mean, and what is refused before anything runs."""

import tomllib
from pathlib import Path

import pytest
from helpers.refusals import naming

from mpi_compress import UserError, load_job, run
from mpi_compress.cli.main import main
from mpi_compress.job.loading import parse_job

BASE = """
data = { generator = "gspar", samples = 50, dim = 20 }
algorithm.name = "gd"
stop.rounds = 3
"""


def job(text, folder, **overrides):
    return parse_job(tomllib.loads(text), "test", folder, overrides)


REFUSED = {
    "[algorithm]\nstp = 1": "algorithm stp step",
    "[up]\ncompressor = { k = 1 }": "up.compressor: {'k': 1} names no compressor; write { name = … } with one of: ",
    "algoritm = 1": "algoritm algorithm",
    '[up]\ncompressor = { name = "topp" }': "up.compressor topp top-k 27",
    '[up]\ncompressor = { name = "top-k", K = 3 }': "up.compressor K k",
    '[up]\ncompressor = { name = "top-k", k = 0 }': "up.compressor.k 0 1",
    '[up]\ncompressor = { name = "top-k", k = "many" }': "up.compressor.k: 'many' was given",
    '[up]\ncompressor = { name = "top-k", k = 2.5 }': "up.compressor.k: 2.5 a whole number or text",
    '[up]\ncompressor = { name = "top-k", k = "0%" }': "percentage above 0",
    '[up]\ncodec = { name = "fixed", float = "fp16" }': "up.codec.float fp16 16 bf16 32 64",
    '[up]\ncompresor = "identity"': "up compresor compressor",
    '[objective]\nloss = "logstic"': "objective.loss logstic logistic",
    '[objective]\nmu = "1/"': "objective.mu: '1/' a number or a formula, such as",
    '[algorithm]\nname = "gd"\nstep = "1e-2 **"': "algorithm.step: '1e-2 **' numbers or formulas, such as",
    '[algorithm]\nname = "gd"\nstep = { form = ["1/t"], a = 1.0 }': "algorithm.step: {'form': ['1/t'], 'a': 1.0} was given",
    '[up]\ncompressor = { name = "top-k", k = "1e5e%" }': "'1e5e%' a count such as 10 or a percentage",
    "[objective]\nmu = 1.0\nlambda2 = 1.0": "mu and lambda2 = mu/2 are two names of one thing; give one",
    "[workers]\ncount = 0": "workers.count: 0 was given; it should be from 1 to 1000000",
    '[workers]\ncount = "4"': "workers.count 4",
    "[workers]\ncount = true": "workers.count True",
    '[workers]\nexchange = "p2"': "workers.exchange p2 p2p allgather",
    '[cost]\nmodel = "packets"': "cost packets packet",
    '[cost]\nmodel = "packet"': "cost.c1: is missing",
    '[cost]\nmodel = "packet"\nc1 = "1 B"\npmax = "0 B"': "pmax 0",
    '[cost]\nmodel = "packet"\nc1 = "1 B"\npmax = 8': "needs a unit",
    '[cost]\nmodel = "affine"\nc0 = "5 apples"': "cost.c0: '5 apples' a size of 0 or more, a number and one of:",
    "[log]\nevery = 0": "log every 0 1",
    "[stop]\nround = 5": "stop round rounds",
    "[stop]\nrounds = -1": "stop.rounds: -1 0",
    "[stop]\nloss = nan": "stop loss nan 0",
    "[stop]\nloss = -0.1": "stop: loss = -0.1 0",
    "[stop]\nsuboptimality = inf": "stop: suboptimality = inf must be 0 or more, and finite",
    '[stop]\nseconds = "-1 s"': "stop.seconds: '-1 s' a time of 0 or more: a number and one of: ",
    "[start]\noffset = nan": "start: offset = nan is no finite number",
    "seed = -1": "seed: -1 was given",
    "[grid]\nseed = 3": "grid.seed: 3 a list of values",
    "grid = 3": "grid 3",
    '[[run]]\nlabel = "a"\ngrid = [1]': 'run "a": grid: [1] a table of lists',
    "[grid]\nsed = [1]": "grid sed seed",
    '[grid]\n"up.compressor.kk" = [1]': "up.compressor",
    "[[run]]\nlabl = 1": "[[run]] 'labl' 'label'",
    '[[run]]\nlabel = "a\\u0000b"': r"run: label = 'a\x00b' has characters that cannot be printed",
    'title = "a\\nb"': "title a\\nb",
    "title = 3": "title and paper should be text in quotes",
    '[[run]]\nlabel = "a"\n[[run]]\nlabel = "b"\n[run.algorithm]\nname = "sgdd"': 'run "b": algorithm sgdd',
    "[figure]\nscale = 1": "figure scale",
    '[figure]\nxscale = "logg"': "figure.xscale: 'logg' 'linear' or 'log'",
    '[figure]\ny = ""': "figure y",
    '[figure]\nx = " "': "figure x",
    '[[figure.panel]]\ny = ""': "figure.panel 1: y = '' should be the name of a column, such as",
    '[[claim]]\nid = "A"': "claim 1.says: is missing",
    'plugins = "mine"': "plugins: 'mine' a list",
    'plugins = ["no_such_module_here"]': "plugins: no module 'no_such_module_here'",
    'plugins = ["../x"]': "plugins: '../x' was given; a module's name is required, such as \"my_module\" for my_module.py",
    'plugins = [""]': "plugins",
    '[algorithm]\nname = "diana"': 'up: diana needs a compressor with its parameters, such as [up] with compressor = { name = "random-k", k = "1%" }',
    "[data]\nsampels = 3": "data sampels samples",
    '[data]\ngenerator = "gpsar"': "data.generator gpsar gspar",
    '[data]\nname = "a9a"': "data name path generator",
    "[data]\nsamples = 1": "data.samples 1 2",
    '[data]\ngenerator = ["gspar"]': "data.generator ['gspar']",
    "figure = { panel = 3 }": "figure.panel: should be tables, each headed [[figure.panel]]",
    "full = 3": "full 3 [full]",
    'full = { "stop.rnds" = 3 }': "full stop rnds rounds",
    "full = { stp.rounds = 3 }": "full stp stop",
    "full = { run = [{ labl = 1 }] }": "full: [[run]]: no key called 'labl'; did you mean 'label'",
}


def merged(change):
    """The base job with tables replaced or extended by `change`."""
    tables = tomllib.loads(BASE)
    for key, value in tomllib.loads(change).items():
        tables[key] = {**value, **tables.get(key, {}), **value} if isinstance(value, dict) else value
    return tables


@pytest.mark.parametrize("change", REFUSED)
def test_refused_in_one_line_that_names_place_and_remedy(change, tmp_path):
    with pytest.raises(UserError, match=naming(REFUSED[change])):
        parse_job(merged(change), "test", tmp_path, {})


@pytest.mark.parametrize("table", ["data", "algorithm", "stop"])
def test_tables_that_no_run_can_do_without(table, tmp_path):
    tables = tomllib.loads(BASE)
    del tables[table]
    with pytest.raises(UserError, match=rf"the table \[{table}\] is missing"):
        parse_job(tables, "test", tmp_path, {})


def test_a_file_that_is_no_job_is_named(tmp_path):
    (tmp_path / "bad.toml").write_text("a = [")
    (tmp_path / "bin.toml").write_bytes(b"\xff")
    (tmp_path / "bin.h5").write_bytes(b"\x89HDF")
    said = {"none.toml": "there is no such job file", "bad.toml": "is no TOML:", "bin.toml": "is no TOML:", "bin.h5": "is a result; a job file"}
    for file, complaint in said.items():
        with pytest.raises(UserError, match=naming(f"{tmp_path}/{file}: {complaint}")):
            load_job(tmp_path / file)
    with pytest.raises(UserError, match=naming(f"{tmp_path}: is a folder; a job file is required (`report --run` takes a folder)")):
        load_job(tmp_path)


@pytest.mark.parametrize(("text", "complaint"), [
    ("import sys; sys.exit(7)", "ends the program on import: SystemExit: 7"),
    (r"raise RuntimeError('first\nsecond')", "fails on import: RuntimeError: first second"),
    ("import no_such_module_here", "no module 'no_such_module_here'"),
])  # fmt: skip
def test_a_plugin_that_cannot_be_imported_is_one_line(text, complaint, tmp_path):
    name = f"plugin_of_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(UserError, match=naming(complaint)):
        job(f'plugins = ["{name}"]\n{BASE}', tmp_path)


@pytest.mark.parametrize(("tables", "words"), [
    ('[[run]]\nlabel = "a\\nb"', "cannot be printed"), ('[[full.run]]\nlabel = "a\\nb"', "cannot be printed"),
    ("[workers]\ncount = 0", "workers.count: 0"), ('[grid]\n"workers.count" = [2, "x"]', "workers.count: 'x'"),
    ('[figure]\nxscale = "cubic"', "figure.xscale: 'cubic'"), ('[up]\ncompressor = "none-such"', "up.compressor"),
])  # fmt: skip
def test_a_wrong_label_or_table_is_refused_in_a_line(tables, words, tmp_path):
    with pytest.raises(UserError, match=naming(words)):
        job(f"{BASE}{tables}", tmp_path)


@pytest.mark.parametrize(("given", "would_do"), [('algorithm = "ef21"', '{ name = "ef21" }'), ("algorithm = 3", "[algorithm]"), ('stop = "x"', "[stop]")])
def test_a_name_in_place_of_a_table_is_told_the_table_that_would_do(given, would_do, tmp_path):
    key = given.partition(" ")[0]
    with pytest.raises(UserError, match=naming(f"{key}: was given; it should be a table, {would_do}")):
        load_job({"data": {"generator": "gspar"}, "stop": {"rounds": 2}, "algorithm": {"name": "gd"}, **tomllib.loads(given)})


WOULD_DO = 'optimum2: there is no such file here or beside the job; a result, "zero", "random" or "optimum" would do'


@pytest.mark.parametrize(("at", "words"), [("optimum2", WOULD_DO), ("folder", ""), ("/dev/null", "/dev/null:"), ("a\\u0000b", "")])
def test_a_start_that_is_no_result_is_refused_by_its_key(at, words, tmp_path):
    (tmp_path / "folder").mkdir()
    (spec,) = job(f'{BASE}[start]\nat = "{at}"', tmp_path).runs
    with pytest.raises(UserError, match=naming(f"start.at: {words}")):
        _ = spec.run_id


def test_a_value_of_a_grid_that_cannot_be_printed_is_escaped_in_the_label(tmp_path):
    text = BASE.replace('data = { generator = "gspar", samples = 50, dim = 20 }', "")
    (spec,) = job(text + '[grid]\n"data.path" = ["a\\nb"]', tmp_path).runs
    assert spec.label == r'test, path = "a\nb"'


def test_what_the_files_of_a_run_hold_decides_its_id(tmp_path):
    """A link measured anew and another point to start from are other runs; both files may lie beside the job."""
    link = "affine = {{ c0 = {}, c1 = 1e-8 }}\npacket = {{ c0 = 1e-4, c1 = 1e-5, pmax = 8000 }}\npoints = {{ bits = [64], seconds = [1e-4] }}\n"

    def play(rounds):
        return run(job(BASE, tmp_path, **{"stop.rounds": rounds}), out=tmp_path / "out")[0].file

    play(3).rename(tmp_path / "start.h5")
    text = 'cost = { model = "table", file = "link.toml" }\nstart = { at = "start.h5" }\n' + BASE
    (tmp_path / "link.toml").write_text(link.format(1e-4))
    first = job(text, tmp_path).runs[0].run_id
    assert job(text, tmp_path).runs[0].run_id == first
    (tmp_path / "link.toml").write_text(link.format(2e-4))
    second = job(text, tmp_path).runs[0].run_id
    play(4).replace(tmp_path / "start.h5")
    assert len({first, second, job(text, tmp_path).runs[0].run_id}) == 3


def test_a_table_in_a_run_replaces_the_whole_table_above(tmp_path):
    runs = job(
        BASE + '[up]\ncompressor = { name = "top-k", k = 3 }\ncodec = { name = "fixed", float = 32 }\n'
        '[[run]]\nlabel = "a"\n[[run]]\nlabel = "b"\nup = { compressor = { name = "top-k", k = 5 } }',
        tmp_path,
    ).runs  # fmt: skip
    assert [(r.up.compressor.k, r.up.codec.float) for r in runs] == [(3, 32), (5, 64)]


def test_a_grid_multiplies_the_runs(tmp_path):
    runs = job(
        BASE + '[up]\ncompressor = { name = "top-k", k = 3 }\n[grid]\nseed = [0, 1]\n"up.compressor.k" = [2, 4]\n[[run]]\nlabel = "a"',
        tmp_path,
    ).runs  # fmt: skip
    assert [(r.seed, r.up.compressor.k, r.label) for r in runs] == [(s, k, f"a, k = {k}") for s in (0, 1) for k in (2, 4)]
    assert len({r.run_id for r in runs}) == 4


@pytest.mark.parametrize("taken", [{}, {"only": "b"}, {"index": 1}])
def test_what_a_job_leaves_out_may_be_set_from_outside(taken, tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(BASE.replace("stop.rounds = 3", "") + '[[run]]\nlabel = "a"\nstop = { rounds = 1 }\n[[run]]\nlabel = "b"\n')
    with pytest.raises(UserError, match=r'run "b": stop: the table \[stop\] is missing'):
        load_job(file, **taken)
    assert load_job(file, {"stop.rounds": 7}, **taken).runs[-1].stop.rounds == 7


def test_what_is_set_for_the_small_size_need_not_suit_the_full_one(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(BASE + '[up]\ncompressor = { name = "top-k", k = 2 }\n[full.up]\ncompressor = "identity"\n')
    assert load_job(file, {"up.compressor.k": 3}).runs[0].up.compressor.k == 3


def test_runs_that_an_override_makes_equal_are_one():
    tables = {"data": {"generator": "least-squares"}, "algorithm": {"name": "gd"}, "stop": {"rounds": 3}, "title": "x",
              "grid": {"seed": [0, 1], "algorithm.step": [0.1, 0.2]}}  # fmt: skip
    assert len(load_job(tables).runs) == 4
    assert [(r.label, r.seed) for r in load_job(tables, {"seed": 5}).runs] == [("x, step = 0.1", 5), ("x, step = 0.2", 5)]
    with pytest.raises(UserError, match=r"is there twice"):
        load_job({**tables, "grid": {"seed": [5, 5]}})
    with pytest.raises(UserError, match=r'algorithm.step: labels show this axis of .grid., "x, step = 0.1"; .* by --only'):
        load_job(tables, {"algorithm.step": 0.2})


def test_overrides_reach_every_run(tmp_path):
    runs = job(BASE + '[[run]]\nlabel = "a"\n[[run]]\nlabel = "b"\nstop = { rounds = 9 }', tmp_path, **{"stop.rounds": 4}).runs
    assert [r.stop.rounds for r in runs] == [4, 4]


def test_run_id_is_that_of_what_decides_the_numbers(tmp_path):
    ids = {
        change: job_id(change, tmp_path)
        for change in ("", "[stop]\nrounds = 4", "seed = 1", "[data]\nsamples = 51", "[data]\nc1 = 0.5")
    }
    assert len(set(ids.values())) == len(ids)
    for layout in (
        'title = "other"', '[workers]\nexchange = "allgather"', '[workers]\nmaster = "worker"', '[figure]\nx = "round"',
        '[[claim]]\nid = "a"\nsays = "b"\nvalue = "1"\nholds = ">= 1"',
    ):  # fmt: skip
        assert job_id(layout, tmp_path) == ids[""], layout


def job_id(change, folder):
    tables = merged(change)
    tables["workers"] = {"count": 2, **tables.get("workers", {})}
    return parse_job(tables, "test", folder, {}).runs[0].run_id


def test_run_id_follows_the_content_of_a_file_and_not_its_name(tmp_path):
    lines = "+1 1:1 2:0.5\n-1 2:1\n"
    for name, text in (("a.txt", lines), ("b.txt", lines), ("c.txt", lines + "+1 1:2\n")):
        (tmp_path / name).write_text(text)
    ids = [
        job(f'data = {{ path = "{name}" }}\nalgorithm = {{ name = "gd" }}\nstop = {{ rounds = 3 }}', tmp_path).runs[0].run_id
        for name in ("a.txt", "b.txt", "c.txt")
    ]
    assert ids[0] == ids[1] != ids[2]


def test_a_result_stores_a_job_that_gives_the_same_run(tmp_path):
    (run,) = job("seed = 5\n" + BASE + '[[run]]\nlabel = "a"\nstop = { rounds = 2 }', tmp_path).runs
    (again,) = job(run.toml(), tmp_path).runs
    assert again.run_id == run.run_id
    assert again.label == run.label


def test_short_forms_of_parts(tmp_path):
    (run,) = job(BASE + '[up]\ncompressor = "identity"\ncodec = "auto"', tmp_path).runs
    assert (run.up.compressor.name, run.up.codec.name) == ("identity", "auto")
    (run,) = job(BASE + '[up]\ncompressor = { name = "top-k", k = 2 }\ncodec = { float = 32 }', tmp_path).runs
    assert (run.up.codec.name, run.up.codec.float) == ("fixed", 32)


def test_one_label_for_two_runs_is_refused_unless_they_differ_in_their_seed_alone():
    gd, tables = {"label": "GD", "algorithm": {"name": "gd"}}, {"data": {"generator": "gspar"}, "stop": {"rounds": 1}}
    with pytest.raises(UserError, match=r"two runs have this label, and differ in algorithm\.step; give each run a label of its own"):
        parse_job({**tables, "run": [gd, {**gd, "algorithm": {"name": "gd", "step": 0.5}}]}, "x", Path(), {})
    for index in (None, 0):  # as `run --index 0 --set stop.rounds=2` has it
        assert len(parse_job({**tables, "run": [gd, {**gd, "seed": 1}]}, "x", Path(), {"stop.rounds": 2}, index=index).runs) == 2


def test_what_was_set_from_outside_is_kept_with_the_run_unless_the_job_has_it():
    tables = {"data": {"generator": "gspar"}, "stop": {"rounds": 1}, "algorithm": {"name": "gd"}, "up": {"compressor": "natural"}}
    own = {"stop.rounds": 1, "seed": 0, "up.compressor.name": "natural"}
    plain, other, same = (parse_job(tables, "x", Path(), values).runs[0] for values in ({}, {"stop.rounds": 2}, own))
    assert (plain.overridden, other.overridden, same.overridden, same.run_id) == ({}, {"stop.rounds": 2}, {}, plain.run_id)


def test_a_part_of_another_name_at_full_size_replaces_the_small_one_whole(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(
        BASE + '[up]\ncompressor = { name = "top-k", k = 2 }\n[down]\ncompressor = { name = "top-k", k = 3 }\n'
        '[full]\nup.compressor = { name = "qsgd", levels = 4 }\ndown.compressor = { name = "top-k", k = 5 }\n'
    )
    full = load_job(file, full=True).runs[0]
    assert full.written["up"]["compressor"] == {"name": "qsgd", "levels": 4}
    assert full.written["down"]["compressor"] == {"name": "top-k", "k": 5}
    assert load_job(file).runs[0].written["up"]["compressor"] == {"name": "top-k", "k": 2}


def test_a_byte_order_mark_before_a_job_and_the_files_that_it_names_is_dropped(tmp_path, monkeypatch, capsys):
    """As editors of Windows write it."""
    monkeypatch.chdir(tmp_path)
    tables = {
        "link.toml": '[affine]\nc0 = "64 B"\nc1 = 2.0\n',
        "job.toml": 'data = { generator = "gspar", samples = 40, dim = 8 }\nalgorithm.name = "gd"\nstop.rounds = 1\n[full]\nstop.rounds = 2\n',
        "about.toml": 'title = "x"\nlicence = "MIT"\n[[creators]]\nname = "y"\n',
    }
    ids = []
    for mark in ("", "\ufeff"):
        for name, text in tables.items():
            Path(name).write_text(mark + text, encoding="utf-8")
        ids.append([load_job("job.toml", full=full).runs[0].run_id for full in (False, True)])
        assert main(["run", "job.toml", "--quiet"]) == 0
        assert main(["archive", "job.toml", "-o", "a.zip", "--about", "about.toml"]) == 0
        assert main(["report", "job.toml", "-o", "r.html"]) == 0
    assert ids[0] == ids[1]
    assert "is no TOML" not in capsys.readouterr().err


def test_a_label_that_is_the_beginning_of_others_is_refused_with_the_pattern_that_takes_them():
    tables = {
        "data": {"generator": "gspar", "samples": 20, "dim": 4}, "algorithm": {"name": "gd"}, "stop": {"rounds": 2},
        "run": [{"label": "CAT, to = 1"}, {"label": "CAT, to = 2"}],
    }  # fmt: skip
    job = parse_job(tables, "t", Path(), {})
    with pytest.raises(UserError, match=r"^--only: no run called 'CAT'.* there are: 'CAT, to = 1', 'CAT, to = 2'; 'CAT\*' takes all that begin so$"):
        job.only("CAT")
    with pytest.raises(UserError) as caught:
        job.only("DOG")
    assert "begin so" not in str(caught.value)
    seeds = parse_job({**tables, "grid": {"seed": [4, 5]}}, "t", Path(), {})  # as `plan` prints its runs
    with pytest.raises(UserError, match=r"there are: .*; --index 1 takes that seed$"):
        seeds.only("CAT, to = 1, seed 5")


def test_only_takes_the_runs_of_a_table_by_its_label_where_no_run_has_it_alone():
    data, tune = {"generator": "gspar", "samples": 20, "dim": 4}, {"parameter": "algorithm.step", "values": "2^0.. theory"}
    tables = {
        "data": data, "algorithm": {"name": "gd"}, "stop": {"rounds": 2, "loss": 0.1},
        "run": [
            {"label": "CAT", "grid": {"objective.mu": [0.1, 0.2], "seed": [0, 1]}, "tune": {}},
            {"label": "CAT, mu = 3"},
            {"label": "GD", "tune": {**tune, "values": ["theory", "2 theory"], "beside": "4 theory"}},
        ],
    }  # fmt: skip
    cat = [spec.label for spec in load_job(tables, only="CAT").runs]
    assert cat == ["CAT, mu = 0.1"] * 2 + ["CAT, mu = 0.2"] * 2
    assert [spec.label for spec in load_job(tables, {"stop.rounds": 3}, only=["GD"]).runs] == ["GD"], "and not the one beside it"
    assert {spec.stop.rounds for spec in load_job(tables, {"stop.rounds": 3}, only="CAT").runs} == {3}
    with pytest.raises(UserError, match=r"^--only: no run called ''"):
        load_job(tables, only="")
    tables["run"] = [{"label": "GD"}, {"label": "other", "algorithm": {"name": "ef21"}, "up": {"compressor": "top-k"}}]
    tables["tune"] = tune
    with pytest.raises(UserError, match=r"tune: values = '2\^0\.\. theory'"):
        load_job(tables, only="GD")
    (spec,) = load_job(tables, {"tune.values": ["theory", "2 theory"]}, only="GD").runs
    assert spec.tune.values == ["theory", "2 theory"]
