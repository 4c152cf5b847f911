"""Each command, given what it cannot use, ends with one line that names it, and status 2; `bad_input` has the wrong jobs and data."""

import shutil

import pytest

import mpi_compress as mc
from mpi_compress.cli.main import main

JOB = """
[data]
generator = "gspar"
samples = 30
dim = 6
[workers]
count = 2
[stop]
rounds = 3
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
    ("", "the following arguments are required: COMMAND"),
    ("rnu job.toml", "did you mean 'run'?"),
    ("run", "the following arguments are required: JOB"),
    ("run nothing.toml", "nothing.toml: there is no such job file"),
    ("run folder", "folder: is a folder; a job file is wanted"),
    ("run text", "text: is no TOML"),
    ("run job.toml other.toml", "unrecognized arguments: other.toml"),
    ("run job.toml --time-limit soon", "--time-limit: "),
    ("run job.toml --index one", "argument --index: invalid int value: 'one'"),
    ("run job.toml --index -1", "--index: -1 was given"),
    ("run job.toml --only gd", "did you mean 'GD'?"),
    ("run job.toml --set =3", "--set =3: KEY=VALUE is wanted"),
    ("run job.toml --set stop.rounds=-1", "stop: rounds = -1 must be 0 or more"),
    ("run job.toml --set stop.round=3", "did you mean 'rounds'?"),
    ("run job.toml --set algorithm.name=gdd", "did you mean 'gd'?"),
    ("run job.toml --set workers.count=0", "workers: count = 0 must be at least 1"),
    ("run job.toml --full", "the job has no table [full]"),
    ("plan job.toml --ranks none", "none was given; it should be a whole number"),
    ("plan job.toml --out", "expected one argument"),
    ("plot", "the following arguments are required: JOB|RESULT.h5"),
    ("plot job.toml other.toml", "other.toml: there is no such job file"),
    ("plot job.toml -o figure", "a figure is written as one of .png, .pdf, .svg"),
    ("plot job.toml --x los", "did you mean 'loss'?"),
    ("plot results/job/GD.h5 --only GD", "are about a job, and results were given"),
    ("table job.toml --to loss", "such as loss=0.4"),
    ("table job.toml --to loss=low", "such as loss=0.4"),
    ("table job.toml --to lss=0.4", "did you mean 'loss'?"),
    ("table job.toml --to loss=0.4 --by wire_bit_up", "did you mean 'wire_bits_up'?"),
    ("table job.toml --to loss=0.4 -o table.doc", "a table is written as one of .md, .tex, .csv"),
    ("table job.toml -o table.md", "--to is needed too"),
    ("check job.toml", "job.toml: makes no claims"),
    ("check claimed.toml --only other", "claimed.toml: no claim is about 'other' alone; leave --only out"),
    ("report folder -o report.html", "folder: there is no job in this folder"),
    ("report nothing", "nothing: there is no such job file or folder"),
    ("reproduce job.toml --at-once 0", "--at-once 0: at least 1 job is wanted"),
    ("show nothing.h5", "nothing.h5: there is no such file"),
    ("show folder", "folder: is a folder; a result file is wanted"),
    ("show text", "text: cannot be read as HDF5"),
    ("results", "the following arguments are required: COMMAND"),
    ("results rm nothing --yes", "nothing"),
    ("results mv nothing other", "nothing"),
    ("results lss", "did you mean 'ls'?"),
    ("results gc nothing --yes", "nothing: there is no such job file or folder"),
    ("watch nothing.h5", "nothing.h5: there is no such job, result or folder"),
    ("watch job.toml --every never", "--every: "),
    ("new .", "job.toml: is there already; name another folder"),
    ("new text", "text"),
    ("calibrate", "mpiexec -n 2 mpi-compress calibrate"),
    ("plan job.toml --set grid.seed=[0]", "grid.seed: [grid] says which runs a job has, and is not set in a run; edit the job, choose"),
    ("submit job.toml --ntasks 0 --dry-run", "ntasks"),
    ("submit job.toml --set stop.rounds=4 --time soon --dry-run", "--time: 'soon' is no time"),
    ("data make gspr -o x.svm", "did you mean 'gspar'?"),
    ("data make gspar samples -o x.svm", "KEY=VALUE is wanted"),
    ("data make gspar sample=3 -o x.svm", "did you mean 'samples'?"),
    ("data info nothing", "nothing"),
    ("data get nothing", "nothing"),
    ("list qsgd top-kk", "did you mean 'top-k'?"),
    ("list job", "did you mean 'jobs'?"),
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


@pytest.mark.parametrize(("line", "says"), WRONG, ids=[line or "nothing" for line, _ in WRONG])
def test_it_is_one_line_that_says_what_would_do(line, says, place, monkeypatch, capfd):
    monkeypatch.chdir(place)
    before = {file: file.stat().st_mtime_ns for file in place.rglob("*")}
    try:
        status = main(line.split())
    except SystemExit as ended:  # argparse's
        status = ended.code
    told = capfd.readouterr()
    assert status == 2
    assert told.out == ""
    assert len(told.err.splitlines()) == 1, told.err
    assert told.err.startswith("mpi-compress")
    assert says in told.err
    assert {file: file.stat().st_mtime_ns for file in place.rglob("*")} == before  # nothing is written
