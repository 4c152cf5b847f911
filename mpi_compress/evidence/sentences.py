"""Sentences: what is claimed, each once, whatever the number of panels, columns and levels at which it is looked at."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpi_compress.evidence.outcomes import GROUPS, Outcome, counted
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.job.tables import Claim

_UNTESTED = ("not judged", "not tested", "not run")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a paper, or a line of our own, and the claims that look at it."""

    text: str
    group: str  # a key of `GROUPS`
    cases: Sequence[tuple[Outcome, Verdict]]

    @property
    def outcome(self) -> str:
        """The outcome of all cases that were tested: "holds" if each of them does, "holds in part" if some do."""
        found = {*self.tested} or {v.outcome for _, v in self.cases}
        if found - {"holds"} and "holds" in found:
            return "holds in part"
        return next(o for o in ("holds", "does not hold", "undecided", *_UNTESTED) if o in found)

    @property
    def tested(self) -> list[str]:
        """The outcomes of the cases that were tested."""
        return [v.outcome for _, v in self.cases if v.outcome not in _UNTESTED]

    @property
    def verdict(self) -> str:
        """The outcome in words, with how many cases hold of those that were tested."""
        tested, of = len(self.tested), len(self.cases)
        text = f"holds in {self.tested.count('holds')} of {tested} cases" if self.outcome == "holds in part" else self.outcome
        return text + (f", {of - tested} of {of} cases not tested" if 0 < tested < of else "")

    @property
    def ids(self) -> str:
        return ", ".join(dict.fromkeys(v.claim.id for _, v in self.cases))


def text_of(claim: Claim) -> str:
    """What a claim looks at: claims of one text are cases of one sentence."""
    return claim.sentence or claim.words or f"{claim.id}: {claim.says}"


def scorecard(found: Sequence[Outcome]) -> dict[str, list[Sentence]]:
    """The sentences of papers in each group that has any; lines of our own are not scored."""
    return {group: sentences for group, sentences in by_group(found).items() if group != "ours"}


def counted_of(sentences: Sequence[Sentence]) -> str:
    """How many sentences hold, and how many of their cases: "2 of 2 sentences hold; 6 of 8 cases hold, 2 not tested"."""
    cases = counted((v.outcome for sentence in sentences for _, v in sentence.cases), "case")
    return f"{counted((sentence.outcome for sentence in sentences), 'sentence')}; {cases}"


def by_group(found: Sequence[Outcome]) -> dict[str, list[Sentence]]:
    """The sentences of all jobs in each group of `GROUPS` that has any."""
    cases: dict[tuple[str, str], list[tuple[Outcome, Verdict]]] = {}
    for o in found:
        for v in o.verdicts:
            cases.setdefault((o.group(v), text_of(v.claim)), []).append((o, v))
    groups = {group: [Sentence(text, group, own) for (its, text), own in cases.items() if its == group] for group in GROUPS}
    return {group: sentences for group, sentences in groups.items() if sentences}
