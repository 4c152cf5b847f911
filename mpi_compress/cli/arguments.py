"""What each command takes: a table of commands, and the arguments that several of them share, each said once.

Nothing heavy is imported here, so that `--help`, `--version` and a wrong command wait for no other package.
"""

import math
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpi_compress.core.shipped import named

Argument = tuple[tuple[str, ...], Mapping[str, Any]]
"""The names and the settings of `ArgumentParser.add_argument`."""


@dataclass(frozen=True)
class Command:
    """A command's line in `--help`, its arguments, and the commands that it has itself."""

    help: str
    arguments: Sequence[Argument] = ()
    commands: Mapping[str, "Command"] = field(default_factory=dict)


def _take(*names: str, **settings: Any) -> Argument:
    return names, settings


def _flag(name: str, help: str) -> Argument:
    return _take(name, action="store_true", help=help)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text} was given; it should be a whole number from 1 on")
    return int(text)


def _ends(text: str) -> list[float]:
    try:
        low, high = map(float, text.split(":"))
        if not -math.inf < low < high < math.inf:
            raise ValueError
    except ValueError:
        raise ArgumentTypeError(f"{text} was given; an axis's ends are required, the lower one first, such as 1e-4:1") from None
    return [low, high]


def _page(text: str) -> str:
    if Path(text).suffix not in (".html", ".htm"):
        raise ArgumentTypeError(f"{text} was given; a report is a page, .html, which browsers print to PDF")
    return text


def _out(where: str) -> Argument:
    return _take("--out", default="results", metavar="FOLDER", help=f"{where} (default: results)")


def _what(text: str, metavar: str = "JOB|RESULT.h5") -> list[Argument]:
    """Jobs or results; of a job, which of its runs, what is set in them, and where their results are."""
    return [_take("what", nargs="+", type=named, metavar=metavar, help=text), *_CHOICE, *_RESULTS]


_A_JOB = "a job file, or one of the package's by its name (`mpi-compress list jobs`)"
_JOB = _take("job", type=named, metavar="JOB", help=_A_JOB)
_JOBS = _take("jobs", type=named, nargs="+", metavar="JOB", help=_A_JOB)
_FULL = _flag("--full", "at full size, as the job's table [full] says")
_RESULTS = [_out("where the job's results are"), _FULL]
_CHOICE = [
    _take("--only", action="append", metavar="LABEL", help="the runs of this label, such as 'top-*'; again for more"),
    _take("--set", action="append", default=[], metavar="KEY=VALUE", help="such as stop.rounds=100"),
]
_RUNS = [
    *_CHOICE, _take("--index", type=int, metavar="I", help="the run of this number in `plan`"), _out("where results go"), _FULL,
]  # fmt: skip
_AXES = [
    _take("--x", metavar="COLUMN", help="of the figure, such as wire_bits_up, cost_up, round, epoch, seconds"),
    _take("--y", metavar="COLUMN", help="of the figure, such as loss, suboptimality, grad_norm, budget"),
]
_PAGE = [
    _take("jobs", nargs="*", type=named, metavar="JOB|FOLDER", help="job files, or folders of such (default: ./jobs)"),
    _take("-o", dest="page", type=_page, default="report.html", metavar="PAGE.html", help="the page (default: report.html)"),
    _take("--title", help="of the pages (default: the job's own; of jobs of the papers: The papers, reproduced)"),
    _out("where the jobs' results are"),
    _take("--table", metavar="FILE.md", help="also a table of figures, data and status, as Markdown"),
    _take("--gallery", metavar="FILE.md", help="also all figures as pictures, in a page of Markdown"),
    _flag("--full", "at full size, where a job has a table [full]"),
]
_VERIFY = "run K rounds (8) of each run in other ways, compare every message and state, and keep nothing; exit 1 if any differs"
_VERBOSE = ("-v", "--verbose")
_OF_RUN = [
    _flag("--fresh", "run again what is done"),
    _flag("--quiet", "no progress, no summary: only what went wrong"),
    _take(*_VERBOSE, action="store_true", help="a line for each run and each trial of [tune] that ends, with its file"),
    _flag("--one-process", "do not look for a launcher's other ranks"),
    _take("--time-limit", metavar="TIME", help='save and end (exit 75) after this time: "50 min", 01:30:00, or seconds'),
    _flag("--force", "try also what needs more memory than there is"),
    _take("--verify", nargs="?", type=_positive, const=8, metavar="K", help=_VERIFY),
    _take("--submitted", type=Path, metavar="FOLDER", help="run the job as `submit` has frozen it in this folder"),
]
_OF_CHECK_PART = [
    _take("name", metavar="NAME", help="a part of any kind; a format with --job alone"),
    _take("parameters", nargs="*", metavar="KEY=VALUE", help="its parameters, such as k=3, where no run of JOB has it"),
    _take("--job", type=named, metavar="JOB", help=f"as its runs have it, or by itself a part of its plugins: {_A_JOB}"),
    _take(*_VERBOSE, action="store_true", help="name the check behind each line"),
]
_MODEL = "seconds and bits of a round of so many workers, modelled by parts that are timed here (a few seconds a method)"
_OF_PLAN = [
    _take("--ranks", type=_positive, metavar="R", help="the memory, or with --model a round, of R ranks"),
    _take("--model", metavar="N:M", help=_MODEL),
    _take("--link", metavar="LINK.toml", help="for --model: the link, a table of `mpi-compress calibrate`"),
    _take("--shard", type=_positive, metavar="ROWS", help="for --model: samples of each worker (default: N/n)"),
    _take("-o", dest="figure", metavar="FILE", help="for --model: a figure (.png, .pdf, .svg) or a .csv"),
    _flag("--force", "do not refuse what needs more memory than there is"),
]
_LIMIT = 'limit of a task: 01:00:00, "2 h", or minutes; what is not done by then is queued again'
_OF_SUBMIT = [
    _take("--ntasks", type=int, metavar="N", help="ranks of a run (default: one a worker, and the master)"),
    _take("--nodes", type=int, metavar="N", help="computers of a run (default: as SLURM finds fit)"),
    _take("--time", metavar="TIME", help=_LIMIT),
    _take("--partition", metavar="NAME", help="the partition to queue in (default: the cluster's)"),
    _take("--account", metavar="NAME", help="the account to charge (default: yours)"),
    _take("--max-running", type=int, metavar="N", help="at most N tasks at a time (default: no limit)"),
    _take("--pack", type=int, default=1, metavar="N", help="N small runs a task, on one node, one core each (default: 1)"),
    _take("--launcher", choices=["srun", "mpiexec"], help="what starts the ranks (default: srun, where MPI knows it)"),
    _take("--mpi", metavar="KIND", help="srun's --mpi, one of `srun --mpi=list` (default: pmi2 for MPICH from PyPI)"),
    _take("--warn", default="2 min", metavar="TIME", help="save a run this long before its limit (default: 2 min)"),
    _take("--module", dest="modules", action="append", default=[], metavar="NAME", help="an environment module to load first"),
    _take("--venv", metavar="FOLDER", help="the virtual environment to activate first (default: the one in use)"),
    _take("--sbatch", action="append", default=[], metavar="OPTION", help="a further option of sbatch, such as --sbatch=--mem=8G"),
    _flag("--fresh", "submit what is done, too; its results are kept as .h5.old"),
    _flag("--dry-run", "print the script, submit nothing"),
]
_PLUGINS = _flag("--with-plugins", "import the plugins that results name, where their suboptimality needs them")
_BOUNDS = "drawn dashed over the curves: bound, or lower_up,upper_up"
_STYLE = "paper: Times' letters, no title and no tuned values (the text says them), a PDF with its fonts (default: screen)"
_OF_PLOT = [
    _take("--bounds", type=lambda s: [name.strip() for name in s.split(",")], metavar="COLUMNS", help=_BOUNDS),
    _take("--xlim", type=_ends, metavar="LOW:HIGH", help="the ends of the x axis, such as 1e-4:1"),
    _take("--ylim", type=_ends, metavar="LOW:HIGH", help="the ends of the y axis, such as 1e-4:1"),
    _take("--style", choices=("screen", "paper"), default="screen", help=_STYLE),
    _take("--width", metavar="WIDTH", help="3.3in, 84mm, 8.4cm or 239pt (default: 3.3in; with panels 6.9in)"),
    _take("-o", dest="figure", metavar="FIGURE", help="a .png, .pdf or .svg (default: beside the results)"),
    _PLUGINS,
]
_TO = "a target, such as loss=0.4, suboptimality=1e-3 or test_accuracy>=0.9; may be given several times"
_BY = "what it took: wire_bits_up (the default), wire_bits (down, too), cost_up, paper_bits_up, seconds, round, or another"
_OF_TABLE = [
    _take("--to", action="append", default=[], metavar="COLUMN=LEVEL", help=_TO),
    _take("--by", default="wire_bits_up", metavar="COLUMN", help=_BY),
    _take("-o", dest="table", metavar="TABLE", help="write it to a .md, a .tex (with booktabs) or a .csv"),
    _PLUGINS,
]
_EVERY = 'the time between two looks (default: "2 s", or "1 min" where this prints into a file)'
_OF_WATCH = [
    _take("-o", metavar="FIGURE", dest="figure", help="also draw the figure into this file, again and again"),
    _take("--every", metavar="TIME", help=_EVERY),
    _flag("--once", "look once, and end"),
]
_UNLISTED = [(names, {**settings, "help": SUPPRESS}) for names, settings in _RUNS if names[0] != "--out"]
_FIG = "the file that is written: job, plugins, results and a checklist"
_OF_REPRODUCE = [
    _take("--at-once", type=int, default=2, metavar="N", help="at most N jobs at a time, as memory allows (default: 2)"),
    _flag("--get", "fetch the sets that jobs at full size name and that are not here"),
]
_OF_SHOW = [
    _take("results", nargs="+", metavar="RESULT.h5", help="one, two that are compared, or any number"),
    _flag("--csv", "its records as CSV: all columns of the trace, and seconds"),
    _take("--split", metavar="FIGURE", help="draw which samples each worker had, to a .png, .pdf or .svg"),
    _take("--bounds", metavar="FIGURE", help="draw CAT's table 1, the bounds on its rounds, likewise"),
]
_OUT, _YES, _SOME = _out("where results are"), _flag("--yes", "do not ask"), "JOB|RESULT.h5"
_CHECK = _flag("--check", "read all checksums; a line for each file that is damaged (exit 3)")
_LISTED = _take("what", nargs="*", metavar=_SOME, help="names of jobs, or files (default: all)")
_REMOVED = _take("what", nargs="+", metavar=_SOME, help="names of jobs, or files")
_NAMING = _take("what", nargs="*", metavar="JOB|FOLDER", help="all the job files, or folders of such (default: ./jobs)")
_FORMER = _take("job", metavar="JOB", help="the name that it had, such as fig1")
_NEW = _take("to", metavar="NEW", help="the name that it has, such as cat/fig1")
_TRIALS = _flag("--trials", "the trials of [tune], too")
_OF_RESULTS = {
    "ls": Command("list results: job, label, settings that vary, status, loss, size, age", [_LISTED, _TRIALS, _CHECK, _OUT]),
    "rm": Command("remove results, with their checkpoints", [_REMOVED, _OUT, _YES]),
    "gc": Command("remove the results that no job names any more", [_NAMING, _OUT, _YES]),
    "mv": Command("move a job's results, as its file was moved", [_FORMER, _NEW, _OUT]),
}
_CHECKED = "rerun a job's [[record]] tables, and compare their bits with those that are claimed; exit 1 if any needs more"
_PROFILE = "the share of targets that each method reaches within a factor of what the best one took, over all problems of jobs"
_OF_PROFILE = [
    _take("jobs", nargs="+", type=named, metavar="JOB|FOLDER", help="job files, or folders of such"),
    _take("--to", action="append", metavar="COLUMN=LEVEL", help="a target; again for more (default: suboptimality=1e-3 … 1e-12)"),
    _take("--by", action="append", metavar="COLUMN", help="what is paid; again for more (default: bits)"),
    _take("-o", dest="figure", metavar="FILE", help="also draw it, as .png, .pdf or .svg"),
]
_ANEW, _QUIET = _flag("--fresh", "run again what this command has run"), _flag("--quiet", "no progress")
_OF_RECORDS = {
    "check": Command(_CHECKED, [_JOB, *_RUNS, _ANEW, _QUIET]),
    "profile": Command(_PROFILE, [*_OF_PROFILE, *_CHOICE, *_RESULTS]),
}
_OF_CALIBRATE = [
    _take("-o", dest="table", default="link.toml", metavar="LINK.toml", help="where to write (default: link.toml)"),
    _take("--repeats", type=int, default=30, metavar="N", help="trips there and back for each size (default: 30)"),
    _take("--largest", default="8 MB", metavar="SIZE", help="the largest message (default: 8 MB)"),
]
_URL = "another address of the collection (or $MPI_COMPRESS_DATA_URL)"
_OF_CSV = "of a CSV file: label=COLUMN (the last one), test=0.2 (samples for a test set), seed=0"
_OF_GET = [_take("names", nargs="+", metavar="NAME"), _take("--from", dest="url", metavar="URL", help=_URL), _QUIET]
_OF_MAKE = [
    _take("generator", metavar="GENERATOR|FILE.csv", help="a CSV file, or a generator of `mpi-compress list datasets`"),
    _take("parameters", nargs="*", metavar="KEY=VALUE", help=f"its parameters, such as samples=1000; {_OF_CSV}"),
    _take("-o", dest="file", metavar="FILE", help="LIBSVM text; .gz, .bz2 and .xz are compressed"),
]
_OF_SOLVE = [
    _take("file", metavar="FILE|NAME|JOB.toml"),
    _take("settings", nargs="*", metavar="KEY=VALUE", help='of [data] and [objective], such as loss=hinge mu="1e-4 L"'),
]
_OF_DATA = {
    "list": Command("the sets and generators there are, and where a set is found"),
    "get": Command("fetch sets of the LIBSVM collection, or sets for networks, into the user's cache folder", _OF_GET),
    "make": Command("generate a set, as a job that names it would, or write it, or a CSV file, as LIBSVM text", _OF_MAKE),
    "info": Command("what is in a file of LIBSVM text, or in a set", [_take("file", metavar="FILE|NAME")]),
    "solve": Command("L, x* and f* of a set, or of all problems of a job, computed and kept", _OF_SOLVE),
}
_FOLDER = _take("folder", nargs="?", default=".", metavar="FOLDER", help="where to write them (default: here)")
_PARTS = (
    "algorithms, servers, downlinks, compressors, codecs, losses, penalties, models, partitions, metrics, costs, robust, "
    "attacks, formats, datasets, columns, claims or jobs; or a part's name; JOB.toml: with the parts of its plugins"
)

COMMANDS = {
    "new": Command("write a job, a compressor and a README to begin with", [_FOLDER]),
    "run": Command("run a job, under mpiexec or in one process", [_JOB, *_RUNS, *_OF_RUN]),
    "plan": Command("list the runs of a job; runs nothing", [_JOBS, *_RUNS, *_OF_PLAN]),
    "submit": Command("SLURM: one array task a run, resumable", [_JOB, *_RUNS, *_OF_SUBMIT]),
    "plot": Command(
        "draw a job's figure, or results",
        [*_what("job files, whose runs share a figure with the axes of the first; or result files"), *_AXES, *_OF_PLOT],
    ),
    "table": Command("what each method needed to reach a target", [*_what("job files, or result files"), *_OF_TABLE]),
    "watch": Command(
        "what is running, redrawn: rounds, losses, bits a second, and the figure",
        [*_what("a job, or results and folders of them", "JOB|RESULT|FOLDER"), *_AXES, *_OF_WATCH],
    ),
    "check": Command("a job's claims against its results", [_JOB, *_CHOICE, *_RESULTS]),
    "check-part": Command("a part against what it states: slopes, curvature, δ, ω, round trips, draws", _OF_CHECK_PART),
    "report": Command("every figure, claim and table in one self-contained page", [*_PAGE, *_CHOICE]),
    "archive": Command(
        "a job, its plugins and results as one zip, which `run` runs again and compares",
        [_JOB, *_UNLISTED, _out("where results are"), _take("-o", dest="file", required=True, metavar="FIG.zip", help=_FIG)],
    ),
    "reproduce": Command("run many jobs, except what is done, and write their report", [*_PAGE, *_CHOICE, *_OF_REPRODUCE]),
    "show": Command("what is in a result, or how several differ", _OF_SHOW),
    "results": Command("list, remove and move what lies in results", commands=_OF_RESULTS),
    "records": Command("records that a job claims, checked by another run", commands=_OF_RECORDS),
    "calibrate": Command("under mpiexec: time messages on the real link, fit cost models to them", _OF_CALIBRATE),
    "data": Command("fetch, generate and describe data sets", commands=_OF_DATA),
    "list": Command("what exists, its parameters, its paper", [_take("what", nargs="*", metavar="KIND|NAME|JOB", help=_PARTS)]),
}
"""Commands by name. A command is `act(options)` of its module in `cli/`; one of its own commands is a function such as `act_ls`."""

GROUPS = {
    "run": ("new", "run", "plan", "reproduce", "check-part"),
    "look": ("plot", "table", "show", "check", "watch", "results", "report"),
    "data": ("data", "list"),
    "cluster": ("submit", "calibrate"),
    "share": ("archive", "records"),
}
"""The commands as `--help` has them."""
