"""Outcomes of jobs as lines of text, and as a page of tables and pictures in Markdown."""

import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import shorten

import matplotlib.pyplot as plt

from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.tables import Markup, comma_separated, in_markdown, link, markdown, plain
from mpi_compress.evidence import problems
from mpi_compress.evidence.outcomes import GROUPS, Outcome, counted
from mpi_compress.evidence.sentences import Sentence, by_group, counted_of, scorecard
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.figures import plotting as figures
from mpi_compress.report.needed import headline

_HERE = Path(__file__).parent
PAPERS: dict[str, str] = tomllib.loads((_HERE / "papers.toml").read_text(encoding="utf-8"))
_ARXIV = re.compile(r"arXiv:(\S+)")


def summary(found: Sequence[Outcome]) -> Iterator[str]:
    """A line for each job, one of who needed the least in it, one for each claim that does not hold or is undecided, and how many
    of the papers' claims hold."""
    yield from plain((), [[o.key, o.status + (f"; claims: {o.counted}" if o.verdicts else "")] for o in found])
    yield from (f"{o.key}: {won}" for o in found if o.job and o.shown and (won := headline(o.shown, o.job.figure)))
    for o in found:
        for v in o.verdicts:
            if v.outcome in ("does not hold", "undecided"):
                yield f"{o.key}: {v}"
    for group, sentences in scorecard(found).items():
        yield f"{GROUPS[group]}: {counted_of(sentences)}"
    if verdicts := [v.outcome for o in found for v in o.verdicts if o.group(v) != "ours"]:
        yield f"all claims of papers: {counted(verdicts, 'case')}"


def write_table(found: Sequence[Outcome], target: Path, title: str | None = None) -> None:
    """Write `table` to a file, with links to the jobs, their pictures into a folder beside it, and all cases to a CSV; UserError if
    they cannot be written."""
    cases, groups = target.with_suffix(".csv"), by_group(found).items()
    each = [[GROUPS[group], *_case(o, v)] for group, those in groups for sentence in those for o, v in sentence.cases]
    with writing(target, "--table"):
        head = f"# {in_markdown(title or 'Figures and claims')}\n\n"
        target.write_text(head + table(found, target.parent, cases.name, _drawn(found, target)), encoding="utf-8")
        cases.write_text(comma_separated(_CASE, each), encoding="utf-8")


def _drawn(found: Sequence[Outcome], target: Path) -> dict[Outcome, str]:
    """The picture of each job with results, which is drawn into a folder beside the page, or why there is none."""
    pictures = {}
    for o in found:
        if o.job and o.runs:
            picture = Path(target.stem) / f"{o.key}.png"
            try:
                drawn = figures.draw(o.runs, o.job.titled_figure)
            except UserError as error:
                pictures[o] = in_markdown(str(error))
                continue
            figures.save(drawn, target.parent / picture, dpi=200)
            plt.close("all")
            pictures[o] = f"!{link(o.title, picture.as_posix())}"
    return pictures


def table(found: Sequence[Outcome], folder: Path = Path(), cases: str = "", pictures: Mapping[Outcome, str] | None = None) -> str:
    """The scorecard, jobs with data and status, pictures with verdicts, and sentences, as Markdown; links begin in the folder."""
    groups = by_group(found)
    files = {o: Path(os.path.relpath(o.file, folder)).as_posix() for o in found}
    jobs = [[_place(o), link(o.key, files[o]), o.data, o.kind, o.status, o.counted] for o in found]
    scores = [
        [GROUPS[group], counted(s.outcome for s in those), counted(v.outcome for s in those for _, v in s.cases)]
        for group, those in scorecard(found).items()
    ]
    parts = {"Scorecard": markdown(("", "sentences", "cases"), scores)}
    parts["Figures"] = markdown(("figure", "job", "data", "", "status", "cases"), jobs)
    if pictures:
        shown = (["### " + o.key, in_markdown(o.title), f"{picture}\n{_judged(o)}"] for o, picture in pictures.items())
        parts["Pictures"] = "\n".join(map("\n\n".join, shown))
    for by, those in problems.by_column(problems.fewest(found)).items():
        parts[f"Least {by}, by problem"] = markdown(problems.HEADS, [each.cells for each in those])
    for group, sentences in groups.items():
        where = [Markup(", ".join(dict.fromkeys(link(o.key, files[o]) for o, _ in s.cases))) for s in sentences]
        said = [_once([s.verdict, *(v.claim.note for _, v in s.cases)]) for s in sentences]
        rows = [[s.ids, _short(s), *_numbers(s), *beside] for s, *beside in zip(sentences, where, said, strict=True)]
        parts[GROUPS[group]] = markdown(("id", "sentence", "paper", "ours", "unit", "required", "basis", "jobs", "verdict"), rows)
    papers = "\n".join(f"- {key}: {words}" for key, words in PAPERS.items() if any(group_of(o) == key for o in found))
    papers = _ARXIV.sub(r"[\g<0>](https://arxiv.org/abs/\1)", papers)
    above = (_HERE / "figures.md").read_text(encoding="utf-8").format(cases=cases, papers=papers)
    return above + "\n".join(f"## {head}\n\n{text}" for head, text in parts.items())


def _judged(o: Outcome) -> str:
    """The verdicts on the sentences of a job by its own cases, under its picture."""
    sentences = [*chain(*by_group([o]).values())]
    several = {ids for ids, n in Counter(s.ids for s in sentences).items() if n > 1}
    words = [f" ({shorten(_short(s).strip('“”'), 60, placeholder=' …')})" if s.ids in several else "" for s in sentences]
    verdicts = [f"{s.ids}{which} {s.verdict}" for s, which in zip(sentences, words, strict=True)]
    return f"\n{'; '.join(verdicts)}.\n" if verdicts else ""


def _short(sentence: Sentence) -> str:
    """A sentence in a line: a paper's in quotes, without its end where it is long; ours without its claim's id."""
    if sentence.group == "ours":
        return sentence.text.removeprefix(f"{sentence.cases[0][1].claim.id}: ")
    return f"“{shorten(sentence.text, 160, placeholder=' …')}”"


def _numbers(sentence: Sentence) -> Iterator[str]:
    """The paper's number, ours, their unit, the bar and what was read of the paper, over all cases of a sentence."""
    each = [v for _, v in sentence.cases]
    known = sorted((v for v in each if v.values and (v.outcome != "not tested" or not sentence.tested)), key=lambda v: v.median)
    yield _once(v.paper for v in each)
    numbers = [v.ours for v in known if not v.ours.startswith("no value")]
    yield _once([" … ".join(dict.fromkeys(numbers[:1] + numbers[-1:])), *(v.ours for v in known if v.ours not in numbers)])
    yield _once(v.claim.unit for v in each)
    yield _once(v.required for v in each)
    yield "ours" if sentence.group == "ours" else _once(v.claim.read for v in each)


def _once(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts))) or "–"


def _place(o: Outcome) -> str:
    """What a job shows of which paper, with a link to it where it is one of `PAPERS` on arXiv."""
    found = _ARXIV.search(PAPERS.get(group_of(o), ""))
    return link(o.paper, f"https://arxiv.org/abs/{found[1]}") if found else o.paper or o.title


_CASE = ("setting", "claim", "job", "case", "words", "note", "paper", "ours", "unit", "required", "basis", "verdict", "reason")


def _case(o: Outcome, v: Verdict) -> list[str]:
    """A case's row under `_CASE`, after its setting."""
    c, ours = v.claim, "; ".join(filter(None, (v.ours, v.spread, *v.remarks)))
    basis = "ours" if o.group(v) == "ours" else c.read
    return [c.id, o.key, c.says, c.words, c.note, v.paper, ours, c.unit, v.required, basis, v.outcome, v.reason]


def group_of(o: Outcome) -> str:
    """The key in `PAPERS` of the paper that a job reproduces, or ""."""
    word, *_ = re.split(r"\W", o.job.paper if o.job else "")
    return word if word in PAPERS else ""
