"""The page of all jobs: what is on it, how large it gets, that it needs nothing else, and that thinning keeps a line's shape."""

import csv
import json
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.refusals import refused
from helpers.running import BIN, PATIENT, command, wait_for

import mpi_compress as mc
from mpi_compress import report as page
from mpi_compress.cli.main import main
from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.job.loading import load_job
from mpi_compress.job.tables import Claim, FigureTable
from mpi_compress.planning import pool as reproduce
from mpi_compress.preparing import memory_needs as footprint
from mpi_compress.report import render, series

HOSTILE = "</script><script>alert(1)</script> & <b>"
JOB = f"""
title = "Small <em>title</em>"
paper = "HT fig. 99"
data = {{ generator = "gspar", samples = 60, dim = 30 }}
full = {{ data = {{ name = "gisette" }} }}
objective = {{ mu = "1e-2 L" }}
workers = {{ count = 3 }}
stop = {{ rounds = 40 }}
grid = {{ seed = [0, 1, 2] }}
figure = {{ x = "wire_bits_up", y = "suboptimality", xscale = "log" }}
[[run]]
label = "GD"
algorithm = {{ name = "gd" }}
[[run]]
label = '''{HOSTILE}'''
algorithm = {{ name = "sgd", batch = 2 }}
up = {{ compressor = {{ name = "top-k", k = 3 }} }}
[[claim]]
id = "HT-98"
says = "gradient descent sends more <i>elements</i>"
value = "elements_up('GD') / elements_up('{HOSTILE}')"
paper = 10
holds = ">= 5"
note = "3 of 30 are sent"
[[claim]]
id = "HT-99"
says = "the loss falls below zero"
value = "loss('GD')"
holds = "< 0"
why = "it is a logarithm of more than one"
[[claim]]
id = "HT-100"
says = "and not below minus one"
value = "round('GD', loss=-1)"
holds = "> 0"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """jobs/: one with results on other data, one that was not run, one that cannot be read."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "jobs" / "ht").mkdir(parents=True)
    (folder / "jobs" / "ht" / "small.toml").write_text(JOB)
    (folder / "jobs" / "idle.toml").write_text(JOB.replace("rounds = 40", "rounds = 41"))
    (folder / "jobs" / "broken.toml").write_text("title = 3\n")
    mc.run(load_job(folder / "jobs" / "ht" / "small.toml"), out=folder / "results")
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return page.outcomes(page.job_files([str(folder / "jobs")]), folder / "results")


@pytest.fixture(scope="module")
def html(folder, found):
    page.write(found, folder / "report.html")
    return (folder / "report.html").read_text()


def test_every_job_has_its_state_and_every_claim_its_verdict(found, html):
    broken, small, idle = sorted(found, key=lambda o: ["broken", "ht/small", "idle"].index(o.key))
    assert (small.status, small.kind, small.counted) == ("done", "other data", "2 of 3 hold, 1 does not")
    assert (idle.status, idle.counted) == ("not run", "3 of 3 not run")
    assert broken.status.startswith("not run: ")
    verdicts = (("holds", "holds", 2), ("fails", "does not hold", 1), ("open", "not run", 3))
    assert all(html.count(f'<span class="verdict {kind}">{text}</span>') == n for kind, text, n in verdicts)
    for text in (
        "gspar in place of gisette", "it is a logarithm of more than one", "3 of 30 are sent", "over 3 seeds",
        "never comes down to loss = -1", "HT fig. 99",
    ):
        assert text in html


def test_a_figure_comes_with_its_job_commands_times_bits_and_host(folder, html):
    assert f"mpi-compress run {folder / 'jobs' / 'ht' / 'small.toml'}" in html
    assert "samples = 60" in html
    run = mc.read(next((folder / "results").rglob("GD-*.h5")))
    assert run.attrs["host"] in html
    assert f"{run.trace['loss'][-1]:.7g}" in html
    assert all(f">{name} %</th>" in html for name in ("compute", "pack", "exchange", "update"))


def test_what_users_write_is_text_on_the_page_and_in_its_data(html):
    assert "<script>alert" not in html
    assert "<em>title" not in html
    assert "<i>elements" not in html
    data = json.loads(data_of(html))
    assert data["figures"]["figure-ht-small"][0]["series"][1]["label"] == HOSTILE


def test_the_page_has_a_title_of_its_own(folder, tmp_path):
    job = str(folder / "jobs" / "ht" / "small.toml")
    out = str(tmp_path / "r.html")
    assert main(["report", job, "--out", str(folder / "results"), "-o", out, "--title", "Mine & <b>more</b>"]) == 0
    assert "<h1>Mine &amp; &lt;b&gt;more&lt;/b&gt;</h1>" in Path(out).read_text()


def data_of(html):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1]


def test_the_page_names_no_address_and_is_small_beside_the_library(html):
    library = page.plotting_library()
    assert len(html) - len(library) < 300_000
    own = html.replace(library.replace("</script", "<\\/script"), "")
    assert len(own) < 300_000
    assert set(re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(.{5})""", own)) - {"data:"} <= {"#figu", "#scor", "#what"}
    assert re.search("Content-Security-Policy\" content=\"default-src 'none'", own)


def test_seeds_are_a_median_between_their_extremes(folder):
    runs = [mc.read(f) for f in sorted((folder / "results").rglob("script*.h5"))]
    assert len(runs) == 3
    (view,) = series.views(runs, FigureTable(), 1000)
    (line,) = view["series"]
    losses = np.array([r.trace["loss"] for r in runs])
    assert line["seeds"] == 3
    np.testing.assert_allclose(line["columns"]["loss"], np.median(losses, axis=0), rtol=1e-6)
    np.testing.assert_allclose(line["low"]["loss"], losses.min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(line["high"]["loss"], losses.max(axis=0), rtol=1e-6)


def test_columns_that_follow_from_others_are_not_written_out(folder):
    run = mc.read(next((folder / "results").rglob("GD-*.h5")))
    line = series.views([run], FigureTable(), 1000)[0]["series"][0]["columns"]
    assert line["elements_up"] == {"of": "round", "times": 90.0, "plus": 0.0}
    assert isinstance(line["loss"], list)


def test_all_columns_can_be_had_from_the_page_to_six_digits(folder):
    """Also those that are small differences of others, such as f − f* close to x*."""
    job = folder / "close.toml"
    job.write_text(
        'data = { generator = "least-squares", samples = 60, dim = 5 }\nobjective = { loss = "least-squares", mu = "0.1 L" }\n'
        'stop = { rounds = 100 }\nalgorithm = { name = "gd" }\n'
    )
    (run,) = mc.run(load_job(job), out=folder / "close")
    assert 0 < run.trace["suboptimality"][60] < 1e-8
    line = series.views([run], FigureTable(), 1000)[0]["series"][0]["columns"]

    def numbers(name):
        own = line[name]
        return np.array(own) if isinstance(own, list) else own["times"] * numbers(own["of"]) + own["plus"]

    for name, values in run.trace.items():
        np.testing.assert_allclose(numbers(name), values, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("row", [0, 1, 17, 4_000, 70_123, 99_999])
def test_a_spike_and_a_dip_of_one_row_survive_thinning(row):
    rounds = np.arange(100_000.0)
    up, down = 1 / (1 + rounds), np.sin(rounds / 9000)
    up[row], down[row] = 7.0, -7.0
    rows = series.kept({"round": rounds, "up": up, "down": down}, 64)
    assert row in rows
    assert {0, 99_999} <= set(rows)
    assert rows.size < 1000
    assert np.all(np.diff(rows) > 0)


def test_a_thinned_line_keeps_its_shape():
    """Between the rows that are left, a smooth line is straight to a hundredth of its range, even in logarithms."""
    rounds = np.arange(50_000.0)
    fall = np.exp(-rounds / 2000) + 1e-9
    rows = series.kept({"round": rounds, "fall": fall}, 128)
    again = np.interp(rounds, rounds[rows], np.log(fall[rows]))
    assert np.max(np.abs(again - np.log(fall))) < 0.01 * np.ptp(np.log(fall))


def test_numbers_are_short_and_exact_where_whole():
    assert series.short(np.array([1 / 3, 123456789012.0, np.nan, np.inf, -0.5])) == [0.3333333, 123456789012, None, None, -0.5]


def test_data_that_would_be_too_large_are_thinned_until_they_fit(found, monkeypatch):
    whole = len(render.data(found, render.ids_of(found)))
    monkeypatch.setattr(render, "LARGEST", whole - 1)
    assert len(render.data(found, render.ids_of(found))) < whole


def test_a_grid_is_a_line_of_points_and_what_tunes_itself_a_level(folder):
    job = folder / "levels.toml"
    job.write_text(
        """
data = { generator = "gspar", samples = 60, dim = 30 }
objective = { mu = "1e-2 L" }
stop = { rounds = 60 }
algorithm = { name = "cat" }
[[run]]
label = "CAT"
cost = { model = "affine", c0 = 500, c1 = 1 }
[[run]]
label = "T"
grid = { "algorithm.budget" = [1, 2, 4] }
[figure]
x = "budget"
y = "cost_up"
at = { loss = 0.65 }
"""
    )
    loaded = load_job(job)
    view, lines = series.views(mc.run(loaded, out=folder / "levels"), loaded.figure, 100)
    assert (view["kind"], lines["kind"]) == ("points", "lines")
    assert [s["stem"] for s in view["series"]] == ["CAT", "T", "T", "T"]
    assert [s["columns"]["budget"] for s in view["series"][1:]] == [1, 2, 4]
    assert "budget" not in view["series"][1]["varies"]
    for s in view["series"]:
        assert s["columns"]["loss"] <= 0.65


def test_the_table_links_jobs_and_shows_their_state(folder, found):
    page.write_table(found, folder / "figures.md")
    lines = (folder / "figures.md").read_text().splitlines()
    assert lines[0] == "# Figures and claims"
    with (folder / "figures.csv").open(encoding="utf-8", newline="") as file:  # the cases
        cases = list(csv.DictReader(file))
    assert len(cases) == sum(len(o.verdicts) for o in found)
    assert {case["job"] for case in cases} == {o.key for o in found if o.verdicts}
    page.write_table(found, folder / "figures.md", "Networks")
    assert (folder / "figures.md").read_text().splitlines() == ["# Networks", *lines[1:]]
    assert (
        "| [HT fig. 99](https://arxiv.org/abs/2108.00951) | [ht/small](jobs/ht/small.toml) | gspar in place of gisette | other data | done | 2 of 3 hold, 1 does not |"
        in lines
    )
    assert any("[idle](jobs/idle.toml)" in line and "| not run | 3 of 3 not run |" in line for line in lines)


def test_without_results_there_is_no_report(tmp_path, folder, capsys):
    line = ["report", folder / "jobs" / "idle.toml", "--out", tmp_path, "-o", tmp_path / "r.html"]
    assert "there are no results to report" in refused(line, capsys)
    assert not (tmp_path / "r.html").exists()


def test_a_missing_library_is_named(monkeypatch, found, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "tsdownsample", None)
    with pytest.raises(mc.UserError, match=r"needs tsdownsample: pip install .mpi-compress\[report\]"):
        page.write(found, tmp_path / "r.html")


def test_run_plays_what_is_not_done_and_one_failure_stops_no_other(folder, tmp_path):
    """A job that cannot be read, one without its set and one that diverges beside one that can; the second time nothing is run."""
    good = [folder / "jobs" / name for name in ("idle.toml", "broken.toml")]
    without = tmp_path / "without.toml"
    without.write_text('data = { name = "gisette" }\nstop = { rounds = 1 }\nalgorithm = { name = "gd" }\n')
    bad = tmp_path / "bad.toml"
    bad.write_text(
        'data = { generator = "least-squares", samples = 50, dim = 5 }\nobjective = { loss = "least-squares" }\nstop = { rounds = 4000 }\n'
        'algorithm = { name = "gd", step = "1e3/L" }\n'
    )
    arguments = (*good, without, bad, "--out", tmp_path, "-o", tmp_path / "r.html", "--table", tmp_path / "t.md")
    first = command("report", "--run", *arguments, MPI_COMPRESS_DATA=str(tmp_path))
    assert first.returncode == 3, first.stderr
    assert f"{without}: data.name: no set 'gisette'" in first.stderr
    assert f"{bad}: failed, or a run of it diverged" in first.stdout.splitlines()[-1]
    assert "all claims: 2 of 3 hold, 1 does not" in first.stdout
    written = {f: f.stat().st_mtime_ns for f in tmp_path.rglob("*.h5")}
    assert len(written) == 7
    again = command("report", "--run", *good, "--out", tmp_path, "-o", tmp_path / "r.html")
    assert again.returncode == 0, again.stderr
    assert written == {f: f.stat().st_mtime_ns for f in tmp_path.rglob("*.h5")}


@pytest.mark.slow
def test_what_is_stopped_is_saved_and_the_same_command_goes_on(tmp_path):
    job = tmp_path / "long.toml"
    job.write_text(
        'data = { generator = "least-squares", samples = 50, dim = 5 }\nobjective = { loss = "least-squares" }\nlog = { every = 1000 }\n'
        'stop = { rounds = 40000 }\nalgorithm = { name = "gd" }\n'
    )
    line = [BIN / "mpi-compress", "report", "--run", job, "--out", tmp_path, "-o", tmp_path / "r.html"]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: list(tmp_path.rglob("*.part")))
    process.send_signal(signal.SIGTERM)
    assert "the same command goes on" in process.communicate(timeout=PATIENT)[1]
    assert process.returncode == 75
    again = command("report", "--run", job, "--out", tmp_path, "-o", tmp_path / "r.html")
    assert again.returncode == 0, again.stderr
    (result,) = tmp_path.rglob("*.h5")
    assert mc.read(result).trace["round"][-1] == 40000


def test_jobs_at_once_share_the_memory_that_there_is(tmp_path, monkeypatch):
    """Where one job fills it, the next waits; what needs more than there is runs alone."""
    monkeypatch.setattr(footprint, "available", lambda: 1.0)
    files = []
    for i in range(2):
        files.append(tmp_path / f"job{i}.toml")
        files[-1].write_text(
            f'seed = {i}\ndata = {{ generator = "gspar", samples = 60, dim = 30 }}\nstop = {{ rounds = 3 }}\nalgorithm = {{ name = "gd" }}\n'
        )
    told = []
    status = reproduce.reproduce(files, tmp_path, False, 3, told.append)
    assert set(status.values()) == {0}
    begun_and_ended = [line.split(": ")[1] for line in told[:-1]]
    assert begun_and_ended[::2] == ["1 run"] * 2
    assert all(line.startswith("done") for line in begun_and_ended[1::2])


def test_csv_has_every_row_and_every_digit(folder, capsys):
    file = next((folder / "results").rglob("GD-*.h5"))
    assert main(["show", str(file), "--csv"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    table = dict(zip(head.split(","), np.array([[float(v) for v in row.split(",")] for row in rows]).T, strict=True))
    run = mc.read(file)
    for name, values in run.trace.items():
        assert np.array_equal(table[name], values, equal_nan=True)
    assert np.array_equal(table["seconds"], run.timing["seconds"])


def test_a_gallery_has_a_picture_of_every_job_with_results(folder, found, tmp_path):
    page.write_gallery(found, tmp_path / "gallery.md")
    text = (tmp_path / "gallery.md").read_text()
    pictures = re.findall(r"\((gallery/.*\.png)\)", text)
    assert len(pictures) == sum(bool(o.job and o.runs) for o in found) > 0
    assert all((tmp_path / picture).read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert "gisette" in text


def test_a_level_that_is_met_exactly_is_reached():
    assert series._row({"loss": np.array([3.0, 2.0, 2.0, 1.0])}, {"loss": 2.0}) == 1


def test_the_summary_counts_sentences_and_all_rows():
    claim = Claim("X", "so it is", "1", "<= 2", "paper")
    judged = [Verdict(claim, values) for values in ([1.0], [5.0], [6.0], [], [], [])]
    said = list(page.summary([Outcome(Path("a.toml"), "a", "", None, verdicts=judged)]))
    assert said[0] == "a  not run; claims: 1 of 6 holds, 2 do not, 3 not run"
    assert said[3:] == [
        "The papers' claims, in the papers' setting: 1 of 1 holds in part", "all claims: 1 of 6 holds, 2 do not, 3 not run"
    ]  # fmt: skip
