"""Each command, given what it cannot use, ends with one line that names it, and status 2; `bad_input` has the wrong jobs and data."""

import shutil

import pytest
from helpers.refusals import refused

import mpi_compress as mc

JOB = """
data = { generator = "gspar", samples = 30, dim = 6 }
objective.mu = 1e-3
workers.count = 2
stop.rounds = 3
[[run]]
label = "GD"
algorithm = { name = "gd" }
"""
CLAIMED = JOB + """
[[run]]
label = "other"
algorithm = { name = "gd", step = 0.1 }
[[claim]]
id = "1"
says = "both end alike"
value = "loss('GD') / loss('other')"
holds = "> 0"
"""

WRONG = [
    ("rnu job.toml", "rnu run"),
    ("run", "JOB"),
    ("run nothing.toml", "nothing.toml"),
    ("run folder", "folder"),
    ("run text", "text"),
    ("run job.toml other.toml", "other.toml"),
    ("run job.toml --time-limit soon", "--time-limit"),
    ("run job.toml --index one", "--index one"),
    ("run job.toml --index -1", "--index -1"),
    ("run job.toml --index 5", "--index 5 job go from 0 to 0"),
    ("run job.toml --only gd", "--only gd GD"),
    ("run job.toml --set =3", "--set =3: KEY=VALUE is required"),
    ("run job.toml --set stop.rounds", "KEY=VALUE"),
    ("run job.toml --set stop.round=3", "round rounds"),
    ("run job.toml --set algorithm.step=0", "step 0"),
    ("run job.toml --set up.compressor={name=\"top-k\",k=7}", "k 7 d 6"),
    ("run job.toml --full", "the job has no table [full]"),
    ("run job.toml --out job.toml", "job.toml"),
    ("plan job.toml --ranks 2", "--ranks: was removed; `plan` prints the memory of one process"),
    ("plan job.toml --out", "--out"),
    ("plot", "JOB|RESULT|FOLDER"),
    ("plot job.toml other.toml", "other.toml"),
    ("plot job.toml results/job/GD.h5", "jobs are required, or results, not both"),
    ("plot job.toml -o figure", "figure .png .pdf .svg"),
    ("plot job.toml --out nowhere", "job nowhere"),
    ("plot job.toml --x los", "los loss"),
    ("plot job.toml --y=", "--y: a column's name is required"),
    ("plot results/job/GD.h5 --only GD", "are about a job, and results were given"),
    *((f"{words} -o one.html -o two.html", "-o one.html two.html one file") for words in ("watch job.toml", "report", "archive job.toml", "calibrate")),
    ("table job.toml --to loss", "loss such as loss=0.4"),
    ("table job.toml --to lss=0.4", "lss loss"),
    ("table job.toml --to loss=0.4 --by wire_bit_up", "wire_bit_up wire_bits_up"),
    ("table job.toml --to loss=0.4 -o table.doc", "a table is written as one of .md, .tex, .csv"),
    ("table job.toml -o table.md", "--to is needed too"),
    ("check job.toml", "job.toml: makes no claims"),
    ("check claimed.toml --only other", "claimed.toml: no claim is about 'other' alone; leave --only out"),
    ("report folder -o report.html", "folder: there is no job in this folder"),
    ("report nothing", "nothing: there is no such job file or folder"),
    ("report job.toml -o report.pdf", "report.pdf a report is a page, .html"),
    ("report job.toml --at-once 0", "--at-once 0 a whole number from 1 on"),
    ("report job.toml --get", "--get --run"),
    ("show nothing.h5", "nothing.h5: there is no such file; `mpi-compress results ls` lists results"),
    ("show ef21", "`mpi-compress results ls` lists results, and `mpi-compress list ef21` shows a part"),
    ("show job.toml", "is no result but a job; `plan` and `table` take it"),
    ("show folder", "no results of runs in folder yet; `mpi-compress run JOB` makes them"),
    ("show text", "text: HDF5"),
    ("results", "COMMAND"),
    ("results rm nothing --yes", "nothing"),
    ("results mv nothing other", "nothing"),
    ("results lss", "lss ls"),
    ("results gc nothing --yes", "nothing jobs/NAME.toml"),
    ("watch nothing.h5", "nothing.h5: there is no such job, result or folder"),
    ("watch job.toml results", "takes one job, or results of any number, not both"),
    ("watch results --only done", "--only"),
    ("watch job.toml --every never", "--every"),
    ("new .", "job.toml: is there already; name another folder"),
    ("new text", "text"),
    ("calibrate", "mpiexec -n 2 mpi-compress calibrate"),
    ("plan job.toml --set grid.seed=[0]", "grid.seed: [grid] says which runs a job has, and is not set in a run; edit the job, or choose"),
    ("plan job.toml --set algorithm.name=ef --set algorithm.pool=3", "algorithm pool --set 'algorithm={name=\"ef\"}' replaces the whole table"),
    *(
        (f"{command} claimed.toml --only other --index 0", 'claimed.toml: --only other and --index 0 leave no run: run 0 is "GD"; leave one out')
        for command in ("run", "plan", "submit --dry-run")
    ),
    ("submit job.toml --ntasks 0 --dry-run", "ntasks"),
    ("submit job.toml --set stop.rounds=4 --time soon --dry-run", "--time soon"),
    ("data make gspr -o x.svm", "gspr gspar"),
    ("data make gspar samples -o x.svm", "KEY=VALUE"),
    ("data make gspar sample=3 -o x.svm", "sample samples"),
    ("list qsgd top-kk", "top-kk top-k"),
    ("list jop", "jop jobs"),
    ("list loss/ridge", "ridge huber"),
    ("list colums", "colums columns"),
    *((f"{command} {what}", what) for command in ("show", "plot", "plan", "data info", "data solve", "data get") for what in ("missing", "folder", "text")),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a job and its result, an empty folder, and a text."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "job.toml").write_text(JOB)
    (folder / "claimed.toml").write_text(CLAIMED)
    (folder / "text").write_text("nothing = of this = kind")
    (folder / "folder").mkdir()
    (run,) = mc.run(folder / "job.toml", out=folder / "results")
    shutil.copyfile(run.file, run.file.with_name("GD.h5"))
    return folder


@pytest.mark.parametrize(("line", "says"), WRONG, ids=[line for line, _ in WRONG])
def test_it_is_one_line_that_says_what_would_do(line, says, place, monkeypatch, capfd):
    monkeypatch.chdir(place)
    before = {file: file.stat().st_mtime_ns for file in place.rglob("*")}
    refused(line.split(), capfd, says)
    assert {file: file.stat().st_mtime_ns for file in place.rglob("*")} == before  # nothing is written
