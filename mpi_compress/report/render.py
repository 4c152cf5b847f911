"""One self-contained HTML file: the template with its style and script, the plotting library, and the data, all in it."""

import importlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.progress import bits_text
from mpi_compress.evidence.lines import name_of
from mpi_compress.evidence.outcomes import GROUPS, Outcome, counted
from mpi_compress.evidence.problems import HEADS, by_column, fewest
from mpi_compress.evidence.sentences import scorecard
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.problem.datasets.said import differs
from mpi_compress.report import ran, series
from mpi_compress.report.reach import Tables, TargetTable
from mpi_compress.report.text import PAPERS, group_of
from mpi_compress.results.columns import COLUMNS, column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.summary import why_ended
from mpi_compress.results.units import unit_of

WORK = ("compute", "pack", "exchange", "update")  # what a run's seconds are spent on
LARGEST = 4_000_000  # bytes of data; tables, jobs and the plotting library come to it
TITLE = "The papers, reproduced"
_POINTS = (96, 64, 32, 16)  # rows that a column is thinned to: the most that fit
_CLASSES = {"holds": "holds", "does not hold": "fails", "undecided": "open", "not tested": "open", "not run": "open"}
_FILES = ("template.html", "style.css", "page.js", "slider.js")
LONG = 24  # rows, from which on a table is folded


def write(found: Sequence[Outcome], target: Path, title: str | None = None) -> None:
    """Write the page of these jobs; UserError without results or plotting library, or if it cannot be written."""
    if not any(o.runs or o.begun for o in found):
        raise UserError("there are no results to report; `mpi-compress run JOB` makes them, `report --run` those of many jobs")
    text = page(found, plotting_library(), title)
    with writing(target):
        target.write_text(text, encoding="utf-8")


def title_of(found: Sequence[Outcome]) -> str:
    """The title of a page: that of a single job; of several ones what they are."""
    return TITLE if any(map(group_of, found)) else found[0].title if len(found) == 1 else f"{len(found)} jobs"


def plotting_library() -> str:
    """Plotly's script, its basic bundle (lines and points); UserError if a library that makes the page is not installed."""
    try:
        for module in ("jinja2", "tsdownsample"):
            importlib.import_module(module)
    except ImportError as error:
        raise UserError(f'the report needs {error.name}: pip install "mpi-compress[report]"') from None
    return (resources.files(__package__) / "plotly-basic.min.js").read_text(encoding="utf-8")


def page(found: Sequence[Outcome], library: str, title: str | None = None) -> str:
    """The page as text; `library` is the plotting library's script."""
    import jinja2

    here = resources.files(__package__)
    files = {name: (here / name).read_text(encoding="utf-8") for name in _FILES}
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    ids = ids_of(found)
    tables = Tables.of(found, ids)
    figures = [_figure(o, ids[o], tables.of_jobs.get(ids[o]), found) for o in found]
    groups = _groups(figures)
    return environment.from_string(files["template.html"]).render(
        title=title or title_of(found), today=date.today().isoformat(), version=metadata.version("mpi-compress"),
        groups=groups, ran=_ran(found), ids=ids, problems=tables.of_data, **_claims(found, groups),
        fewest=[(by, [row.cells for row in rows]) for by, rows in by_column(fewest(found)).items()],
        heads=HEADS, work=WORK, long=LONG, style=files["style.css"], script=files["page.js"], slider=files["slider.js"],
        plotly=library.replace("</script", "<\\/script"), data=data(found, ids), reached_data=tables.data,
    )  # fmt: skip


def ids_of(found: Sequence[Outcome]) -> dict[Outcome, str]:
    """The anchor of each job, which no other job of the page has."""
    ids: dict[Outcome, str] = {}
    for o in found:
        plain = "figure-" + re.sub(r"[^\w-]", "-", o.key.replace("-", "--"))
        ids[o] = next(id for n in itertools.count(1) if (id := plain if n == 1 else f"{plain}-{n}") not in ids.values())
    return ids


def data(found: Sequence[Outcome], ids: Mapping[Outcome, str]) -> str:
    """What the script draws, as JSON: the finest thinning that is not too large."""
    for points in _POINTS:
        views = {ids[o]: series.views(o.shown, o.job.figure, points) for o in found if o.job and o.shown}
        text = series.as_json({"names": _names(views), "figures": views})
        if len(text.encode()) <= LARGEST:
            break
    return text


def _claims(found: Sequence[Outcome], groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the page says of claims: all of them, and how many sentences there are in each group, and of each outcome."""
    outcomes = {group: [sentence.outcome for sentence in sentences] for group, sentences in scorecard(found).items()}
    return {
        "claims": [claim for group in groups for figure in group["figures"] for claim in figure["claims"]],
        "scores": [{"says": GROUPS[group], "counted": counted(each)} for group, each in outcomes.items()],
        "counts": Counter(outcome for each in outcomes.values() for outcome in each),
    }


def _ran(found: Sequence[Outcome]) -> dict[str, Any]:
    """The first page: what ran, in a row for each method where there are few, else in a row for each job."""
    jobs = ran.ran(found)
    methods = [method for job in jobs for method in job.methods]
    few, seeds = len(methods) <= ran.FEW, max((len(method.states) for method in methods), default=1)
    return {"says": ran.sentence(jobs), "jobs": jobs, "few": few, "wrong": ran.incomplete(jobs), "seeds": seeds}


def _names(views: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    used = {name for each in views.values() for view in each for s in view.get("series", ()) for name in s["columns"]}
    order = [name for name in dict.fromkeys(c.name for c in COLUMNS) if name in used]
    own = sorted(used.difference(order))  # columns of a user's algorithm
    labels = {name: column_of(name).label for name in order} | {name: name.replace("_", " ") for name in own}
    return {name: f"{label} [{unit}]" if (unit := column_of(name).unit) else label for name, label in labels.items()}


def _groups(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    papers = {**PAPERS, "": "Further experiments"}
    members = {key: [figure for figure in figures if figure["group"] == key] for key in papers}
    if not any(members[key] for key in PAPERS):
        return [{"key": "", "paper": "", "figures": figures}]
    return [{"key": key or "Further", "paper": papers[key], "figures": each} for key, each in members.items() if each]


def _figure(o: Outcome, id: str, table: TargetTable | None, found: Sequence[Outcome]) -> dict[str, Any]:
    full = " --full" if o.full else ""
    return {
        "id": id, "key": o.key, "title": o.title, "paper": o.paper, "group": group_of(o), "data": o.data, "kind": o.kind,
        "status": o.status, "counted": o.counted, "file": str(o.file), "toml": o.text, "has_runs": bool(o.shown), "table": table,
        "apart": o.key if sum(other.title == o.title for other in found) > 1 else "",
        "commands": [f"mpi-compress {verb} {o.file}{full}" for verb in ("run", "plot", *(["check"] if o.verdicts else []))],
        "problem": _problem(o.shown),
        "claims": [_claim(o, v, id) for v in o.verdicts],
        "runs": [_row(r) for r in o.shown],
        "made": sorted({_made(r) for r in o.shown}),
    }  # fmt: skip


def _problem(each: Sequence[Run]) -> str:
    """Data and workers, and L and µ if all runs share them."""
    sizes = [f"{r.attrs['data']}: {r.attrs['n_samples']:,} samples, d = {r.attrs['dim']:,}" for r in each]
    sets = dict.fromkeys(map(differs, each, sizes))
    workers = list(dict.fromkeys(str(r.attrs["n_workers"]) for r in each))
    problems = dict.fromkeys(f"L = {r.attrs['L']:.4g}, µ = {r.attrs['mu']:.4g}" for r in each if np.isfinite(r.attrs["L"]))
    crowd = f"{' or '.join(workers)} worker{'' if workers == ['1'] else 's'}"
    return "; ".join([*sets, crowd, *(problems if len(problems) == 1 else ())])


def _claim(o: Outcome, v: Verdict, id: str) -> dict[str, Any]:
    c = v.claim
    return {
        "id": c.id, "says": c.says, "paper": v.paper or "–", "ours": v.ours,
        "spread": "; ".join(text for text in (v.spread, *v.remarks) if text), "words": c.words, "group": GROUPS[o.group(v)],
        "wanted": c.holds.replace(">=", "≥").replace("<=", "≤"),
        "verdict": v.outcome, "class": _CLASSES[v.outcome], "why": v.reason, "note": c.note,
        "figure": id, "data": o.data, "kind": o.kind, "source": o.paper or o.key,
    }  # fmt: skip


def _row(r: Run) -> dict[str, Any]:
    last = {name: values[-1] for name, values in r.trace.items() if len(values)}
    seconds = {name: float(values[-1]) for name, values in r.timing.items()}
    total = max(seconds["seconds"], 1e-12)
    shares = {name: seconds[name] / total for name in WORK}
    rounds = max(int(last["round"]), 1)
    each = rounds * r.attrs["n_workers"]
    more = {name: f"{last[name]:.4g}" for name in ("error_norm", "distance", "test_accuracy") if name in last}
    cost = unit_of("cost_up", [r])
    return {
        "label": name_of(r), "seed": r.written.get("seed", 0), "status": r.status,
        "reason": why_ended(r), "round": f"{last['round']:,}", "loss": f"{last['loss']:.7g}",
        "suboptimality": f"{last['suboptimality']:.4g}", "grad_norm": f"{last['grad_norm']:.4g}", "more": more,
        "seconds": f"{total:.3g}", "shares": {n: f"{100 * s:.0f}" for n, s in shares.items()},
        "widths": {n: f"{100 * min(s, 1):.2f}" for n, s in shares.items()}, "each_ms": f"{1e3 * total / rounds:.3g}",
        "cost": bits_text(float(last["cost_up"])) if cost == "bit" else f"{last['cost_up']:.4g} {cost}".strip(),
        "evaluate": f"{seconds['evaluate']:.3g}", "ways": [_way(last, way) for way in ("up", "down")],
        "elements": f"{last['elements_up'] / each:.4g}" if "elements_up" in last else "–",
    }  # fmt: skip


def _way(last: Mapping[str, Any], way: str) -> dict[str, str]:
    wire, paper = float(last[f"wire_bits_{way}"]), float(last[f"paper_bits_{way}"])
    ratio = f"{wire / paper:.3g}" if paper > 0 and np.isfinite(paper) else "–"
    return {"wire": bits_text(wire), "paper": bits_text(paper), "ratio": ratio}


def _made(r: Run) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in json.loads(r.attrs["versions"]).items())
    ranks = f"{r.attrs['n_ranks']} ranks, {r.attrs['mpi_library']}" if r.attrs["n_ranks"] > 1 else "one process"
    return f"{versions}; {ranks}; on {r.attrs['host']}" + (f", commit {r.attrs['commit']}" if r.attrs.get("commit") else "")
