"""The seconds and bits of a round with n workers, from the costs of its parts and of a link.

python -m benchmarks.scale JOB 10:10000 [--link link.toml] [--ranks R] [--shard ROWS] [--only LABEL] [-o scale.png|.csv]
"""

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from benchmarks._model import MOST_PANELS, PARTS, WAYS, Modelled, RoundTimes, Scale, Way, digits, time_text, way_of, workers_of
from benchmarks._parts import PartTimer
from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.progress import count_text, print_line
from mpi_compress.core.tables import comma_separated
from mpi_compress.job.loading import Job, load_job

_SUFFIXES = (".csv", ".png", ".pdf", ".svg")


def table(found: Sequence[RoundTimes]) -> list[str]:
    """The rounds as a table of 80 columns."""
    heads = [f"{name:>9s}" for name in (*PARTS, "a round")]
    lines = [f"workers{''.join(heads)}   largest  bits up     down"]
    for r in found:
        times = "".join(f"{time_text(seconds):>9s}" for seconds in (*(getattr(r, part) for part in PARTS), r.seconds))
        lines.append(f"{r.n:7d}{times}{r.largest:>10s}{_size(r.bits_up):>9s}{_size(r.bits_down):>9s}")
    return lines


def _size(bits: float) -> str:
    power = next((i for i in range(5) if bits < 999.5 * 1000**i), 5)
    return f"{digits(bits / 1000**power)} {' kMGTP'[power]}".rstrip()


def csv_text(found: Modelled) -> str:
    """A line for each run, way and number of workers: seconds, and bits of a round."""
    numbers = (*PARTS, "seconds", "bits_up", "bits_down")
    rows = [
        [label, way, str(r.n), *(f"{getattr(r, name):.6g}" for name in numbers), r.largest]
        for label, ways in found.items()
        for way, rounds in ways.items()
        for r in rounds
    ]
    return comma_separated(["run", "way", "workers", *numbers, "largest"], rows)


def draw(found: Modelled, way: Way, file: Path) -> None:
    """Draw a panel for each of at most `MOST_PANELS` runs: the parts of a round by this way, and rounds by all ways."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    from mpi_compress.figures import plotting
    from mpi_compress.figures.style import COLOURS, COLUMN, HEIGHT, style_of

    columns = min(3, len(found))
    rows = math.ceil(len(found) / columns)
    with mpl.rc_context(style_of("screen").settings):
        size = (COLUMN * columns, HEIGHT * rows + 0.5)
        figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, sharex=True, sharey=True)
        for ax in grid.flat[len(found) :]:
            ax.set_axis_off()
        for ax, (label, ways) in zip(grid.flat, found.items(), strict=False):
            for part, colour in zip(PARTS, COLOURS, strict=False):
                drawn = [(r.n, s) for r in ways[way] if (s := getattr(r, part)) > 0]
                ax.plot([n for n, _ in drawn], [s for _, s in drawn], "o-", color=colour, label=f"{part}, {way}")
            for each, dash in zip(WAYS, ("-", "--"), strict=True):
                ax.plot([r.n for r in ways[each]], [r.seconds for r in ways[each]], dash, color="black", label=f"a round, {each}")
            ax.set(xscale="log", yscale="log", title=label)
        plt.setp(grid[-1], xlabel="workers")
        plt.setp(grid[:, 0], ylabel="seconds")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(4, 2 * columns))
        plotting.save(figure, file)
        plt.close(figure)


def print_model(options: Namespace, job: Job) -> None:
    """A table for each method of a job, and what -o asks for."""
    firsts = [*{spec.label: spec for spec in reversed(job.runs)}.values()][::-1]
    ns, target = workers_of(options.workers), _target(options, len(firsts))
    timer, found = PartTimer(), {}
    for spec in firsts:
        method = Scale.of(spec, timer, options.link, options.ranks, options.shard)
        able = [n for n in ns if options.shard or n <= method.costs.n_samples]
        if not able:
            few = f"{method.costs.n_samples} samples are too few"
            raise UserError(f"{options.workers}: {few}; --shard ROWS gives each worker as many")
        rounds = found[spec.label] = {way: [method.round(way, n) for n in able] for way in WAYS}
        way = way_of(spec)
        last = ", ".join(f"{each} {time_text(of[-1].seconds)}" for each, of in rounds.items())
        said = [*method.statements(way, able), f"a round of {count_text(able[-1], 'worker')}: {last}"]
        print(spec.label, f"  {method.assumed(way)}", *table(rounds[way]), *(f"  {line}" for line in said), "", sep="\n")
        if len(able) < len(ns):
            enough = f"{method.costs.n_samples} samples are enough for {able[-1]} of these workers"
            print_line(f"{spec.label}: {enough}; --shard ROWS for more")
    if target is not None:
        if target.suffix == ".csv":
            with writing(target):
                target.write_text(csv_text(found), encoding="utf-8")
        else:
            draw(found, way_of(job.runs[0]), target)
        print(target)


def _target(options: Namespace, methods: int) -> Path | None:
    """The file of -o; UserError if it is none for a model of so many methods, before they are timed."""
    if options.figure is None:
        return None
    target = Path(options.figure)
    if target.suffix not in _SUFFIXES:
        raise UserError(f"-o {target}: a model is written as one of {', '.join(_SUFFIXES)}")
    if target.suffix != ".csv" and methods > MOST_PANELS:
        raise UserError(f"-o {target}: {methods} methods are too many for one figure; --only takes one, and a .csv all")
    return target


def main(arguments: Sequence[str] = ("jobs/demo.toml", "4:1000")) -> None:
    parser = ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("job", help="a job file")
    parser.add_argument("workers", help="numbers of workers, such as 10:10000")
    parser.add_argument("--link", help="a table of `mpi-compress calibrate` (default: that of [cost], or messages take no time)")
    parser.add_argument("--ranks", type=int, help="so many ranks (default: one for each worker, and one for a dedicated master)")
    parser.add_argument("--shard", type=int, help="samples of each worker (default: N/n)")
    parser.add_argument("--only", action="append", help="the runs of this label")
    parser.add_argument("-o", dest="figure", help="a figure (.png, .pdf, .svg) or a .csv")
    options = parser.parse_args(arguments)
    print_model(options, load_job(options.job, only=options.only))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(str(error))
