"""`mpi-compress plot JOB|RESULT|FOLDER…`"""

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpi_compress.cli.parsing import set_in_name
from mpi_compress.cli.results_of import absent, axes_of, found, jobs_of, warn_of_mixtures
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.tables import shown
from mpi_compress.core.terminal import say
from mpi_compress.evidence.lines import ended
from mpi_compress.evidence.outcomes import job_files
from mpi_compress.evidence.problems import differing
from mpi_compress.evidence.profile import profile
from mpi_compress.figures import plotting as figures
from mpi_compress.figures.of_run import draw_profiles
from mpi_compress.figures.panels import panels
from mpi_compress.job.tables import FigureTable, PanelTable
from mpi_compress.problem.datasets.said import differs, in_place, titles
from mpi_compress.results.reader import Run, rising
from mpi_compress.results.summary import all_doubts
from mpi_compress.results.targets import Target, grows, typed


def act(options: Namespace) -> int:
    if options.profile:
        return _profile(options)
    targets = [*map(typed, options.to)]
    paid = options.by
    style, width = figures.style_of(options.style), figures.inches(options.width, "--width")
    runs, figure, target = _what(options)
    if (targets and not options.x) or len(paid) > bool(targets or figure.at):
        would_do = "--to goes with --x KEY, and with it one --by; several of them with --profile"
        raise UserError(f"{would_do}; `table --to` compares methods at targets")
    changed: dict[str, Any] = axes_of(options)
    keys = "bounds", "xscale", "yscale", "xlim", "ylim"
    changed |= {key: given for key in keys if (given := getattr(options, key)) is not None}
    if targets:
        y = paid[0] if paid else figure.y if figure.at else figure.by
        figure, changed = replace(figure, panel=[]), {"y": y, "at": dict(targets[:1])} | changed
    elif paid:
        changed = {"y": paid[0]} | changed
    elif options.x and grows(options.x):  # curves, not what the job's target took
        changed = {"at": None} | ({"y": next(iter(figure.at))} if figure.at else {}) | changed
    if options.x and any(run.has(options.x) and len({*run.column(options.x)}) > 1 for run in runs):
        figure = replace(figure, rows="all")  # of curves
    figure = figure.changed(**changed)
    if len(targets) > 1:
        figure = replace(figure, panel=[PanelTable(at={column: level}) for column, level in targets], columns=2)
    drawn = figures.draw(runs, figure, options.style, width, absent(jobs_of(options), runs))
    _report_what_is_not_drawn(runs, figure)
    warn_of_mixtures(runs)
    for line in [*differing(runs), *all_doubts(runs)]:
        print_line(f"mpi-compress: {line}")
    unsaid = [run for run in runs if differs(run) or not in_place(run)]  # a line of the figure says what --set changes
    for line in titles(unsaid) if not (style.titled and figure.title) else []:
        print_line(f"mpi-compress: the figure, which has no title, does not say that it is {line}")
    for file in options.figure or [target.with_suffix(style.suffix)]:
        figures.save(drawn, file)
        say(str(file))
    return 0


def _profile(options: Namespace) -> int:
    """Print and draw the share of targets that each method reaches within a factor of what the best one took."""
    asked = [typed(text) for text in options.to or (f"suboptimality={level}" for level in ("1e-3", "1e-6", "1e-9", "1e-12"))]
    options.what = [str(file) for file in job_files(options.what)]
    runs = found(options, jobs_of(options), [column for column, _ in asked])
    targets = [Target.of(column, level, rising(runs)) for column, level in asked]
    profiles = [profile(runs, targets, by) for by in options.by or ("wire_bits", "wire_bits_up")]
    for each in profiles:
        say(f"{each.caption}:", *shown(sys.stdout, each.heads, each.cells))
    for file in options.figure or [options.out / "profile.png"]:
        figures.save(draw_profiles(profiles, options.style), file)
        say(str(file))
    return 0


def _what(options: Namespace) -> tuple[list[Run], FigureTable, Path]:
    """The results to draw, how, and where to by default."""
    chosen, asked = jobs_of(options), set(axes_of(options).values())
    jobs = [*chosen.values()]
    runs = found(options, chosen, asked.union(*(spec.asked for job in jobs for spec in job.runs)))
    if not jobs:
        return runs, FigureTable(), Path(options.what[0]).with_suffix(".png")
    name = "+".join(job.name.replace("/", "-") + job.on for job in jobs)
    target = options.out / jobs[0].name / f"{name}{set_in_name(options)}.png"
    if len(jobs) == 1:
        return runs, jobs[0].titled_figure, target
    figure = replace(jobs[0].figure, bounds=[], title=None, panel=[])
    for axis, columns in {"x": [figure.x], "y": figure.ys}.items() if not (figure.at or options.to) else ():
        lacking = [str(run.file) for run in runs if not all(map(run.has, columns))]
        if lacking and getattr(options, axis) is None:
            own = f"{getattr(figure, axis)} is the {axis} axis of {next(iter(chosen))}, and {lacking[0]} has no such column"
            raise UserError(f"{own}; --{axis} COLUMN names another, or give the files in another order")
    return runs, figure, target


def _report_what_is_not_drawn(runs: Sequence[Run], figure: FigureTable) -> None:
    done = ended(runs)
    each = [(own.at, chosen) for _, own, chosen in panels(done, figure)] or [(figure.at, done)]
    for (column, level), shown_there in [(target, chosen) for at, chosen in each for target in (at or {}).items()]:
        target = Target.of(column, level, rising(runs))
        missing: dict[str, list[str]] = {}
        for run in shown_there:
            if run.has(column) and target.row_of(run) is None:
                missing.setdefault(run.label, []).append(str(run.seed))
        if missing:
            names = [f"{label} (seed {', '.join(seeds)})" for label, seeds in missing.items()]
            print_line(f"mpi-compress: these do not reach {target}: {', '.join(names)}")
    if stopped := dict.fromkeys(run.label for run in runs if run not in done):
        print_line(f"mpi-compress: drawn without the seeds that did not end: {', '.join(stopped)}")
