"""One self-contained HTML file: the template with its style, figures and tables, the plotting script and the data of curves."""

import base64
import io
import itertools
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.progress import bits_text
from mpi_compress.evidence.lines import name_of
from mpi_compress.evidence.outcomes import GROUPS, Outcome, only_words
from mpi_compress.evidence.problems import HEADS, by_column, fewest
from mpi_compress.evidence.sentences import counted_of, scorecard
from mpi_compress.figures.plotting import draw
from mpi_compress.job.tables import FigureTable
from mpi_compress.problem.datasets.said import differs
from mpi_compress.report import ran
from mpi_compress.report.curves import curves
from mpi_compress.report.needed import needed, target_of, winner
from mpi_compress.report.text import PAPERS, group_of
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.units import unit_of

WORK = ("compute", "pack", "exchange", "update")  # what a run's seconds are spent on
TITLE = "The papers, reproduced"
_MORE = ("error_norm", "distance", "test_accuracy")  # columns of the table of last rows, where a run has them
_FILES = ("template.html", "style.css", "page.js", "uPlot.iife.min.js", "uPlot.min.css", "uPlot.txt")
LONG = 24  # rows, from which on a table is folded


def write(found: Sequence[Outcome], target: Path, title: str | None = None, words: Sequence[str] = ()) -> None:
    """Write the page of these jobs, whose commands have `words` besides; UserError without results, or if it cannot be written."""
    if not any(o.runs or o.begun for o in found):
        raise UserError("there are no results to report; `mpi-compress run JOB` makes them, `report --run` those of many jobs")
    text = page(found, title, words)
    with writing(target):
        target.write_text(text, encoding="utf-8")


def title_of(found: Sequence[Outcome]) -> str:
    """The title of a page: that of a single job; of several ones what they are."""
    return TITLE if any(map(group_of, found)) else found[0].title if len(found) == 1 else f"{len(found)} jobs"


def page(found: Sequence[Outcome], title: str | None = None, words: Sequence[str] = ()) -> str:
    """The page as text."""
    files = {name: Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _FILES}
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    ids, groups = ids_of(found), _groups(found)
    cases = [(o, v) for group in groups for o in group["jobs"] for v in o.verdicts]
    drawn = {ids[o]: own for o in found if o.job and o.shown and (own := curves(o.shown, o.job.figure))}
    return environment.from_string(files["template.html"]).render(
        title=title or title_of(found), today=date.today().isoformat(), version=metadata.version("mpi-compress"),
        figures={o: _figure(o.shown, o.job.figure) for o in found if o.job and o.shown},
        groups=groups, ran=_ran(found), ids=ids, titles=Counter(o.title for o in found),
        claims=[(o, v) for o, v in cases if o.group(v) != "ours"], ours=[(o, v) for o, v in cases if o.group(v) == "ours"],
        scores=scorecard(found), counted_of=counted_of, bases=GROUPS, drawn=drawn,
        words={o: shlex.join([*only_words(o.only), *words]) for o in found},
        fewest=by_column(fewest(found)), heads=HEADS, work=WORK, long=LONG, files=files,
    )  # fmt: skip


def ids_of(found: Sequence[Outcome]) -> dict[Outcome, str]:
    """The anchor of each job, which no other job of the page has."""
    ids: dict[Outcome, str] = {}
    for o in found:
        plain = "figure-" + re.sub(r"[^\w-]", "-", o.key.replace("-", "--"))
        ids[o] = next(id for n in itertools.count(1) if (id := plain if n == 1 else f"{plain}-{n}") not in ids.values())
    return ids


def _ran(found: Sequence[Outcome]) -> dict[str, Any]:
    """The first page: what ran, in a row for each method where there are few, else in a row for each job."""
    jobs = ran.ran(found)
    methods = [method for job in jobs for method in job.methods]
    few, seeds = len(methods) <= ran.FEW, max((len(method.states) for method in methods), default=1)
    return {"says": ran.sentence(jobs), "jobs": jobs, "few": few, "wrong": ran.incomplete(jobs), "seeds": seeds}


def _groups(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The jobs of each paper that has any, and the others; all together where none is of a paper."""
    members = {key: [o for o in found if group_of(o) == key] for key in (*PAPERS, "")}
    several = any(map(group_of, found))
    papers = {**PAPERS, "": "Further experiments"}
    return [{"key": (key or "Further") * several, "paper": papers[key], "jobs": own} for key, own in members.items() if own]


def _figure(runs: Sequence[Run], figure: FigureTable) -> dict[str, Any]:
    table = needed(runs, figure)
    counts = ""
    if table and (x := column_of(figure.x)).unit == "bit" and x.name != table.by:
        counts = f"The figure counts {x.in_sentence}, the table {column_of(table.by).in_sentence}."
    return {
        "table": table, "won": winner(table, target_of(runs, figure)) if table else "", "counts": counts,
        **_picture(runs, figure), "problem": _problem(runs),
        "runs": [_row(r) for r in runs], "made": sorted({_made(r) for r in runs}),
    }  # fmt: skip


def _picture(runs: Sequence[Run], figure: FigureTable) -> dict[str, str]:
    """A job's figure as `plot` draws it, as a data URL, or why there is none."""
    try:
        drawn = draw(runs, replace(figure, title=""))
    except UserError as error:
        return {"picture": "", "undrawn": str(error)}
    whole, small = io.BytesIO(), io.BytesIO()
    drawn.savefig(whole, format="png", dpi=180)
    plt.close(drawn)
    # colours that cover all hues, however few pixels have one, and are then moved thrice to the mean of those they stand for
    Image.open(whole).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, 3).save(small, "png", optimize=True)
    return {"picture": f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}", "undrawn": ""}


def _problem(each: Sequence[Run]) -> str:
    """Data and workers, and L and µ if all runs share them."""
    sizes = [f"{r.attrs['data']}: {r.attrs['n_samples']:,} samples, d = {r.attrs['dim']:,}" for r in each]
    sets = dict.fromkeys(map(differs, each, sizes))
    workers = " or ".join(dict.fromkeys(str(r.attrs["n_workers"]) for r in each))
    problems = dict.fromkeys(f"L = {r.attrs['L']:.4g}, µ = {r.attrs['mu']:.4g}" for r in each if np.isfinite(r.attrs["L"]))
    return "; ".join([*sets, f"{workers} worker{'s' * (workers != '1')}", *(problems if len(problems) == 1 else ())])


def _row(r: Run) -> dict[str, Any]:
    last = {name: values[-1] for name, values in r.trace.items()}
    seconds = {name: float(values[-1]) for name, values in r.timing.items()}
    total, rounds = max(seconds["seconds"], 1e-12), max(int(last["round"]), 1)
    cost = unit_of("cost_up", [r])
    return {
        "run": r, "label": name_of(r), "reason": r.ended_by, "last": last, "more": [name for name in _MORE if name in last],
        "seconds": seconds, "total": total, "rounds": rounds, "shares": {name: seconds[name] / total for name in WORK},
        "cost": bits_text(float(last["cost_up"])) if cost == "bit" else f"{last['cost_up']:.4g} {cost}".strip(),
        "ways": [_way(last, way) for way in ("up", "down")],
        "elements": f"{last['elements_up'] / (rounds * r.attrs['n_workers']):.4g}" if "elements_up" in last else "–",
    }  # fmt: skip


def _way(last: Mapping[str, Any], way: str) -> dict[str, str]:
    wire, paper = float(last[f"wire_bits_{way}"]), float(last[f"paper_bits_{way}"])
    ratio = f"{wire / paper:.3g}" if 0 < paper < np.inf else "–"
    return {"wire": bits_text(wire), "paper": bits_text(paper), "ratio": ratio}


def _made(r: Run) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in json.loads(r.attrs["versions"]).items())
    ranks = f"{r.attrs['n_ranks']} ranks, {r.attrs['mpi_library']}" if r.attrs["n_ranks"] > 1 else "one process"
    return f"{versions}; {ranks}; on {r.attrs['host']}" + (f", commit {r.attrs['commit']}" if r.attrs.get("commit") else "")
