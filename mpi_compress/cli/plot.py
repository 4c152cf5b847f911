"""`mpi-compress plot JOB|RESULT.h5…`"""

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_compress.cli.parsing import load_one
from mpi_compress.cli.results_of import add_axes, add_what, axes_of, found, warn_of_mixtures
from mpi_compress.core.progress import print_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_compress.job.tables import FigureTable
    from mpi_compress.results.reader import Run

_OF_AXES = ("x", "y", "xscale", "yscale", "xlabel", "ylabel", "xlim", "ylim", "rows", "at")


def add_arguments(parser: ArgumentParser) -> None:
    add_what(parser, text="job files, whose runs share a figure with the axes of the first; or result files")
    add_axes(parser)
    bounds = "drawn dashed over the curves: bound, or lower_up,upper_up"
    parser.add_argument("--bounds", type=lambda s: [name.strip() for name in s.split(",")], metavar="COLUMNS", help=bounds)
    for axis in ("x", "y"):
        parser.add_argument(f"--{axis}lim", type=_ends, metavar="LOW:HIGH", help=f"the ends of the {axis} axis, such as 1e-4:1")
    paper = "paper: Times' letters, no title and no tuned values (the text says them), a PDF with its fonts (default: screen)"
    parser.add_argument("--style", choices=("screen", "paper"), default="screen", help=paper)
    parser.add_argument("--width", metavar="WIDTH", help="3.3in, 84mm, 8.4cm or 239pt (default: 3.3in; with panels 6.9in)")
    parser.add_argument("-o", dest="figure", metavar="FIGURE", help="a .png, .pdf or .svg (default: beside the results)")


def act(options: Namespace) -> int:
    import matplotlib as mpl

    mpl.use("agg")
    from mpi_compress.cli.parsing import ask_for_folder
    from mpi_compress.figures import plotting as figures
    from mpi_compress.results.status import status_of_run

    style, width = figures.style_of(options.style), figures.inches(options.width, "--width")
    runs, figure, target = _what(options)
    target = target.with_suffix(style.suffix)
    changed: dict[str, Any] = axes_of(options)
    changed |= {key: given for key in ("bounds", "xlim", "ylim") if (given := getattr(options, key)) is not None}
    if options.figure:
        target = Path(options.figure)
        ask_for_folder(target)
    _report_what_is_not_drawn(runs, figure)
    warn_of_mixtures(runs)
    figures.save(figures.draw(runs, figure.changed(**changed), options.style, width), target)
    for r in runs:
        print(f"{r.file}  {r.label}: {status_of_run(r).state}")
    print(target)
    return 0


def _ends(text: str) -> list[float]:
    """The ends of an axis."""
    try:
        low, high = map(float, text.split(":"))
        if not -math.inf < low < high < math.inf:
            raise ValueError
    except ValueError:
        raise ArgumentTypeError(f"{text} was given; the ends of an axis are wanted, the lower one first, such as 1e-4:1") from None
    return [low, high]


def _what(options: Namespace) -> "tuple[list[Run], FigureTable, Path]":
    """The results to draw, how, and where to by default."""
    from mpi_compress.job.tables import FigureTable

    runs, first = found(options), Path(options.what[0])
    if first.suffix != ".toml":
        return runs, FigureTable(), first.with_suffix(".png")
    jobs = [load_one(file, options) for file in dict.fromkeys(options.what)]
    target = Path(options.out) / jobs[0].name / f"{'+'.join(job.name.replace('/', '-') for job in jobs)}.png"
    if len(jobs) == 1:
        return runs, jobs[0].titled_figure, target
    return runs, FigureTable(**{key: getattr(jobs[0].figure, key) for key in _OF_AXES}), target


def _report_what_is_not_drawn(runs: "Sequence[Run]", figure: "FigureTable") -> None:
    """Print the runs that a figure of what it took to reach a level leaves out."""
    from mpi_compress.results.targets import Target

    for column, level in (figure.at or {}).items():
        target = Target(column, level)
        if missing := [run.label for run in runs if run.has(column) and target.row_of(run) is None]:
            print_line(f"mpi-compress: not drawn, for they do not reach {target}: {', '.join(missing)}")
