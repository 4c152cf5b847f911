"""The page of all jobs: what is on it, how large it gets, and that it needs nothing else."""

import base64
import csv
import hashlib
import io
import json
import re
import signal
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers.made_up import made_up_results
from helpers.refusals import refused
from helpers.running import BIN, PATIENT, command, wait_for
from matplotlib.colors import to_rgb
from PIL import Image

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.evidence.outcomes import Outcome, job_files, outcomes
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.figures.plotting import draw
from mpi_compress.job.loading import load_job, parse_job
from mpi_compress.job.tables import Claim, FigureTable
from mpi_compress.planning import pool
from mpi_compress.report import render
from mpi_compress.report import text as tables

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
basis = "paper"
says = "gradient descent sends more <i>elements</i>"
value = "elements_up('GD') / elements_up('{HOSTILE}')"
paper = 10
holds = ">= 5"
note = "3 of 30 are sent"
[[claim]]
id = "HT-99"
basis = "paper"
says = "the loss falls below zero"
value = "loss('GD')"
holds = "< 0"
why = "it is a logarithm of more than one"
[[claim]]
id = "HT-100"
basis = "paper"
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
    return outcomes(job_files([str(folder / "jobs")]), folder / "results")


@pytest.fixture(scope="module")
def html(folder, found):
    render.write(found, folder / "report.html")
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


def test_tiles_say_of_how_many_sentences_and_cases_they_are(html):
    tiles = html.partition('<ul class="tiles">')[2].partition("</ul>")[0]
    assert "<strong>2 of 3 sentences hold, 1 does not; 2 of 6 cases hold, 1 does not, 3 not run</strong>" in tiles
    assert "<strong>2</strong> sentences hold, 2 of 4 cases tested</li>" in tiles
    assert "<strong>0</strong> sentences not tested or not run" in tiles
    assert "in all" not in tiles, "one setting alone"


def test_a_figure_comes_with_its_job_commands_times_bits_and_host(folder, html):
    assert f"mpi-compress run {folder / 'jobs' / 'ht' / 'small.toml'}" in html
    assert "samples = 60" in html
    run = mc.read(next((folder / "results").rglob("GD-*.h5")))
    assert run.attrs["host"] in html
    assert f"{run.trace['loss'][-1]:.7g}" in html
    assert all(f">{name} %</th>" in html for name in ("compute", "pack", "exchange", "update"))


def test_a_page_s_commands_are_those_that_its_results_are_read_by(folder, tmp_path):
    job, out = str(folder / "jobs" / "ht" / "small.toml"), str(folder / "results")
    assert main(["run", job, "--out", out, "--quiet", "--only", "GD", "--set", "data.seed=3"]) == 0
    assert main(["report", job, "--out", out, "--only", "GD", "--set", "data.seed=3", "-o", str(tmp_path / "r.html")]) == 0
    commands = re.search(r'<pre class="commands".*?>(.*?)</pre>', (tmp_path / "r.html").read_text(), re.DOTALL)[1]
    assert commands.splitlines() == [f"mpi-compress {verb} {job} --only=GD --set=data.seed=3 --out={out}" for verb in ("run", "plot", "check")]


def test_what_users_write_is_text_on_the_page_and_in_its_data(html):
    assert "<script>alert" not in html
    assert "<em>title" not in html
    assert "<i>elements" not in html
    assert ">Coordinates a round and worker<" in html, "as show says; it is a mean over those that are silent, too"
    assert json.loads(data_of(html))["figure-ht-small"]["lines"][1]["label"] == HOSTILE


def test_the_page_has_a_title_of_its_own(folder, tmp_path):
    job = str(folder / "jobs" / "ht" / "small.toml")
    out = str(tmp_path / "r.html")
    assert main(["report", job, "--out", str(folder / "results"), "-o", out, "--title", "Mine & <b>more</b>"]) == 0
    assert "<h1>Mine &amp; &lt;b&gt;more&lt;/b&gt;</h1>" in Path(out).read_text()


def data_of(html):
    return re.search(r'<script type="application/json" id="curves">(.*?)</script>', html, re.DOTALL)[1]


def test_the_page_names_no_address_and_is_small(html):
    shipped = Path(render.__file__).parent
    own = html
    for name in ("uPlot.iife.min.js", "uPlot.txt"):
        text = (shipped / name).read_text()
        assert text in html
        own = own.replace(text, "")
    assert len(html) < 250_000
    assert set(re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(.{5})""", own)) - {"data:"} <= {"#figu", "#scor", "#what", "#ours"}
    assert re.search("Content-Security-Policy\" content=\"default-src 'none'", own)


def test_the_plotting_script_is_the_one_that_the_package_says():
    shipped = Path(render.__file__).parent
    said = re.findall(r"^([0-9a-f]{64})  (.+)$", (shipped / "uPlot.txt").read_text(), re.MULTILINE)
    assert [name for _, name in said] == ["uPlot.iife.min.js", "uPlot.min.css"]
    assert all(hashlib.sha256((shipped / name).read_bytes()).hexdigest() == digest for digest, name in said)


def test_the_figure_and_who_won_come_before_the_tables_of_a_job(html):
    article = html[html.index('<article id="figure-ht-small"') :]
    places = [article.index(text) for text in ('<p class="won">Least ', '<img class="picture" src="data:image/png;base64,', '<h4>What each method', "How each run ended")]
    assert places == sorted(places)


def test_the_table_links_jobs_and_shows_their_state(folder, found):
    tables.write_table(found, folder / "figures.md")
    lines = (folder / "figures.md").read_text().splitlines()
    assert lines[0] == "# Figures and claims"
    with (folder / "figures.csv").open(encoding="utf-8", newline="") as file:  # the cases
        cases = list(csv.DictReader(file))
    assert len(cases) == sum(len(o.verdicts) for o in found)
    assert {case["job"] for case in cases} == {o.key for o in found if o.verdicts}
    tables.write_table(found, folder / "figures.md", "Networks")
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
    assert "all claims of papers: 2 of 3 cases hold, 1 does not" in first.stdout
    assert re.search(r"^\S+: Least uplink bits.* to suboptimality ≤ \S+.* – GD: \S+ kbit", first.stdout, re.MULTILINE), first.stdout
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


def test_labels_of_which_each_job_has_some_take_those_and_a_job_that_has_none_is_left_out_in_a_line(tmp_path, capfd):
    one, two, three = files = [tmp_path / f"{name}.toml" for name in ("one", "two", "three")]
    for file, labels in zip(files, (["A", "B"], ["A"], ["C"]), strict=True):
        runs = "".join(f'[[run]]\nlabel = "{label}"\n' for label in labels)
        data = 'data = { generator = "gspar", samples = 60, dim = 30 }\n'
        file.write_text(f'{data}stop = {{ rounds = 3 }}\nalgorithm = {{ name = "gd" }}\n{runs}')
    page, out = tmp_path / "r.html", tmp_path / "results"
    asked = ["report", *map(str, files), "--run", "--out", str(out), "-o", str(page)]
    assert main([*asked, "--only", "A", "--only", "B"]) == 0
    assert sorted(mc.read(file).label for file in out.rglob("*.h5")) == ["A", "A", "B"]
    left_out = [line for line in capfd.readouterr().err.splitlines() if "leaves out" in line]
    assert left_out == [f"mpi-compress: --only leaves out 1 job without such a run: {three}"]
    commands = re.findall(r"^mpi-compress run .*", re.sub("<.*?>", "", page.read_text()), re.MULTILINE)
    assert sorted(commands) == sorted([f"mpi-compress run {one} --only=A --only=B --out={out}", f"mpi-compress run {two} --only=A --out={out}"])
    assert main([*asked, "--only", "A", "--only", "none"]) == 2
    assert "--only: no job has a run called 'none'" in capfd.readouterr().err


def test_jobs_at_once_share_the_memory_that_there_is(tmp_path, monkeypatch):
    """Where one job fills it, the next waits; what needs more than there is runs alone."""
    monkeypatch.setattr(pool, "available", lambda: 1.0)
    files = []
    for i in range(2):
        files.append(tmp_path / f"job{i}.toml")
        files[-1].write_text(
            f'seed = {i}\ndata = {{ generator = "gspar", samples = 60, dim = 30 }}\nstop = {{ rounds = 3 }}\nalgorithm = {{ name = "gd" }}\n'
        )
    told = []
    status = pool.run_jobs(files, tmp_path, False, 3, told.append)
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


def test_the_table_has_a_picture_of_every_job_with_results_beside_its_verdicts(found, tmp_path):
    tables.write_table(found, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    pictures = re.findall(r"\((page/.*\.png)\)", text)
    assert len(pictures) == sum(bool(o.job and o.runs) for o in found) > 0
    assert all((tmp_path / picture).read_bytes().startswith(b"\x89PNG") for picture in pictures)
    section = text.partition("### ht/small\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    assert re.search(r"^!\[.*\]\(page/ht/small\.png\)\n\n.* holds.*; .* does not hold.*\.$", section, re.MULTILINE), section


def test_a_figure_that_counts_other_bits_than_the_table_is_said_so(found):
    small = next(o for o in found if o.key == "ht/small")
    said = "The figure counts uplink bits by the papers' formula, the table uplink bits on the wire."
    for x, by in (("paper_bits_up", said), ("wire_bits_up", "")):
        assert render._figure(small.shown, FigureTable(x, "loss", to={"loss": 0.5}))["counts"] == by


def test_the_picture_of_a_page_has_the_hues_of_plot():
    labels = [{"label": f"method {i}"} for i in range(12)]
    job = parse_job({"data": {"generator": "gspar"}, "algorithm": {"name": "gd"}, "stop": {"rounds": 9}, "run": labels}, "job", Path(), {})
    runs, figure = made_up_results(job), FigureTable("round", "loss")
    drawn, whole = draw(runs, figure), io.BytesIO()
    drawn.savefig(whole, dpi=180)
    small = io.BytesIO(base64.b64decode(render._picture(runs, figure)["picture"].partition(",")[2]))
    wanted, found = (np.asarray(Image.open(each).convert("RGB"), int) for each in (whole, small))
    for line in drawn.axes[0].lines:
        of_line = (wanted == np.round(255 * np.array(to_rgb(line.get_color())))).all(-1)
        assert of_line.any()
        assert np.max(np.abs(found - wanted)[of_line]) < 10
    plt.close(drawn)


def test_check_and_the_report_say_the_same_of_a_claim_s_data(tmp_path, capsys):
    """Of a job on its paper's data a claim may be another paper's, which has others."""
    job = tmp_path / "two.toml"
    own = JOB.replace('full = { data = { name = "gisette" } }', "")
    job.write_text(own.replace('"HT-99"\nbasis = "paper"', '"HT-99"\nbasis = "other data"'))
    mc.run(job, out=tmp_path, quiet=True)
    rows = re.findall(r'<a href="#figure-two">(HT-\d+)</a>(.*?)</tr>', render.page(outcomes([job], tmp_path)), re.DOTALL)
    assert main(["check", str(job), "--out", str(tmp_path)]) == 1
    lines = re.findall(r"^(HT-\d+): (.*)$", capsys.readouterr().out, re.MULTILINE)
    for claims in rows, lines:
        assert [(claim, "other data" in said) for claim, said in claims] == [("HT-98", False), ("HT-99", True), ("HT-100", False)]


def test_what_stands_under_a_picture_is_of_its_own_job():
    claim = Claim("X", "so it is", "1", "<= 2", "paper")
    jobs = [Outcome(Path(f"{name}.toml"), name, "", None, verdicts=[Verdict(claim, values)]) for name, values in (("a", [1.0]), ("b", [5.0]))]
    assert [tables._judged(o) for o in jobs] == ["\nX holds.\n", "\nX does not hold.\n"]
    text = tables.table(jobs, pictures={jobs[0]: "!", jobs[1]: "!"})
    assert "!\n\nX holds.\n" in text
    assert "!\n\nX does not hold.\n" in text


def test_the_summary_counts_sentences_and_all_rows():
    claim = Claim("X", "so it is", "1", "<= 2", "paper")
    judged = [Verdict(claim, values) for values in ([1.0], [5.0], [6.0], [], [], [])]
    said = list(tables.summary([Outcome(Path("a.toml"), "a", "", None, verdicts=judged)]))
    assert said[0] == "a  not run; claims: 1 of 6 holds, 2 do not, 3 not run"
    assert said[3:] == [
        "The papers' claims, in the papers' setting: 1 of 1 sentence holds in part; 1 of 6 cases holds, 2 do not, 3 not run",
        "all claims of papers: 1 of 6 cases holds, 2 do not, 3 not run",
    ]


def test_the_summary_prints_undecided_claims_too_and_a_case_of_ours_is_ours(tmp_path):
    claim = Claim("OWN-1", "so it is", "1", ">= 2", basis="ours", why="a word with a number, 7")
    open_claim, failing = Verdict(claim, [1.0, 3.0, 1.0, 3.0, 1.0]), Verdict(claim, [1.0])
    outcome = Outcome(Path("a.toml"), "a", "", None, verdicts=[open_claim, failing])
    undecided, fails = (line for line in tables.summary([outcome]) if line.startswith("a: "))
    assert "undecided" in undecided
    assert "does not hold: the job says: a word with a number, 7" in fails
    tables.write_table([outcome], tmp_path / "t.md")
    cases = [*csv.DictReader((tmp_path / "t.csv").read_text().splitlines())]
    assert [(case["basis"], case["verdict"]) for case in cases] == [("ours", "undecided"), ("ours", "does not hold")]


def test_of_a_job_that_is_of_no_paper_what_it_says_of_that_stands_there(tmp_path, capsys):
    file = tmp_path / "own.toml"
    file.write_text(JOB.replace('paper = "HT fig. 99"', 'paper = "none: HT asks it"'))
    (own,) = outcomes([file], tmp_path)
    assert own.paper == "HT asks it"
    assert tables.group_of(own) == "", "it is no job of that paper"
    assert main(["list", str(file)]) == 0
    assert "[HT asks it]" in capsys.readouterr().out
