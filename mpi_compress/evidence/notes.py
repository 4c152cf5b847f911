"""What is to be said below a table of methods, which are groups of seeds with a label each."""

import re
from collections.abc import Iterable, Sequence

from mpi_compress.evidence.lines import equal_seeds
from mpi_compress.problem.datasets.said import elsewhere, line_of
from mpi_compress.results.columns import NOT_ATTAINED, column_of
from mpi_compress.results.reader import ANY_SEED, Run
from mpi_compress.results.settings import settings_of
from mpi_compress.results.summary import WARNINGS
from mpi_compress.results.targets import Target
from mpi_compress.results.tuning import lost_by_seeds, put_by
from mpi_compress.results.units import arrivals

LABELS = 4  # that a note names on a screen
_DEFAULT = "each method's default step"


def notes_of(
    groups: Sequence[Sequence[Run]], labels: Sequence[str], by: str, targets: Sequence[Target], most: int | None
) -> list[str]:
    """On which data; where steps come from, if they differ or none is tuned; whose seeds change nothing, whose loss rose, and who
    was tuned for another question. Each names so many labels; None: all."""
    firsts = [group[0] for group in groups]
    tuned = [run.tuned or {} for run in firsts]
    steps = said_of(map(_step_of, firsts, labels), labels, most)
    rules = said_of(map(arrivals, firsts), labels, most) if by == "model_seconds" and len({*map(arrivals, firsts)}) > 1 else {}
    others = (
        map(_infimum_of, firsts), *(map(said, groups) for said in (equal_seeds, *WARNINGS)),
        map(_scored_where_tuned, groups), map(lost_by_seeds, tuned),
        (tuned_for(run, by, targets) for run in firsts),
    )  # fmt: skip
    return [
        *on_data(firsts, labels, most),
        *rules.values(),  # the caption has one that all share
        *(steps.values() if len(steps) > 1 or (len(labels) > 1 and _DEFAULT in steps) else ()),
        *(line for texts in others for line in said_of(texts, labels, most).values()),
    ]


def _infimum_of(run: Run) -> str:
    """That no point attains f*, or that the job gives it; or ""."""
    source = str(run.attrs.get("f_star_source"))
    where = f"{source} by the job" if source == "given" else source if NOT_ATTAINED in source else ""
    return where and f"f* = {run.attrs['f_star']:.6g} is {where}"


def _scored_where_tuned(runs: Sequence[Run]) -> str:
    """That a method was tuned by one seed of those by which it stands here, where that draws anything; or ""."""
    by, here = (runs[0].tuned or {}).get("seeds", []), [run.seed for run in runs]
    if len(by) != 1 or by[0] not in here or ANY_SEED in runs[0].attrs:
        return ""
    return f"tuned by seed {by[0]}" + (", the only one here" if len(here) == 1 else f" alone, one of the {len(here)} here")


def tuned_for(run: Run, by: str, targets: Sequence[Target]) -> str:
    """That a run was tuned to pay the least of another column than `by`, or to reach another target than some; or "". Without
    targets, `by` is a figure's axis."""
    tuned = run.tuned or {}
    asked = [*map(str, targets)] or [str(tuned.get("to"))]
    others = [target for target in asked if (target, by) != (tuned.get("to"), tuned.get("by"))]
    if "to" not in tuned or not others:
        return ""
    here = "here" if targets else "on other axes"
    where = here if others == asked else f"to {' and '.join(others)}"
    return f"tuned for {column_of(tuned['by']).in_sentence} to {tuned['to']}, so another value may need less {where}"


def _step_of(run: Run, label: str) -> str:
    """Whether a run's step is tuned, given, or the default of its method; "" where it has none, or the label says it."""
    if re.search(r"\bstep = ", label):
        return ""
    if "algorithm.step" in put_by(run.tuned or {"value": {}}):
        return "step tuned"
    given = settings_of(run.written).get("algorithm.step")
    return f"step {given}, given" if given is not None else _DEFAULT if "step" in run.evaluated else ""


def on_data(runs: Sequence[Run], labels: Sequence[str], most: int | None = LABELS) -> list[str]:
    """Lines that name several data sets, with their runs' labels, or one that is not the paper's, or not as it is published."""
    found = said_of((line_of(run, with_place=False) for run in runs), labels, most)
    return [*found.values()] if len(found) > 1 else [*found] if any(map(elsewhere, runs)) else []


def said_of(said: Iterable[str], labels: Sequence[str], most: int | None = LABELS) -> dict[str, str]:
    """By what is said of labels, without "", the line that says it of them: of more than `LABELS` that are all, so; of two more
    than so many, the first ones."""
    found: dict[str, dict[str, None]] = {}
    for text, label in zip(said, labels, strict=True):
        found.setdefault(text, {})[label] = None
    lines = dict[str, str]()
    for text, own in found.items():
        shown = most if most and len(own) > most + 1 else len(own)
        who = "; ".join([*own][:shown]) + f" and {len(own) - shown} more" * (len(own) > shown)
        lines[text] = f"{text}: {'all methods' if len(own) == len(labels) > LABELS else who}"
    lines.pop("", None)
    return lines
