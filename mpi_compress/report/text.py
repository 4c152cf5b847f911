"""Outcomes of jobs as lines of text, as a table, and as a gallery of figures in Markdown."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib.pyplot as plt

from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.tables import markdown, plain
from mpi_compress.evidence import problems
from mpi_compress.evidence.outcomes import GROUPS, Outcome, counted
from mpi_compress.evidence.sentences import scorecard
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.figures import plotting as figures

PAPERS = {
    "CAT": "Khirirat, Magnússon, Aytekin, Johansson: A Flexible Framework for Communication-Efficient Machine Learning (AAAI 2021)",
    "GSpar": "Wangni, Wang, Liu, Zhang: Gradient Sparsification for Communication-Efficient Distributed Optimization "
    "(NeurIPS 2018)",
    "HT": "Sahu, Dutta, Abdelmoniem, Banerjee, Canini, Kalnis: Rethinking Gradient Sparsification as Total Error Minimization "
    "(NeurIPS 2021)",
    "AIADE": "Ye, Xiao, Sun: A Communication Efficient Gradient Compression Algorithm for Distributed Learning (2020)",
}
_TABLE = """Written by `mpi-compress report --table` from results, not by hand. *stand-in*: another set takes the place of the
paper's; *generated*: the data are made as the paper, or the job, says. `mpi-compress check JOB` prints a job's claims in full.
A row is judged by the median over seeds. From five seeds on, an interval holds the median with a probability of nine
tenths or more; where it, or the grid of a tuned number, holds values that meet the claim and values that do not, the row is
*undecided*. Where a run was cut off before a level, where the level lies above the start, and where a value is no number, a row
is *not tested*. A theorem is in its paper's setting on any problem that meets its assumptions.

The scorecard counts sentences: a sentence of a paper counts once, whatever the number of panels, columns and levels at which it
is looked at. It holds if all of its rows do that were tested, and *in part* if some do. The conditions under
*wanted* are ours where they are not the paper's number itself: windows around it, and shares of it.

"""
_GALLERY = "Each figure as its job draws it, by `mpi-compress plot JOB`; written by `mpi-compress report --gallery`.\n"


def summary(found: Sequence[Outcome]) -> Iterator[str]:
    """A line for each job, one for each claim that does not hold, and how many claims hold."""
    yield from plain((), [[o.key, o.status + (f"; claims: {o.counted}" if o.verdicts else "")] for o in found])
    for o in found:
        for v in o.verdicts:
            if v.holds is False:
                yield f"{o.key}: {v}"
    for group, sentences in scorecard(found).items():
        yield f"{GROUPS[group]}: {counted(s.outcome for s in sentences)}"
    yield from problems.lines(problems.fewest(found))
    if verdicts := [v.outcome for o in found for v in o.verdicts]:
        yield f"all claims: {counted(verdicts)}"


def write_table(found: Sequence[Outcome], target: Path, title: str | None = None) -> None:
    """Write `table` to a file, with links to the jobs; UserError if it cannot be written."""
    text = f"# {title or 'Figures and claims'}\n\n{table(found, target.parent)}"
    with writing(target, "--table"):
        target.write_text(text, encoding="utf-8")


def table(found: Sequence[Outcome], folder: Path = Path()) -> str:
    """The scorecard, jobs with data and status, sentences, and their rows, as Markdown; links are relative to the page's folder."""
    groups = scorecard(found)
    files = {o: Path(os.path.relpath(o.file, folder)).as_posix() for o in found}
    jobs = [[o.paper or o.title, f"[{o.key}]({files[o]})", o.data, o.kind, o.status, o.counted] for o in found]
    scores = [
        [GROUPS[group], counted(s.outcome for s in those), counted(v.outcome for s in those for _, v in s.rows)]
        for group, those in groups.items()
    ]
    parts = {"Scorecard": markdown(("", "sentences", "rows"), scores)}
    for by, those in problems.by_column(problems.fewest(found)).items():
        parts[f"Least {by}, by problem"] = markdown(problems.HEADS, [each.cells for each in those])
    parts["Figures"] = markdown(("figure", "job", "data", "", "status", "claims"), jobs)
    for group, sentences in groups.items():
        rows = [[s.ids, f"“{s.text}”" if group != "ours" else s.text, s.jobs, s.verdict] for s in sentences]
        parts[GROUPS[group]] = markdown(("claim", "sentence", "jobs", "verdict"), rows)
    for group in groups:
        claims = [_claim(o, v) for o in found for v in o.verdicts if o.group(v) == group]
        parts[f"{GROUPS[group]}, row by row"] = markdown(("claim", "", "paper", "ours", "wanted", "verdict"), claims)
    return _TABLE + "\n".join(f"## {head}\n\n{text}" for head, text in parts.items())


def _claim(o: Outcome, v: Verdict) -> list[str]:
    """A claim's row: what the paper says and in which words, its number and ours, the verdict, and the reason."""
    c = v.claim
    says = c.says + (f". The paper: “{c.words}”" if c.words else "") + (f". Note: {c.note}" if c.note else "")
    ours = "; ".join(text for text in (v.ours, v.spread, *v.remarks) if text)
    return [f"{c.id}, {o.key}", says, v.paper or "–", ours, c.holds, v.outcome + (f": {v.reason}" if v.reason else "")]


def group_of(o: Outcome) -> str:
    """The key in `PAPERS` of the paper that a job reproduces, or ""."""
    word = re.match(r"\w*", o.paper)
    return word[0] if word and word[0] in PAPERS else ""


def write_gallery(found: Sequence[Outcome], target: Path, title: str | None = None) -> None:
    """Write a page, and the pictures of jobs with results into a folder beside it; UserError if they cannot be written."""
    lines = [f"# {title or 'Gallery'}\n", _GALLERY]
    for group in (*PAPERS, ""):
        members = [o for o in found if o.runs and group_of(o) == group]
        lines += [f"## {group or 'Further'}\n"] if members else []
        for o in members:
            assert o.job is not None
            lines.append(f"### {o.key}\n\n{o.title}: {o.paper or 'ours'}; {o.data}.\n")
            picture = Path(target.stem) / f"{o.key}.png"
            try:
                drawn = figures.draw(o.runs, o.job.titled_figure)
            except UserError as error:
                lines.append(f"{error}\n")
                continue
            figures.save(drawn, target.parent / picture, dpi=110)
            plt.close("all")
            lines.append(f"![{o.title}]({picture.as_posix()})\n")
    with writing(target, "--gallery"):
        target.write_text("\n".join(lines), encoding="utf-8")
