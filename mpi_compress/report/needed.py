"""What each method of a job needed to reach a few targets, and which one needed the least."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mpi_compress.evidence.comparison import BY, ComparedMethod, Comparison, amount, best_of_each, compare
from mpi_compress.evidence.levels import round_targets
from mpi_compress.job.loading import Job
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import column_of, known
from mpi_compress.results.reader import Run, rising
from mpi_compress.results.targets import Target, grows, rises, share_text
from mpi_compress.results.tuning import without_value
from mpi_compress.results.units import COSTS, charged, counted_by

_NAMED = 3  # methods that miss a target
_TARGETS = ("suboptimality", "loss", "grad_norm", "distance", "test_loss", "perplexity", "test_accuracy", "hit_rate")


def needed(runs: Sequence[Run], figure: FigureTable) -> Comparison | None:
    """The table of a job's runs, the soonest first, at the target that the job names and three round ones; None where no run
    comes nearer to any."""
    asked = target_of(runs, figure)
    first = [name for name in (*asked, figure.ys[0]) if name in _TARGETS or column_of(name).falls]
    for name in dict.fromkeys([*first, *_TARGETS]):
        up = rises(name, rising(runs))
        each = [values for run in runs if run.has(name) and np.isfinite(values := run.column(name)).any()]
        if each and (levels := round_targets(each, up, column_of(name).falls, [asked[name]] if name in asked else [])):
            return compare(runs, [Target(name, level, up) for level in levels], measure(runs, figure))
    return None


def measure(runs: Sequence[Run], figure: FigureTable) -> str:
    """The column in which a job's methods pay: that of its target, or of its figure."""
    return figure.by if figure.to else figure.x if grows(figure.x) and any(run.has(figure.x) for run in runs) else BY[0]


def target_of(runs: Sequence[Run], figure: FigureTable) -> Mapping[str, float]:
    """The target that a job names, of its figure, of [tune] or of [stop]; {} where it names none."""
    tuned = (run.written.get("tune", {}).get("to") for run in runs)
    stops = (run.written.get("stop", {}) for run in runs)
    measured = ({name: level for name, level in stop.items() if known(name) and not grows(name)} for stop in stops)
    return figure.to or figure.at or next((to for to in (*tuned, *measured) if to and isinstance(to, Mapping)), {})


def proposed(runs: Sequence[Run], job: Job | None) -> list[str]:
    """What to ask `table` of these runs: the targets of their job, in its figure, [tune] or [stop], else two that runs reach, and
    in which costs; [] where no run comes nearer to any."""
    figure, stops = FigureTable(), list[Target]()
    if job:
        figure, stops = job.figure, [target for spec in job.runs for target in spec.stop.levels]
    found = needed([run for run in runs if run.rows], figure)
    own = [Target(*each) for each in target_of(runs, figure).items()] or stops or (found.targets[:2] if found else [])
    words = [word for target in dict.fromkeys(own) for word in ("--to", f"{target.column}={target.level:g}")]
    return words + (["--by", by] if words and (by := measure(runs, figure)) in COSTS else [])


def winner(found: Comparison, own: Mapping[str, float] | None = None) -> str:
    """Who needed the least to the job's `own` target, or where no method reaches it, which is said, to the hardest one that any
    does, and who comes next: a sentence; and another one for each further cost model, or links, since what two of them count is not
    compared. A method that was tuned to several targets counts once."""
    reached = [i for i in range(len(found.targets)) if any(method.cells[i].median < math.inf for method in found.methods)]
    if not reached:
        return ""
    named = [i for i, target in enumerate(found.targets) if (target.column, target.level) in (own or {}).items()]
    missed = [f"No method reaches the job's own target, {found.targets[i]}." for i in named if i not in reached]
    i, by_model = next((i for i in named if i in reached), reached[-1]), dict[str, list[ComparedMethod]]()
    for method in best_of_each(found, i):
        by_model.setdefault(counted_by(found.by, method.runs[0]), []).append(method)
    runs = [method.runs[0] for method in found.methods]
    least = " ".join(filter(None, ["Least", column_of(found.by).in_sentence, charged(found.by, runs), "to", str(found.targets[i])]))
    each = [f"{least}{f', {model}' * (len(by_model) > 1)}{_ranked(those, i, found.by)}." for model, those in by_model.items()]
    return " ".join([*missed, *each])


def headline(runs: Sequence[Run], figure: FigureTable) -> str:
    """Who needed the least of a job's runs, as `winner` says it; "" where no run comes nearer to a target."""
    found = needed(runs, figure)
    return winner(found, target_of(runs, figure)) if found else ""


def _ranked(methods: Sequence[ComparedMethod], i: int, by: str) -> str:
    """How many methods reach a target, and which ones do not, if they are few; who needed the least, and who comes next."""
    each = [(m.label, m.cells[i]) for m in methods]
    cells = [(label + share_text(cell.took) + ", which leaves it again" * cell.is_left, cell) for label, cell in each]
    took = sorted((cell.median, name) for name, cell in cells if cell.median < math.inf)
    if not took:
        return ": no method reaches it"
    (least, best), *later = [(amount(value, by, methods[0].cells[i].unit), label) for value, label in took]
    then = "; ".join(f"{label}, {value}" for value, label in later[:2])
    cut = f", {n} cut off before" if (n := sum(cell.is_cut for _, cell in cells)) else ""
    others = [f"'{m.label}'" for m in methods if m.cells[i].median == math.inf]
    which = f"; not {', '.join(others)}" if len(others) <= _NAMED else ""
    share = f" ({len(took)} of {len(methods)} methods reach it{cut}{which})" if others else ""
    return f"{share} – {best}: {least}{f'; then {then}' * bool(then)}{without_value([m.runs[0].tuned for m in methods])}"
