"""The command line: `mpi-compress`, also `python -m mpi_compress`."""

import argparse
import io
import os
import shlex
import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import mpi_compress as mc
from mpi_compress.cli import data as data_command
from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import seconds
from mpi_compress.core.progress import tell
from mpi_compress.core.signals import EXIT_STOPPED, Interrupted, Interrupts
from mpi_compress.exchange import ranks as launch
from mpi_compress.job.tables import FigureTable


def main(arguments: list[str] | None = None) -> int:
    """Entry point: the exit status."""
    if arguments is None and hasattr(signal, "SIGUSR1"):  # a warning for runs: it ends nothing that has none, or is done
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # labels in letters that a terminal does not have
    options = _parser().parse_args(arguments)
    return launch.run_to_the_end(lambda: options.command(options))


class _Parser(argparse.ArgumentParser):
    """One whose errors are one line, told by one rank."""

    def error(self, message: str) -> NoReturn:
        if launch.rank() == 0:
            tell(f"{self.prog}: {message}; `{self.prog} --help` tells more")
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="mpi-compress", description=mc.__doc__)
    parser.add_argument("--version", action="version", version=f"mpi-compress {metadata.version('mpi-compress')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="run a job, under mpiexec or in one process")
    _job_arguments(run)
    run.add_argument("--fresh", action="store_true", help="run again what is done")
    run.add_argument("--quiet", action="store_true", help="no progress, no summary: only what went wrong")
    run.add_argument("--one-process", action="store_true", help="do not look for a launcher's other ranks")
    run.add_argument("--time-limit", metavar="TIME", help='save and end (exit 75) after this time: "50 min", 01:30:00, or seconds')
    run.add_argument("--force", action="store_true", help="try also what needs more memory than there is")
    run.set_defaults(command=_run)

    plan = commands.add_parser("plan", help="list the runs of a job; runs nothing")
    _job_arguments(plan)
    plan.add_argument("--ranks", type=_positive, metavar="R", help="for the memory of each of R ranks (default: workers + 1)")
    plan.add_argument("--force", action="store_true", help="do not refuse what needs more memory than there is")
    plan.set_defaults(command=_plan)

    submit = commands.add_parser("submit", help="SLURM: one array task a run, resumable")
    _job_arguments(submit)
    submit.add_argument("--ntasks", type=int, metavar="N", help="ranks of a run (default: one a worker, and the master)")
    submit.add_argument("--nodes", type=int, metavar="N", help="computers of a run (default: as SLURM finds fit)")
    submit.add_argument(
        "--time", metavar="TIME", help='limit of a task: 01:00:00, "2 h", or minutes; what is not done by then is queued again'
    )
    submit.add_argument("--partition", metavar="NAME", help="the partition to queue in (default: the cluster's)")
    submit.add_argument("--account", metavar="NAME", help="the account to charge (default: yours)")
    submit.add_argument("--max-running", type=int, metavar="N", help="at most N tasks at a time (default: no limit)")
    submit.add_argument("--launcher", choices=["srun", "mpiexec"], help="what starts the ranks (default: srun, where MPI knows it)")
    submit.add_argument("--mpi", metavar="KIND", help="srun's --mpi, one of `srun --mpi=list` (default: pmi2 for MPICH from PyPI)")
    submit.add_argument("--warn", default="2 min", metavar="TIME", help="save a run this long before its limit (default: 2 min)")
    submit.add_argument("--module", action="append", default=[], metavar="NAME", help="an environment module to load first")
    submit.add_argument("--venv", metavar="FOLDER", help="the virtual environment to activate first (default: the one in use)")
    submit.add_argument(
        "--sbatch", action="append", default=[], metavar="OPTION", help="a further option of sbatch, such as --sbatch=--mem=8G"
    )
    submit.add_argument("--dry-run", action="store_true", help="print the script, submit nothing")
    submit.set_defaults(command=_submit)

    plot = commands.add_parser("plot", help="draw a job's figure, or results")
    plot.add_argument("what", nargs="+", metavar="JOB|RESULT.h5", help="a job file, or result files")
    plot.add_argument("--out", default="results", metavar="FOLDER", help="where the job's results are (default: results)")
    plot.add_argument("--x", metavar="COLUMN", help="such as wire_bits_up, paper_bits_up, cost_up, round, epoch, seconds")
    plot.add_argument("--y", metavar="COLUMN", help="such as loss, suboptimality, grad_norm, budget")
    plot.add_argument(
        "--bounds",
        type=lambda s: [name.strip() for name in s.split(",")],
        metavar="COLUMNS",
        help="drawn dashed over the curves: bound, or lower_up,upper_up",
    )
    plot.add_argument("-o", dest="figure", metavar="FIGURE", help="a .png, .pdf or .svg (default: beside the results)")
    _full_argument(plot)
    plot.set_defaults(command=_plot)

    check = commands.add_parser("check", help="a job's claims against its results")
    check.add_argument("job", metavar="JOB", help="a job file")
    check.add_argument("--out", default="results", metavar="FOLDER", help="where the job's results are (default: results)")
    _full_argument(check)
    check.set_defaults(command=_check)

    report = commands.add_parser("report", help="every figure, claim and table in one self-contained page")
    _page_arguments(report)
    report.set_defaults(command=_report)

    reproduce = commands.add_parser("reproduce", help="run many jobs, what is done left out, and write their report")
    _page_arguments(reproduce)
    reproduce.add_argument(
        "--at-once", type=int, default=2, metavar="N", help="at most N jobs at a time, as memory allows (default: 2)"
    )
    reproduce.add_argument("--get", action="store_true", help="fetch the sets that jobs at full size name and that are not here")
    reproduce.set_defaults(command=_reproduce)

    show = commands.add_parser("show", help="what is in a result; of two, where they part")
    show.add_argument("result", metavar="RESULT.h5")
    show.add_argument("other", nargs="?", metavar="OTHER.h5")
    show.add_argument("--csv", action="store_true", help="its rows as CSV: all columns of the trace, and seconds")
    show.set_defaults(command=_show)

    calibrate = commands.add_parser("calibrate", help="under mpiexec: time messages on the real link, fit cost models to them")
    calibrate.add_argument("-o", dest="table", default="link.toml", metavar="LINK.toml", help="where to write (default: link.toml)")
    calibrate.add_argument("--repeats", type=int, default=30, metavar="N", help="round trips for each size (default: 30)")
    calibrate.add_argument("--largest", default="8 MB", metavar="SIZE", help="the largest message (default: 8 MB)")
    calibrate.set_defaults(command=_calibrate)

    data_command.add_to(commands)

    listing = commands.add_parser("list", help="what exists, its parameters, its paper")
    listing.add_argument("kind", nargs="?", help="algorithms, compressors, codecs, losses, costs or datasets")
    listing.set_defaults(command=_list)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} was given; it should be a whole number from 1 on")
    return int(text)


def _job_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="a job file")
    parser.add_argument("--only", metavar="LABEL", help="the runs of this label")
    parser.add_argument("--index", type=int, metavar="I", help="the run of this number in `plan`")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as stop.rounds=100")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where results go (default: results)")
    _full_argument(parser)


def _page_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="*", metavar="JOB|FOLDER", help="job files, or folders of such (default: ./jobs)")
    parser.add_argument("-o", dest="page", default="report.html", metavar="PAGE.html", help="the page (default: report.html)")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where the jobs' results are (default: results)")
    parser.add_argument("--table", metavar="FILE.md", help="also a table of figures, data and status, as Markdown")
    parser.add_argument("--gallery", metavar="FILE.md", help="also all figures as pictures, in a page of Markdown")
    parser.add_argument("--full", action="store_true", help="at full size, where a job has a table [full]")


def _full_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="at full size, as the job's table [full] says")


def _load(options: argparse.Namespace) -> mc.Job:
    overrides = data_command.settings(options.set, "--set ", "stop.rounds=100")
    return mc.load_job(options.job, overrides, options.only, options.index, options.full)


def _run(options: argparse.Namespace) -> int:
    with Interrupts(_time(options.time_limit, "--time-limit")).caught() as interrupts:
        team = launch.Alone() if options.one_process else launch.launched()
        team.on_root(lambda: _load(options).name)  # what is wrong with a job is told once
        job = _load(options)
        runs = mc.run(job, None, options.out, options.fresh, options.quiet, team, options.force, interrupts)
    failed = team.on_root(lambda: sum(r.status not in ("complete", "stopped") for r in runs))
    return 3 if failed else 0


def _time(text: str | None, where: str) -> float | None:
    try:
        return None if text is None else seconds(text)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def _plan(options: argparse.Namespace) -> int:
    from mpi_compress.cli.texts import plan_lines
    from mpi_compress.engine.memory_needs import refuse_what_fits_nowhere

    job = _load(options)
    for line in plan_lines(job, Path(options.out), options.ranks):
        print(line)
    if not options.force:
        refuse_what_fits_nowhere(job, options.ranks)
    return 0


def _submit(options: argparse.Namespace) -> int:
    from mpi_compress.cluster import slurm
    from mpi_compress.engine.runner import result_file

    job = _load(options)
    out = Path(options.out)
    asked = slurm.Options(
        options.ntasks, options.nodes, options.time, options.partition, options.account, options.max_running,
        options.launcher, options.mpi, options.warn, options.module, options.venv, options.sbatch,
    )  # fmt: skip
    queue = slurm.tasks(job.name, out / job.name)
    todo = {}
    for spec in job.runs:
        run_id = spec.run_id
        task = queue.get(run_id)
        if result_file(job, spec, run_id, out).exists():
            continue
        if task and task.state == slurm.SILENT and not options.dry_run:
            raise UserError(f"what is queued already is not known: {task.reason}; try again when SLURM answers")
        if not task or task.state in ("", slurm.SILENT):
            todo[spec.index] = run_id
    if not todo:
        print("nothing to submit: all runs are done or in the queue")
        return 0
    ranks = max(spec.workers.count for spec in job.runs) + 1
    full = ["--full"] if options.full else []
    run = [options.job, *full, "--out", options.out, *(part for setting in options.set for part in ("--set", setting))]
    text = slurm.script(job.name, out / job.name, run, todo, ranks, asked)
    if options.dry_run:
        print(text, end="")
        return 0
    number = slurm.submit(text, job.name, out / job.name, todo)
    runs = f"{len(todo)} run{'s' * (len(todo) != 1)}"
    print(f"submitted {runs} as job {number}; `mpi-compress {shlex.join(['plan', *run])}` tells how they are")
    return 0


def _plot(options: argparse.Namespace) -> int:
    import matplotlib as mpl

    mpl.use("agg")
    from mpi_compress.cli.texts import results_of
    from mpi_compress.figures import plotting as figures
    from mpi_compress.report.outcomes import key_of

    files = [Path(f) for f in options.what]
    if len(files) == 1 and files[0].suffix == ".toml":
        job = mc.load_job(files[0], full=options.full)
        runs = results_of(job, Path(options.out), unfinished=True)
        target = Path(options.out) / job.name / f"{key_of(files[0]).replace('/', '-')}.png"
        figure = job.titled_figure
    elif any(f.suffix == ".toml" for f in files):
        raise UserError(f"plot {shlex.join(options.what)}: takes one job, or results of any number, not both")
    else:
        runs = [mc.read(f) for f in files]
        target = files[0].with_suffix(".png")
        figure = FigureTable()
    asked = {"x": options.x, "y": options.y, "bounds": options.bounds}
    changed: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    for key in ("x", "y"):
        if not changed.get(key, key).strip():
            raise UserError(f"--{key}: a column's name is wanted, such as loss")
    target = Path(options.figure) if options.figure else target
    figures.save(figures.draw(runs, figure.changed(**changed)), target)
    for r in runs:
        print(f"{r.file}  {r.label}: {r.status}")
    print(target)
    return 0


def _check(options: argparse.Namespace) -> int:
    from mpi_compress.cli.texts import results_of
    from mpi_compress.job import claims

    job = mc.load_job(options.job, full=options.full)
    if not job.claims:
        raise UserError(f"{options.job}: makes no claims; [[claim]] states one")
    verdicts = claims.check(job, results_of(job, Path(options.out)))
    for stand_in in job.stand_ins:
        print(f"on {stand_in}:")
    for verdict in verdicts:
        print(verdict)
    return 1 if any(v.holds is False for v in verdicts) else 0


def _calibrate(options: argparse.Namespace) -> int:
    from mpi_compress.cluster.calibrate import calibrate
    from mpi_compress.core.expressions import bits

    team = launch.launched()
    try:
        largest = bits(options.largest)
    except ValueError as error:
        raise UserError(f"--largest: {error}") from None
    if options.repeats < 3 or largest < 8000:
        raise UserError("--repeats must be at least 3 and --largest at least 1 kB")
    found = calibrate(team, Path(options.table), options.repeats, largest)
    for line in found if team.is_root else []:
        print(line)
    return 0


def _report(options: argparse.Namespace) -> int:
    from mpi_compress import report as page

    found = page.outcomes(page.job_files(options.jobs), Path(options.out), options.full)
    page.write(found, Path(options.page))
    if options.table:
        page.write_table(found, Path(options.table))
    if options.gallery:
        page.write_gallery(found, Path(options.gallery))
    for line in page.summary(found):
        print(line)
    print(options.page)
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    from mpi_compress import report as page
    from mpi_compress.cluster import reproduce

    if options.at_once < 1:
        raise UserError(f"--at-once {options.at_once}: at least 1 job is wanted")
    files = page.job_files(options.jobs)
    page.plotting_library()  # what is not installed is told before hours of running, not after
    if options.get:
        reproduce.get_missing(files, tell)
    try:
        status = reproduce.reproduce(files, Path(options.out), options.full, options.at_once, tell)
    except Interrupted as interrupted:
        tell(f"stopped by {interrupted}; what was under way is saved, and the same command goes on")
        return EXIT_STOPPED
    _report(options)
    failed = [file for file, found in status.items() if found not in (0, 2)]
    for file in failed:
        print(f"{file}: failed, or a run of it diverged; `mpi-compress plan {file}` says why")
    return 3 if failed else 0


def _show(options: argparse.Namespace) -> int:
    from mpi_compress.cli.texts import difference, summary

    first = mc.read(options.result)
    if options.csv:
        if options.other:
            raise UserError("show --csv: of one result; two are compared without")
        sys.stdout.writelines(first.to_csv())
        return 0
    for line in difference(first, mc.read(options.other)) if options.other else summary(first):
        print(line)
    return 0


def _list(options: argparse.Namespace) -> int:
    from mpi_compress.cli.texts import listing

    for line in listing(options.kind):
        print(line)
    return 0

