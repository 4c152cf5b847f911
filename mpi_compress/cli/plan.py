"""`mpi-compress plan JOB…`"""

import json
import sys
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which

from mpi_compress.cli.parsing import load_all
from mpi_compress.cluster.submission import Statuses
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.tables import shown
from mpi_compress.core.terminal import say
from mpi_compress.engine.earlier_runs import ByRunId, by_run_id, equal_run, shorter_run, siblings, taken
from mpi_compress.evidence.lines import with_seeds
from mpi_compress.evidence.notes import said_of as lines_of_labels
from mpi_compress.evidence.outcomes import changed_inputs
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.trials import MOST_HALVINGS, label_of
from mpi_compress.planning.estimates import suggestion, trial_files
from mpi_compress.preparing import memory
from mpi_compress.preparing.runs import condition_not_met
from mpi_compress.preparing.shapes import said_of, shape_of
from mpi_compress.results.files import TRIALS, checkpoint_of
from mpi_compress.results.locks import is_being_written
from mpi_compress.results.reader import LABEL, attributes, read_once
from mpi_compress.results.status import State, Status, status_of
from mpi_compress.results.units import cost_text
from mpi_compress.saving.checkpoint import read_header

_WHYS = {State.DIVERGED: "diverged ({})", State.REFUSED: "would be refused: {}"}  # said once below the table, with the labels
_HEADS = ["index", "label", "run id", "memory", "state"]


def act(options: Namespace) -> int:
    jobs, refused = load_all(options.jobs, options, options.index), []
    for file, job in jobs.items():
        if len(jobs) > 1:
            say(f"{file}:")
        refused.append(_tell(job, options))
        say(*changed_inputs(job, options.out))
    for statuses, those in refused:
        statuses.refuse(those)
    for spec in (spec for job in jobs.values() for spec in job.runs if not (options.force or spec.missing)):
        memory.refuse_what_fits_nowhere(spec)
    return 0


def _tell(job: Job, options: Namespace) -> tuple[Statuses, list[RunSpec]]:
    """Print the states of a job's runs; those that would be refused, with what refuses them."""
    rows, whys, left, refused = list[list[str]](), list[str](), list[RunSpec](), list[RunSpec]()
    labels = with_seeds([(spec.label, spec.seed) for spec in job.runs])
    statuses = Statuses(job, options.out)
    states, others, foreseen = Counter[State](), by_run_id(options.out), defaultdict[str, set[Path]](set)
    for spec, label, status in zip(job.runs, labels, statuses.all(), strict=True):
        run_id, room = "–", "–"
        if not spec.missing:
            run_id, room = spec.run_id, memory.text(spec)
            status = _foreseen(spec, status, statuses.files[spec.index], foreseen[spec.label], others)
            left += [] if status.state.has_ended or status.state is State.REFUSED else [spec]
        elif any(spec.missing in row[4] for row in rows):  # is said already
            status = replace(status, reason="")
        states[status.state] += 1
        refused += [spec] if status.state is State.REFUSED or (spec.missing and spec.data.path is not None) else []
        whys.append(_WHYS[status.state].format(status.reason) if status.state in _WHYS else "")
        is_said = whys[-1] or status.state is State.COMPLETE  # below, or by `show`
        rows.append([str(spec.index), label, run_id, room, str(replace(status, reason="") if is_said else status)])
    said = [*said_of(job.runs), *dict.fromkeys(f"cost: {cost_text(spec.written['cost'])}" for spec in job.runs if spec.cost.down)]
    said += [f"data: {title}: what its labels, its values or L decide is not checked yet" for title in statuses.unchecked]
    notes = lines_of_labels(whys, [spec.label for spec in job.runs])
    notes |= lines_of_labels((condition_not_met(spec, None) for spec in job.runs), [spec.label for spec in job.runs])
    say(*said, *shown(sys.stdout, _HEADS, rows, ("memory", "run id"), "rlcrl"), *notes.values())
    if any(row[3] == memory.UNKNOWN_SIZE for row in rows):
        say(f"{memory.UNKNOWN_SIZE}: not known before the data are parsed, which `mpi-compress run` does first")
    for spec in {str(spec.data): spec for spec in job.runs if not spec.missing}.values():
        if line := memory.from_disk(spec, shape_of(spec)):
            say(line)
    rest = replace(job, runs=left)
    for line in _trials_first(rest, options.out), suggestion(job, left, options.out, which("sbatch") is not None):
        if line:
            say(line)
    _warn_of_what_is_missing(left)
    if len(rows) > 1:
        left_over = [f", {states[state]} {state.planned}" for state in State if state is not State.COMPLETE and states[state]]
        copies = sum(", a copy of " in row[4] for row in rows)  # results that are copies, or will be
        alike = f"; {copies} differ in their seed alone, and nothing is drawn: copies" * bool(copies)
        say(f"{states[State.COMPLETE]} of {len(rows)} runs done{''.join(left_over)}{alike}{_beside(job, options.out)}")
    return statuses, refused


def _trials_first(job: Job, out: Path) -> str:
    """How many trials of [tune] come before a job's runs, and how many are done of each stage; "" for none."""
    first, *later = [[file.exists() for file in trial_files(job, out, stage)] for stage in range(MOST_HALVINGS + 1)]
    beyond = [f", {n} of stage {stage}" for stage, files in enumerate(later, 2) if (n := sum(files))]
    done = f"{len(first)} trials of [tune] in the first stage, {sum(first)} of them done{''.join(beyond)}"
    return f"before them: {done}" if first else ""


def _beside(job: Job, out: Path) -> str:
    """That a job's results lie beside it, where it has none below the current folder; "" for nothing."""
    beside = job.runs[0].folder / out
    is_beside = (beside / job.name).exists() and not (out / job.name).exists()
    return f"; results are beside the job, and not here: --out {beside}" * is_beside


def _foreseen(spec: RunSpec, status: Status, file: Path, beside: set[Path], others: ByRunId) -> Status:
    """The status of a run as `run` finds it: with the result that it takes, which then is `beside` those of its label."""
    if file.exists() or not (other := taken(spec, file, [*siblings(file), *sorted(beside)], others)):
        return _by_what_is_there(spec, status, file) if status.state is State.TO_DO else status
    beside.add(other)
    return _like(spec, status_of(other, read_once), other)


def _like(spec: RunSpec, status: Status, other: Path, more: str = "") -> Status:
    """The status of a run whose result is that of an equal one, or will be."""
    run = read_once(other)
    if run.seed == spec.seed:
        return replace(status, said=f"{status.state.planned}, as {other}{more}")
    return replace(status, copy_of=f"{status.copy_of or run.attrs['run_id']}{more}")


def _by_what_is_there(spec: RunSpec, status: Status, file: Path) -> Status:
    """The status of a run that is to do: its result will be that of an equal one, or go on from where one with the same tuned value
    ended."""
    others = siblings(file)
    of_others = [json.loads(attrs["tuned"]) for attrs in map(attributes, others) if "tuned" in attrs] if spec.tune else [None]
    for tuned in of_others:
        if_alike = ", if tuning finds the same value" * bool(tuned)
        if equal := equal_run(spec, tuned, others):
            return _like(spec, status, equal, if_alike)
        shorter = shorter_run(spec, file, spec.id_of_all("stop", tuned))
        if shorter and (header := read_header(checkpoint_of(shorter))):
            return replace(status, reason=f"goes on from round {header.k:,}{if_alike}")
    return replace(status, said="tuning") if _is_tuning(spec, file.parent / TRIALS) else status


def _is_tuning(spec: RunSpec, folder: Path) -> bool:
    """True if a trial of a run is being made."""
    labels = {label_of(spec, value) for value in spec.tune.grid} if spec.tune else set()
    return any(attributes(part).get(LABEL) in labels for part in folder.glob("*.part") if is_being_written(part))


def _warn_of_what_is_missing(runs: Sequence[RunSpec]) -> None:
    missing: dict[str, str] = {}
    for spec in runs:
        try:
            _ = spec.loss.provenance
        except UserError as error:
            missing.setdefault(str(error), spec.where)
    for text, where in missing.items():
        print_line(f"mpi-compress: {where}{text}")
