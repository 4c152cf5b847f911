"""The command line, as it is typed."""

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
import scipy
from helpers.refusals import refused
from helpers.running import BIN, PATIENT, SMALL_JOB, below_data, command, here, run_of

import mpi_compress as mc
from mpi_compress.cli.arguments import COMMANDS, GROUPS
from mpi_compress.cli.list import meanings
from mpi_compress.cli.main import main
from mpi_compress.cli.run import _waited
from mpi_compress.cli.show import summary
from mpi_compress.core.errors import UserError
from mpi_compress.core.plugins import import_plugin
from mpi_compress.core.registry import is_ours, parameters, registries
from mpi_compress.evidence.lines import changes, name_of
from mpi_compress.problem.datasets import cache
from mpi_compress.results import checksums
from mpi_compress.results.writer import Recorder


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A job that has been run: (job file, results folder)."""

    folder = tmp_path_factory.mktemp("cli")
    job = folder / "small.toml"
    job.write_text(SMALL_JOB)
    said = command("run", job, "--out", folder / "results")
    assert said.returncode == 0
    assert said.stderr.count(": complete") == 5
    assert said.stdout == ""
    return job, folder / "results"


def old_format(file):
    with h5py.File(file, "w") as h5:
        h5.attrs["format"] = "mpi-compress/0"


def flipped(file):
    with h5py.File(file) as h5:
        at = h5["trace/loss"].id.get_chunk_info(0).byte_offset
    content = bytearray(file.read_bytes())
    content[at + 20] ^= 1
    file.write_bytes(content)


FOREIGN = {
    "an old format": old_format, "no HDF5": lambda file: file.write_bytes(b"nothing"), "nothing at all": lambda file: file.write_bytes(b""),
    "a folder": lambda file: (file.unlink(), file.mkdir()), "a flipped bit": flipped,
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_that_is_no_result_is_one_line_and_the_others_go_on(kind, done, tmp_path, capfd):
    job, results = done[0], tmp_path / "results"
    shutil.copytree(done[1], results)
    files = sorted(results.rglob("*.h5"))
    FOREIGN[kind](files[0])
    with pytest.raises(mc.UserError, match=f"^{re.escape(str(files[0]))}: ") as refusal:
        mc.read(files[0])
    says = str(refusal.value)
    assert main(["plan", str(job), "--out", str(results)]) == 0
    lines = below_data(said := capfd.readouterr().out)
    assert (len(lines), said.splitlines()[-1]) == (5, "4 of 5 runs done, 1 cannot be read")
    assert [line for line in lines if f"cannot be read: {says}" in line] == [line for line in lines if "done" not in line]
    for what in ([str(job), "--out", str(results)], [str(file) for file in files]):
        figure = tmp_path / "figure.svg"
        assert main(["plot", *what, "-o", str(figure)]) == 0
        told = capfd.readouterr()
        (line,) = told.err.splitlines()
        assert line.startswith(f"mpi-compress: {says}")
        assert line.endswith("; the others go on")
        assert told.out == f"{figure}\n"
        drawn = "".join(ElementTree.parse(figure).getroot().itertext())
        assert all(name_of(mc.read(file)) in drawn for file in files[1:])
    page = tmp_path / "report.html"
    assert main(["report", str(job), "--out", str(results), "-o", str(page)]) == 0
    told = capfd.readouterr()
    assert told.err == ""
    assert f"4 of 5 runs; {says}" in told.out
    assert page.exists()
    for arguments in (["plot", files[0], "-o", page], ["show", files[0]]):
        assert refused(arguments, capfd).startswith(f"mpi-compress: {says}")


def test_what_is_done_is_not_run_again_but_with_fresh(done, capfd):
    job, results = done
    before = {f: f.stat().st_mtime_ns for f in results.rglob("*.h5")}
    assert main(["run", str(job), "--out", str(results)]) == 0
    assert capfd.readouterr().err.count("done already") == 5
    assert {f: f.stat().st_mtime_ns for f in results.rglob("*.h5")} == before
    assert main(["run", str(job), "--out", str(results), "--fresh", "--index", "4", "--quiet"]) == 0
    assert capfd.readouterr().err == ""
    changed = [f.name for f in results.rglob("*.h5") if f.stat().st_mtime_ns != before[f]]
    assert [name.split("-")[0] for name in changed] == ["CAT"]


def test_only_takes_labels_patterns_and_several_of_them(done, capsys):
    job, out = done

    def labels(*only: str) -> list[str]:
        assert main(["plan", str(job), "--out", str(out), *(part for each in only for part in ("--only", each))]) == 0
        runs = mc.load_job(job, only=only).runs
        assert [int(line.split()[0]) for line in below_data(capsys.readouterr().out)] == [run.index for run in runs]
        return [run.label for run in runs]

    assert labels("GD", "CAT") == labels("CAT", "GD") == ["GD", "CAT"]
    assert labels("top-*") == ["top-3"]
    assert labels("*") == [run.label for run in mc.load_job(job).runs]
    refused(["plan", job, "--only", "GD", "--only", "cat*"], capsys, "--only cat* CAT")
    changed = mc.load_job(job, {"stop.rounds": 3}, only=["GD", "C?T"])
    assert [run.stop.rounds for run in changed.runs] == [3, 3]


def test_plan_takes_several_jobs(done, tmp_path, capsys):
    job, out = done
    other = tmp_path / "other.toml"
    other.write_text(job.read_text())
    assert main(["plan", str(other), str(job), "--out", str(out), "--only", "GD"]) == 0
    first, one, second, two = below_data(capsys.readouterr().out)
    assert (first, second) == (f"{other}:", f"{job}:")
    assert re.search(rf"done, as {re.escape(str(out))}/small/GD-\w+\.h5$", one), "the same run of the other job"
    assert two.endswith("done")


def test_plan_lists_every_run_with_its_state(done, tmp_path, capsys):
    job, results = done
    assert main(["plan", str(job), "--out", str(results)]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[1].split() == ["index", "label", "run", "id", "memory", "state"]
    assert len(lines := below_data(said)) == 5
    assert all(line.endswith("done") for line in lines)
    assert main(["plan", str(job), "--out", str(tmp_path), "--set", "stop.rounds=7"]) == 0
    todo = below_data(capsys.readouterr().out)
    assert all(line.endswith("to do") for line in todo)
    assert not {line.split()[-2] for line in lines} & {line.split()[-2] for line in todo}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_plot_of_a_job(done, suffix, tmp_path, capsys):
    job, results = done
    figure = tmp_path / f"figure.{suffix}"
    assert main(["plot", str(job), "--out", str(results), "-o", str(figure), "--x", "cost_up", "--y", "suboptimality"]) == 0
    assert capsys.readouterr().out == f"{figure}\n", "one path, not one a result"
    head = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix]
    assert figure.read_bytes().startswith(head)


def test_while_trials_alone_are_there_a_table_says_so(small_job, tmp_path, capfd):
    tuned = tmp_path / "tuned.toml"
    tuned.write_text('tune = { parameter = "algorithm.step", values = ["theory", "2 theory"], to = { loss = 0.1 } }\n' + small_job.read_text())
    line = [str(tuned), "--only", "GD", "--out", str(tmp_path / "out")]
    assert main(["run", *line, "--quiet"]) == 0
    (result,) = (tmp_path / "out" / "tuned").glob("*.h5")
    result.unlink()
    capfd.readouterr()
    refused(["table", *line], capfd, "only trials of [tune] are there: `mpi-compress run` goes on")


def test_while_a_trial_is_made_a_plan_says_so(small_job, tmp_path, capfd):
    tuned, out = tmp_path / "tuned.toml", tmp_path / "out"
    tuned.write_text('tune = { parameter = "algorithm.step", values = ["theory", "2 theory"], to = { loss = 0.1 } }\n' + small_job.read_text())
    recorder = Recorder(out / "tuned" / "tuning" / "GD.h5", {"label": "GD, algorithm.step = 2 theory", "reason": ""})
    states = []
    for _ in range(2):
        assert main(["plan", str(tuned), "--only", "GD", "--out", str(out)]) == 0
        states += re.findall("GiB  (.*)", capfd.readouterr().out)
        recorder.abandon("stopped", "by the test")
    assert states == ["tuning", "to do"]


def test_where_results_are_of_other_settings_a_table_names_these(small_job, tmp_path, capfd):
    line = [str(small_job), "--only", "GD", "--out", str(tmp_path)]
    for rounds in ("3", "4"):
        assert main(["run", *line, "--quiet", "--set", f"stop.rounds={rounds}"]) == 0
    refused(["table", *line], capfd, "no results of there are results of --set stop.rounds=3 (1), --set stop.rounds=4 (1); name the one")


def test_plot_of_two_jobs_draws_the_runs_of_both(done, tmp_path, capfd):
    other = tmp_path / "other.toml"
    other.write_text(done[0].read_text().replace("rounds = 12", "rounds = 5"))
    both = ["plot", str(done[0]), str(other), "--only", "top-3", "--out", str(tmp_path)]
    shutil.copytree(done[1], tmp_path, dirs_exist_ok=True)
    assert main(both) == 0, "what has results is drawn"
    assert "no results of 'other'" in capfd.readouterr().err
    refused([both[0], *both[2:]], capfd, "other")  # nothing is drawn where no job has any
    assert main(["run", str(other), "--only", "top-3", "--out", str(tmp_path), "--quiet"]) == 0
    assert main(["plot", str(done[0]), str(other), *both[2:]]) == 0
    told = capfd.readouterr()
    assert told.out == f"{tmp_path / 'small' / 'small+other.png'}\n"
    assert "no results" not in told.err
    assert "of one run and seed" not in told.err, "a job named twice is drawn once"


def test_plot_of_results_goes_beside_the_first(done, capsys):
    _, results = done
    files = sorted(str(f) for f in results.rglob("*.h5"))
    assert main(["plot", *files[:2]]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == files[0].replace(".h5", ".png")


def test_show_prints_where_time_and_bits_went(done, capsys):
    _, results = done
    (file,) = results.glob("small/CAT-*.h5")
    assert main(["show", str(file)]) == 0
    said = capsys.readouterr().out
    for word in ("complete", "7 workers on 1 rank", "on the wire", "by the paper's formula", "compute", "exchange", "budget", "numba"):
        assert word in said


def test_show_of_two_names_the_first_round_and_column_where_they_part(done, tmp_path, capsys):
    job, results = done
    (file,) = results.glob("small/top-3-*.h5")
    assert main(["show", str(file), str(file)]) == 0
    assert capsys.readouterr().out == "data: gspar, other data, 120 × 40\nequal, bit for bit: 13 records\n"
    assert main(["run", str(job), "--out", str(tmp_path), "--only", "top-3", "--set", "up.codec.float=32", "--quiet"]) == 0
    (other,) = tmp_path.glob("small/top-3-*.h5")
    assert main(["show", str(file), str(other)]) == 0
    said = capsys.readouterr().out
    assert "they part in record 1 (round 1):" in said
    assert "/trace/wire_bits_up" in said
    assert "/trace/elements_up" not in said


def test_nothing_says_what_to_do_first_and_help_has_all_commands_in_groups(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([]) == 0
    assert "mpi-compress new first" in capsys.readouterr().out
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.index("cluster") < next(i for i, line in enumerate(lines) if line.startswith("  submit")) < lines.index("share")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_fits_and_breaks_no_command_between_lines(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("mpi-")]


def test_report_run_takes_runs_and_settings_as_run_does(small_job, tmp_path):
    (tmp_path / "other.toml").write_text(small_job.read_text().replace('"GD"', '"other"'))
    choice = ["--only", "GD", "--set", "stop.rounds=2", "--out", tmp_path / "r", "-o", tmp_path / "r.html"]
    done = command("report", "--run", tmp_path, *choice)
    assert done.returncode == 0, done.stderr
    (result,) = (tmp_path / "r").rglob("*.h5")
    assert list(mc.read(result).trace["round"]) == [0, 1, 2]


@pytest.mark.parametrize("columns", [80, 200])
def test_list_names_every_part_with_its_parameters(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["list"]) == 0
    short = capsys.readouterr().out
    assert len([line for line in short.splitlines() if line.startswith("  ")]) >= len({*mc.algorithms.algorithms, *mc.compressors.compressors})
    assert [line for line in short.splitlines() if line.isupper()] == ["METHODS", "MESSAGES", "PROBLEMS", "RESULTS"]
    assert 0.8 * columns < max(map(len, short.splitlines())) <= columns
    for kind, registry in {
        "algorithms": mc.algorithms.algorithms, "compressors": mc.compressors.compressors, "codecs": mc.codecs.codecs,
        "costs": mc.costs.costs, "datasets": mc.datasets.generators, "generators": mc.datasets.generators,
    }.items():
        assert main(["list", kind]) == 0
        said = capsys.readouterr().out
        assert max(map(len, said.splitlines())) <= columns
        assert main(["list", kind.removesuffix("s")]) == 0
        assert capsys.readouterr().out == said
        for name, part in registry.items():
            assert sum(line.startswith(f"  {name} ") for line in short.splitlines()) >= 1
            assert f"  {name}" in said
            assert part.__doc__.splitlines()[0][:40] in said
            assert main(["list", f"{kind}/{name}"]) == 0
            assert capsys.readouterr().out.removeprefix(f"{kind}:\n") in said
    assert main(["list", "codecs"]) == 0
    assert capsys.readouterr().out.startswith("codecs:")


def test_every_parameter_of_every_part_has_a_meaning():
    parts = {f"{registry.kind} {name}": part for registry in registries for name, part in registry.items() if is_ours(part)}
    assert {"algorithm gd", "compressor top-k", "codec auto", "loss huber", "model softmax", "penalty ratio"} <= set(parts)
    assert [f"{which}: {key}" for which, part in parts.items() for key in parameters(part) if key not in meanings(part)] == []


def test_list_finds_a_part_by_its_name_and_prints_no_other(capsys):
    assert main(["list", "top-k"]) == 0
    kind, first, parameter = capsys.readouterr().out.splitlines()
    assert (kind, first.split()[0], parameter.split()[0]) == ("compressors:", "top-k", "k,")
    assert parameter.endswith(meanings(mc.compressors.compressors["top-k"])["k"])


def test_list_describes_the_parts_of_a_jobs_plugins(tmp_path, capsys):
    (tmp_path / "two_parts.py").write_text(
        "import mpi_compress as mc\n"
        '@mc.compressors.register("halves")\nclass Halves(mc.Compressor):\n    """Half of each."""\n    by: float = 2.0  # the divisor\n'
        '@mc.losses.register("cube")\nclass Cube(mc.Loss):\n    """m³."""\n'
        '@mc.metrics.register("first-one")\nclass FirstOne(mc.Metric):\n    """x_1."""\n    column = "first_one"\n'
    )
    job, none = tmp_path / "own.toml", tmp_path / "none.toml"
    job.write_text('plugins = ["two_parts"]\n' + SMALL_JOB)
    none.write_text(SMALL_JOB)
    assert main(["list", str(job)]) == 0
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert said[:2] + said[4:6] == ["small", "data gspar", "stop rounds = 12", "claims none"]
    assert said[6:] == ["compressors:", "halves Half of each.", "by = 2.0 the divisor", "losses:", "cube m³.", "metrics:", "first-one x_1."]
    assert main(["list", str(job), "halves", "codecs"]) == 0
    assert capsys.readouterr().out.startswith("compressors:\n  halves")
    assert main(["list", str(none), "ht/fig8"]) == 0
    assert "methods   top-1 (ef-gdstar, top-k); hard-threshold (ef-gdstar, hard-threshold); GD" in capsys.readouterr().out


def test_list_names_the_values_that_a_parameter_may_have(capsys):
    assert main(["list", "cat"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["sampling"].endswith('(one of "with-replacement", "epoch")')
    assert lines["regularizer,"].endswith('(one of "worker", "master")')
    assert "one of" not in lines["budget"]  # a number, too


def test_a_part_that_several_kinds_have_is_listed_with_each(capsys):
    assert main(["list", "lattice"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line[0] != " "] == ["compressors:", "codecs:"]


def test_the_meanings_of_a_part_of_ones_own_are_those_of_its_file(tmp_path):
    lines = [
        "from dataclasses import dataclass",
        "import mpi_compress as mc",
        '@mc.losses.register("pinball")',
        "@dataclass(frozen=True)",
        "class Pinball(mc.Loss):",
        '    formula = "τ r⁺ + (1 − τ) r⁻"  # no field',
        "    tau: float = 0.5  # τ, the quantile",
        "    width: float = 0.0",
        "    def value_and_slope(self, y, m):",
        "        return abs(m - y), m - y",
        '@mc.losses.register("median")',
        "@dataclass(frozen=True)",
        "class Median(Pinball):",
        "    tau: float = 0.25",
        "    width: float = 1.0  # of the smooth part",
    ]
    (tmp_path / "pinballs.py").write_text("\n".join(lines))
    import_plugin("pinballs", [tmp_path])
    assert meanings(mc.losses.losses["pinball"]) == {**meanings(mc.Loss), "tau": "τ, the quantile"}
    assert meanings(mc.losses.losses["median"])["tau"] == "τ, the quantile"
    assert meanings(mc.losses.losses["median"])["width"] == "of the smooth part"


def test_a_part_without_a_file_has_no_meanings():
    namespace: dict = {}
    exec("class Here:\n    size: int = 1  # of it", namespace)
    assert meanings(namespace["Here"]) == {}


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"mpi-compress {metadata.version('mpi-compress')}\n"


@pytest.mark.parametrize("ranks", [None, 3])
def test_wrong_usage_is_one_line_by_one_rank(ranks):
    said = command("plan", "x.toml", "--index", "a", ranks=ranks)
    assert said.returncode == 2
    (line,) = (line for line in said.stderr.splitlines() if line.startswith("mpi-compress"))
    assert "--help` explains" in line


def test_what_is_no_plain_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "other").touch()
    (tmp_path / "link").symlink_to("other")
    with pytest.raises(UserError, match="pipe: is no plain file"):
        cache.replace(tmp_path / "pipe", lambda part: part.write_text("x"))
    assert (tmp_path / "pipe").is_fifo()
    cache.replace(tmp_path / "link", lambda part: part.write_text("x"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "other").read_text() == "x"


def test_a_report_passes_over_what_is_no_file(done, tmp_path):
    job, results = done
    (tmp_path / "jobs" / "folder.toml").mkdir(parents=True)
    (tmp_path / "jobs" / ".#x.toml").symlink_to("nowhere")
    (tmp_path / "jobs" / "small.toml").write_text(job.read_text())
    page = tmp_path / "page.html"
    table = tmp_path / "new" / "table.md"
    assert main(["report", str(tmp_path / "jobs"), "--out", str(results), "-o", str(page), "--table", str(table)]) == 0
    assert page.exists()
    assert table.read_text().count("small") >= 1


@pytest.mark.parametrize("where", ["> /dev/full", ">&-"], ids=["a full disk", "a closed terminal"])
def test_a_run_goes_on_where_its_words_are_not_heard(where, small_job, tmp_path):
    line = f"exec {BIN / 'mpi-compress'} run {small_job} --only GD --only CAT --out {tmp_path} 2{where}"
    assert subprocess.run(["sh", "-c", line], timeout=PATIENT).returncode == 0
    assert len(list(tmp_path.glob("small/*.h5"))) == 2


def test_columns_are_those_that_jobs_and_figures_rely_on(done):
    _, results = done
    (file,) = results.glob("small/CAT-*.h5")
    run = mc.read(file)
    common = {
        "round", "epoch", "loss", "suboptimality", "grad_norm", "wire_bits_up", "wire_bits_down", "paper_bits_up", "paper_bits_down",
        "elements_up", "cost_up", "cost_down", "distance",
    }  # fmt: skip
    assert set(run.trace) == common | {"budget"}
    assert set(run.workers) == {"wire_bits_up", "paper_bits_up", "budget"}
    assert set(run.timing) == {"seconds", "compute", "pack", "exchange", "update", "evaluate"}
    assert run.workers["wire_bits_up"].shape == (13, 7)
    assert all(np.all(np.diff(seconds) >= 0) for seconds in run.timing.values() if seconds is not run.timing["exchange"])
    for name in ("format", "job", "label", "run_id", "status", "reason", "n_workers", "n_ranks", "n_samples", "dim", "L", "mu",
                 "f_star", "f_star_accuracy", "settled", "versions", "mpi_library", "host", "commit"):  # fmt: skip
        assert name in run.attrs
    assert run.attrs["format"] == "mpi-compress/1"
    assert run.status == "complete"


def test_labels_and_file_names_in_any_letters_do_where_the_system_s_encoding_is_ascii(tmp_path):
    """A result then has an ASCII name, and is found where the encoding is UTF-8; `data.path` is UTF-8 in both."""
    ascii_ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    (tmp_path / "größe.svm").write_text("1 1:1\n0 2:1\n")
    job = tmp_path / "job.toml"
    job.write_text('data.path = "größe.svm"\nstop.rounds = 2\nrun = [{ label = "µ‖x‖²", algorithm.name = "gd" }]\n', encoding="utf-8")
    out = ["--out", tmp_path / "größe"]
    for line in (["run"], ["table"], ["plot"], ["plan"]):
        done = command(line[0], job, *out, **ascii_)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "\\xb5\\u2016x\\u2016\\xb2" in done.stdout
    (file,) = tmp_path.rglob("*.h5")
    assert file.name.isascii()
    assert file.parent.parent == tmp_path / "größe"
    assert "µ‖x‖²" in (told := command("plan", job, *out).stdout)
    assert " done" in told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_cannot_be_printed_is_one_line(unbuffered, small_job):
    line, variables = [str(BIN / "mpi-compress"), "plan", str(small_job)], {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENT, env=variables)
    assert (done.returncode, done.stderr) == (3, "mpi-compress: cannot write: No space left on device\n")
    done = subprocess.run(
        ["bash", "-c", f'{shlex.join(line)} | true; exit "${{PIPESTATUS[0]}}"'], stderr=subprocess.PIPE, env=variables
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_data_of_a_pipe_are_refused(tmp_path, capfd):
    os.mkfifo(tmp_path / "pipe")
    refused(["data", "info", tmp_path / "pipe"], capfd, "pipe")


def test_data_info_prints_the_constants_of_the_logistic_loss_that_papers_print(tmp_path, capfd):
    (tmp_path / "two").write_text("+1 1:1 2:2\n-1 1:3\n+1 2:-1\n")
    assert main(["data", "info", str(tmp_path / "two")]) == 0
    a, y = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, -1.0]]), np.array([1.0, -1.0, 1.0])
    L = np.linalg.norm(a, 2) ** 2 / 12
    f = scipy.optimize.minimize(lambda x: np.logaddexp(0, -y * (a @ x)).mean() + 0.5e-4 * L * x @ x, np.zeros(2), tol=1e-12).fun
    assert f"L {L:.6g}, mean L_i of single samples 1.25, f* {f:.6g} with" in capfd.readouterr().out


def test_show_prints_the_coordinates_of_one_message(tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, {"name": "top-k", "k": 3}, count=5, rounds=10)
    assert "  sent      3 coordinates a round and worker" in summary(run)


def test_show_tells_a_column_of_ones_own_from_a_line_of_that_name(tmp_path, registered_for_one_test_only):
    @mc.metrics.register("sent")
    class Sent(mc.Metric):
        def value(self, x, problem):
            return 7.0

    tables = {"data": {"generator": "gspar", "samples": 60, "dim": 5}, "algorithm": {"name": "gd"}, "stop": {"rounds": 3}}
    (run,) = mc.run({**tables, "log": {"metrics": ["sent", "accuracy"]}}, out=tmp_path, quiet=True)
    lines = [line.split() for line in summary(run)]
    assert [line[:3] for line in lines if line[:1] == ["column"]] == [["column", "accuracy", "0.85"], ["column", "sent", "7"]]
    assert [line[1:] for line in lines if line[:1] == ["sent"]] == [["5", "coordinates", "a", "round", "and", "worker"]]


def test_results_on_other_data_beside_the_job_s_own_are_told_apart_by_the_set(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in (("one", 1), ("two", 2)):
        Path(name).write_text(f"1 1:{value} 2:1\n-1 2:0.5\n" * 4)
    Path("job.toml").write_text('data.path = "one"\nalgorithm.name = "gd"\nstop.rounds = 3\ntitle = "GD"\n')
    for words in ([], ["--set", "data.path=two"]):
        assert main(["run", "job.toml", "--quiet", *words]) == 0
    assert main(["show", "results"]) == 0
    heads, *rows = capsys.readouterr().out.splitlines()
    assert (heads.split()[:2], sorted(row.split()[1] for row in rows)) == (["result", "data"], ["one", "two"])
    assert main(["table", *map(str, Path("results").rglob("*.h5"))]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^data: (\w+), .*: (GD.*)$", said, re.MULTILINE) == [("one", "GD"), ("two", "GD, path = two")]
    run = mc.read(next(Path("results").rglob("*.h5")))
    run.attrs["overridden"] = '{"data.name": "w1a", "stop.rounds": 3}'
    assert changes(run) == ["data = w1a", "rounds = 3"]


def test_show_of_many_prints_what_differs_and_how_each_ended(done, capsys):
    files = sorted(str(file) for file in (done[1] / "small").glob("*.h5"))
    assert main(["show", *files]) == 0
    heads, *rows = below_data(capsys.readouterr().out)
    assert heads.split()[:2] == ["run", "algorithm.name"]
    assert rows[0].split() == ["CAT", "cat", *["–"] * 10]
    assert rows[rows.index("") + 1].split() == ["method", "status", "loss", "suboptimality", "up", "down", "time", "ended", "by"]
    assert rows[-1].endswith("12 rounds")
    assert main(["show", "--csv", *files[:2]]) == 2


def test_show_of_a_folder_lists_its_results_and_tells_all_of_a_single_one(done, tmp_path, capsys):
    files = sorted((done[1] / "small").glob("*.h5"))
    assert main(["show", str(done[1])]) == 0
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.split() == ["result", "data", "status", "round", "loss"]
    assert [row.split()[0] for row in rows] == [str(file) for file in files]
    assert all(row.split()[1:4] == ["gspar", "complete", "12"] for row in rows)
    shutil.copy(files[0], tmp_path)
    assert main(["show", str(tmp_path)]) == 0
    alone = capsys.readouterr().out
    assert main(["show", str(tmp_path / files[0].name)]) == 0
    assert capsys.readouterr().out == alone
    (tmp_path / "empty").mkdir()
    assert main(["show", str(tmp_path / "empty")]) == 2
    assert f"no results of runs in {tmp_path / 'empty'} yet; `mpi-compress run JOB` makes them" in capsys.readouterr().err


def test_the_help_of_every_command_begins_with_a_verb():
    each = {**COMMANDS, **{f"{name} {own}": command for name, above in COMMANDS.items() for own, command in above.commands.items()}}
    verbs = {"write", "run", "list", "queue", "draw", "compare", "show", "judge", "test", "pack", "remove", "move", "time", "fetch", "generate", "describe", "compute"}
    assert {name: command.help for name, command in each.items() if re.match(r"\w+", command.help)[0] not in verbs} == {}


def test_a_setting_from_outside_names_the_results_of_every_command(done, tmp_path, capfd):
    job, out = str(done[0]), str(tmp_path)
    choice = ["--out", out, "--only", "top-3", "--set", "stop.rounds=4"]
    assert main(["run", job, *choice, "--quiet"]) == 0
    for line in (["plan", job], ["table", job, "--to", "loss=0.69"], ["table", job]):
        assert main([*line, *choice]) == 0
        said = capfd.readouterr().out
        assert "top-3" in said
        assert ("all with rounds = 4\n" in said) == (line[0] == "table")
    assert main(["plot", job, *choice]) == 0
    assert main(["report", job, *choice, "-o", str(tmp_path / "page.html")]) == 0
    assert "1 of" not in capfd.readouterr().out
    refused(["table", job, "--out", out, "--set", "up.compressor.k=2"], capfd, "run \"GD\": up.compressor: {'k': 2} names no compressor")
    assert main(["table", job, *choice[:4], "--to", "loss=0.5"]) == 2, "without --set it is another run"


def test_lists_of_keys_have_no_internal_ones_and_none_twice(tmp_path):
    (tmp_path / "a.toml").write_text('[data]\ngenerator = "gspar"\nsampls = 3\n[algorithm]\nname = "gd"\n[stop]\nrounds = 1\n')
    with pytest.raises(UserError) as caught:
        mc.load_job(tmp_path / "a.toml")
    keys = str(caught.value).rpartition(": ")[2].split(", ")
    assert "stand_in_for" not in keys
    assert len(keys) == len(set(keys)) > 5


def test_plan_says_that_results_are_beside_a_job_of_another_folder(tmp_path, capsys, monkeypatch):
    (work := tmp_path / "work").mkdir()
    tables = 'data = { generator = "gspar", samples = 20, dim = 4 }\nalgorithm = { name = "gd" }\nstop.rounds = 1\ngrid.seed = [0, 1]'
    (work / "job.toml").write_text(tables)
    mc.run(work / "job.toml", out=work / "results", quiet=True)
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "work/job.toml"]) == 0
    said = capsys.readouterr().out
    assert said.endswith(f"0 of 2 runs done, 2 to do; results are beside the job, and not here: --out {Path('work/results')}\n")
    assert main(["plan", "work/job.toml", "--out", "work/results"]) == 0
    assert "2 of 2 runs done" in capsys.readouterr().out


def test_plan_says_what_a_model_needs_and_is_not_here(tmp_path, capsys, monkeypatch):
    def missing(_: object) -> dict[str, str]:
        raise UserError("needs the framework of that name")

    monkeypatch.setattr("mpi_compress.problem.models.base.Model.provenance", property(missing))
    (tmp_path / "job.toml").write_text(
        '[data]\ngenerator = "gspar"\nsamples = 20\ndim = 4\n[objective]\nmodel = "softmax"\nf_star = "skip"\nsmoothness = 1.0\n'
        '[algorithm]\nname = "gd"\nstep = 0.1\n[stop]\nrounds = 1\n[grid]\nseed = [0, 1]\n'
    )
    assert main(["plan", str(tmp_path / "job.toml"), "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out.endswith("would be refused: needs the framework of that name: job\n0 of 2 runs done, 2 would be refused\n")
    assert {line.rpartition(": ")[2] for line in said.err.splitlines()} == {"needs the framework of that name"}


TWO = """
data = { generator = "gspar", samples = 40, dim = 6 }
workers.count = 2
algorithm.name = "gd"
stop.rounds = 4
[[run]]
label = "here"
[[run]]
label = "not here"
data = { path = "none.libsvm" }
[[claim]]
id = "both"
says = "they end alike"
value = "loss('here') / loss('not here')"
holds = "<= 1"
"""


def test_a_run_whose_data_are_missing_hides_no_other(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("two.toml").write_text(TWO)
    assert main(["run", "two.toml", "--only", "here"]) == 0
    capfd.readouterr()
    assert main(["plan", "two.toml"]) == 2, "as run does"
    first, second = below_data(capfd.readouterr().out)
    assert first.endswith("done")
    assert "not run: `none.libsvm` is not here" in second
    for line in (["table", "two.toml", "--to", "loss=0.7"], ["check", "two.toml"], ["watch", "--once", "two.toml"]):
        main(line)
        told = capfd.readouterr()
        assert "here" in told.out
        assert "no such file" not in told.err
    assert main(["table", "two.toml"]) == 0
    assert "1 of 2 runs have no record" in capfd.readouterr().err


def test_a_result_that_nobody_writes_any_more_is_broken_off(small_job, tmp_path, capfd):
    main(["run", str(small_job), "--out", str(tmp_path / "results")])
    file = next((tmp_path / "results").rglob("*.h5"))
    with h5py.File(file, "r+") as h5:
        h5.attrs["status"] = "running"
        del h5.attrs[checksums.ATTRIBUTE]
    part = file.rename(f"{file}.part")
    capfd.readouterr()
    assert main(["show", str(part)]) == 0
    assert ": broken off" in capfd.readouterr().out
    for line in (["show", str(part), str(next((tmp_path / "results").rglob("*.h5")))], ["table", str(part), "--to", "loss=0"]):
        assert main(line) == 0
        told = capfd.readouterr().out
        assert "broken off" in told
        assert "running" not in told
    assert main(["results", "ls", small_job.name, "--out", str(tmp_path / "results")]) == 0
    assert capfd.readouterr().out.count("broken off") == 1


def test_a_run_that_cannot_be_played_says_how_the_others_are(tmp_path, capfd):
    (tmp_path / "job.toml").write_text(
        'data = { generator = "gspar", samples = 20, dim = 8 }\nobjective.mu = 0.1\nstop.rounds = 3\n'
        '[[run]]\nlabel = "CAT"\nalgorithm.name = "cat"\nup.compressor = "top-k"\n'
        '[[run]]\nlabel = "k"\nalgorithm.name = "gd"\nup.compressor = { name = "top-k", k = 99 }\n'
    )
    line = ["run", str(tmp_path / "job.toml"), "--out", str(tmp_path)]
    assert main(line) == 2
    assert "nothing was run: --only takes the runs of other labels" in capfd.readouterr().err
    assert main([*line, "--set", "workers.count=30"]) == 2  # on the problem of both
    assert "nothing was run" not in capfd.readouterr().err
    assert main([*line, "--only", "CAT"]) == 0
    said = "T = 1 in every round, since no [cost] is given, and by bits alone the shortest message is the best one: CAT"
    assert said in capfd.readouterr().err
    assert main(["table", *line[1:], "--to", "loss=0.6"]) == 0
    assert said in capfd.readouterr().out
    assert main([*line, "--only", "CAT", "--set", "cost.model=payload"]) == 0
    assert "T = 1" not in capfd.readouterr().err
    file = next((tmp_path / "job").glob("CAT*.h5"))
    file.write_bytes(file.read_bytes()[:2000])
    for each in (["--only", "CAT"], ["--only", "CAT", "--set", "cost.model=payload"]):
        status = main([*line, *each])
        assert status == 0 or "`run --fresh`" in capfd.readouterr().err


def test_show_of_two_folders_pairs_runs_by_label_and_says_which_differ_and_where(tmp_path):
    tables = 'data = { generator = "gspar", samples = 60, dim = 12 }\nobjective = { mu = "1e-2 L" }\nstop = { rounds = 4 }\ngrid = { seed = [0, 1] }\n'
    runs = '[[run]]\nlabel = "GD"\nalgorithm = { name = "gd" }\n[[run]]\nlabel = "SGD"\nalgorithm = { name = "sgd", batch = 4, step = "%s" }\n'
    for folder, step in (("once", "0.5/L"), ("again", "0.25/L")):
        (tmp_path / "job.toml").write_text(tables + runs % step)
        mc.run(mc.load_job(tmp_path / "job.toml"), out=tmp_path / folder)
    once, again = tmp_path / "once", tmp_path / "again"
    assert here("show", once, once).returncode == 0
    next((again / "job").glob("GD-*")).unlink()
    done = here("show", once, again)
    assert done.returncode == 1, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("job: ")]
    assert sum("equal, bit for bit: 5 records" in line for line in said) == 1
    assert sum(f"is in {once} only" in line for line in said) == 1
    columns = re.findall("^  /([a-z_/]+): [^:]+ against [^:]+$", done.stdout, re.MULTILINE)
    assert len(columns) == len(done.stdout.splitlines()) - len(said), "a line each"
    first = columns.index("trace/loss")
    assert (first, columns.count("trace/loss")) == (0, 2), "the loss comes first"
    assert columns.index("trace/distance") > first
    assert [line.partition(": ")[2].partition(":")[0] for line in said if "they part in record 1 (round 1)" in line] == ["SGD, seed 0", "SGD, seed 1"]
    assert here("show", once, next((once / "job").glob("SGD-*"))).returncode == 2


def test_run_says_what_may_help_where_ranks_mostly_waited(tmp_path):
    (run,) = mc.run({"data": {"generator": "gspar", "samples": 20, "dim": 4}, "algorithm": {"name": "gd"}, "stop": {"rounds": 2}}, out=tmp_path)

    def told(ranks, seconds, exchange):
        timing = {"seconds": np.array([0.0, seconds]), "exchange": np.array([0.0, exchange])}
        return "; ".join(_waited([dataclasses.replace(run, attrs={**run.attrs, "n_ranks": ranks}, timing=timing)]))

    assert "MPI_COMPRESS_CROWDED=1 may help" in told(4, 10.0, 9.0)
    assert run.label in told(4, 10.0, 9.0)
    assert told(1, 10.0, 9.0) == told(4, 10.0, 7.0) == told(4, 4.0, 3.9) == ""


def test_a_plan_says_of_a_run_that_is_done_no_more_than_that(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(
        'data = { generator = "gspar", samples = 30, dim = 5 }\nobjective.mu = 0.1\nworkers.count = 2\nalgorithm.name = "ship-data"\nstop.rounds = 10\n'
    )
    assert main(["run", "job.toml", "--quiet"]) == 0
    capsys.readouterr()
    assert mc.read(next(tmp_path.rglob("*.h5"))).attrs["reason"], "`show` says why it ended"
    assert main(["plan", "job.toml"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("  done")
