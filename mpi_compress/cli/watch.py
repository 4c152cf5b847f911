"""`mpi-compress watch JOB|RESULT|FOLDER…`"""

import math
import os
import shlex
import shutil
import signal
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from mpi_compress.cli.parsing import load_one
from mpi_compress.cli.results_of import ask_for_results_alone, axes_of
from mpi_compress.cluster.submission import Statuses
from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import time_of
from mpi_compress.core.progress import bits_text, print_line
from mpi_compress.core.signals import Interrupts
from mpi_compress.core.tables import shown
from mpi_compress.core.terminal import wrapped
from mpi_compress.evidence.lines import name_in_paper, with_seeds
from mpi_compress.job.tables import FigureTable
from mpi_compress.planning.estimates import trial_files
from mpi_compress.results.files import ASIDE, part_of, result_of, results_below
from mpi_compress.results.reader import Run, read
from mpi_compress.results.status import Status, status_of

HEADS = ("label", "status", "round", "loss", "up", "bits a second")
_HOME, _REST = "\x1b[H", "\x1b[J"  # a terminal goes to its first letter, and clears what follows
_TRIAL = "trial "
_NAP = 0.1  # seconds


@dataclass(frozen=True)
class Seen:
    """What a run has come to."""

    label: str
    status: Status
    run: Run | None  # None: nothing of it can be read yet

    @property
    def cells(self) -> list[str]:
        """Its row under `HEADS`."""
        last = self.status.last
        if self.run is None or last is None:
            return [self.label, self.status.said or str(self.status.state), *[""] * 4]
        rounds = self.run.written.get("stop", {}).get("rounds")
        of = f" of {rounds:,}" if isinstance(rounds, int) else ""
        up, speed = ("" if math.isnan(bits) else bits_text(bits) for bits in (last.up, bits_a_second(self.run)))
        return [self.label, str(self.status.state), f"{last.round:,}{of}", f"{last.loss:.6g}", up, speed]


def bits_a_second(run: Run) -> float:
    """Uplink bits in a second of the algorithm, over the last tenth of the rows; NaN if that is not known."""
    bits = run.trace.get("wire_bits_up", np.empty(0))
    if bits.size < 2:
        return math.nan
    sent, time = (float(each[-1] - each[-1 - max(1, bits.size // 10)]) for each in (bits, run.timing["seconds"]))
    return sent / time if time > 0 else math.nan


class Live:
    """Runs that may be under way at this moment. `find` gives the files of their results by now, with their labels, "" where the
    file says it; `part_of` them may exist instead; `judge` gives the status of a file's run."""

    def __init__(self, find: Callable[[], Mapping[Path, str]], judge: Callable[[Path, Callable[[Path], Run]], Status] = status_of):
        self._find, self._judge = find, judge
        self._read: dict[Path, tuple[tuple[float, int], Run]] = {}

    def look(self) -> list[Seen]:
        """What each run has come to by now; of runs with one label also their seed."""
        seen = [self._seen(result, label) for result, label in self._find().items()]
        names = with_seeds([(each.label, each.run.seed if each.run else "?") for each in seen])
        return [replace(each, label=name) for each, name in zip(seen, names, strict=True)]

    def _seen(self, result: Path, label: str) -> Seen:
        status = self._judge(result, self._run)
        _, run = self._read.get(result if result.exists() else part_of(result), (None, None))
        return Seen(label or (result.stem if run is None else name_in_paper(run)), status, run)

    def _run(self, file: Path) -> Run:
        """A result as it is now, or as it was at the last look where its writer is in the middle of a flush."""
        try:
            written = file.stat()
            mark = (written.st_mtime, written.st_size)
            if self._read.get(file, ())[:1] != (mark,):
                self._read[file] = (mark, read(file))
        except (OSError, UserError) as error:
            if file not in self._read:
                raise UserError(str(error)) from None
        return self._read[file][1]


def results_in(names: Sequence[str]) -> Mapping[Path, str]:
    """The results that are, or are begun, in files and folders, for `Live`."""
    each = (results_below(place) if place.is_dir() else [result_of(place) or place] for place in map(Path, names))
    return {file: "" for file in chain(*each) if file.suffix != ASIDE and (file.exists() or part_of(file).exists())}


def act(options: Namespace) -> int:
    from mpi_compress.figures.plotting import redraw, refuse_format

    live, figure = _what(options)
    pause = time_of(options.every, "--every") if options.every else 2.0 if sys.stdout.isatty() else 60.0
    if target := options.figure:
        refuse_format(target)
    before: list[list[str]] | None = None
    problem = ""
    with Interrupts().caught((signal.SIGINT, signal.SIGTERM)) as interrupts, interrupts.in_rounds():
        while not interrupts.wish():
            seen = live.look()
            if (cells := [each.cells for each in seen]) != before:
                runs = [each.run for each in seen if each.run and each.status.last and not each.label.startswith(_TRIAL)]
                problem = redraw(runs, figure, target) if target else ""
                _print(seen, cells, problem, first=before is None)
                before = cells
            if options.once or (seen and all(each.status.state.has_ended for each in seen)):
                break
            end = time.monotonic() + pause
            while time.monotonic() < end and not interrupts.wish():
                time.sleep(_NAP)
        else:
            print_line("mpi-compress: watch ends; the runs go on")
            return 0
    if problem:
        raise UserError(problem)
    return 0


def _what(options: Namespace) -> tuple[Live, FigureTable]:
    """The runs, with the trials under way; and how to draw them."""
    asked = axes_of(options)
    if any(name.endswith(".toml") for name in options.what):
        if len(options.what) > 1:
            raise UserError(f"watch {shlex.join(options.what)}: takes one job, or results of any number, not both")
        job, out = load_one(options.what[0], options), options.out
        runs = [spec for spec in job.runs if not spec.missing]
        names = with_seeds([(spec.label, spec.seed) for spec in runs])
        statuses = Statuses(job, out)
        files = {statuses.files[spec.index]: name for spec, name in zip(runs, names, strict=True)}
        trials = trial_files(job, out)
        return Live(lambda: {**_trials_now(trials), **files}, statuses.of), job.titled_figure.changed(**asked)
    ask_for_results_alone(options)
    for name in options.what:
        if not os.path.exists(name) and not os.path.exists(f"{name}.part"):
            raise UserError(f"{name}: there is no such job, result or folder")
    return Live(lambda: results_in(options.what)), FigureTable().changed(**asked)


def _trials_now(first: Sequence[Path]) -> Mapping[Path, str]:
    """The trials of [tune] that are under way, with their number among those of the first stage, or of all so far."""
    folders = dict.fromkeys(file.parent for file in first)
    played = [part.with_suffix("") for folder in folders for part in folder.glob("*.h5.part")]
    done = sum(file.exists() for file in first)
    of = f"{_TRIAL}{done + 1} of {len(first)}" if done < len(first) else f"{_TRIAL}of a later stage"
    return {file: f"{of}: {file.stem.rpartition('-')[0]}" for file in played}


def _print(seen: Sequence[Seen], cells: list[list[str]], problem: str, first: bool) -> None:
    """A table of the runs; on a terminal in the place of the one before."""
    counts = Counter(each.status.state for each in seen)
    lines = shown(sys.stdout, HEADS, cells, ("bits a second", "up", "round")) if cells else []
    lines.append(f"{time.strftime('%H:%M:%S')}  " + (", ".join(f"{n} {state}" for state, n in counts.items()) or "no results yet"))
    lines += [f"figure: {problem}"] if problem else []
    if sys.stdout.isatty():
        width, height = shutil.get_terminal_size()
        lines = wrapped("\n".join(lines), width).splitlines()[-(height - 2) :]
        clear = f"\x1b[2J{_HOME}" if first else _HOME
        print(clear + "\x1b[K\n".join([*lines, "Ctrl-C ends this, and no run"]) + _REST, flush=True)
    else:
        print(*lines, sep="\n", flush=True)
