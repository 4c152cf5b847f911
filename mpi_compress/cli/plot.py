"""`mpi-compress plot JOB|RESULT.h5…`"""

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_compress.cli.parsing import add_results
from mpi_compress.core.errors import UserError

if TYPE_CHECKING:
    from mpi_compress.job.tables import FigureTable
    from mpi_compress.results.reader import Run


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", nargs="+", metavar="JOB|RESULT.h5", help="a job file, or result files")
    add_results(parser)
    parser.add_argument("--x", metavar="COLUMN", help="such as wire_bits_up, paper_bits_up, cost_up, round, epoch, seconds")
    parser.add_argument("--y", metavar="COLUMN", help="such as loss, suboptimality, grad_norm, budget")
    bounds = "drawn dashed over the curves: bound, or lower_up,upper_up"
    parser.add_argument("--bounds", type=lambda s: [name.strip() for name in s.split(",")], metavar="COLUMNS", help=bounds)
    parser.add_argument("-o", dest="figure", metavar="FIGURE", help="a .png, .pdf or .svg (default: beside the results)")


def act(options: Namespace) -> int:
    import matplotlib as mpl

    mpl.use("agg")
    from mpi_compress.figures import plotting as figures

    runs, figure, target = _what(options)
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


def _what(options: Namespace) -> "tuple[list[Run], FigureTable, Path]":
    """The results to draw, how, and where to by default."""
    from mpi_compress.figures.outcomes import readable, readable_results_of
    from mpi_compress.job.loading import load_job
    from mpi_compress.job.tables import FigureTable

    files = [Path(f) for f in options.what]
    if len(files) == 1 and files[0].suffix == ".toml":
        job = load_job(files[0], full=options.full)
        runs = readable_results_of(job, Path(options.out))
        return runs, job.titled_figure, Path(options.out) / job.name / f"{job.name.replace('/', '-')}.png"
    if any(f.suffix == ".toml" for f in files):
        raise UserError(f"plot {shlex.join(options.what)}: takes one job, or results of any number, not both")
    return readable(files), FigureTable(), files[0].with_suffix(".png")
