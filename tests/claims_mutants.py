"""Plays wrong methods, each against the sentences that must not hold of it, and prints a table of what was seen.

    python tests/claims_mutants.py [--only TEXT …]

A mutant is a text in another's place in a copy of its job: a setting, or a part of `helpers.mutant_parts`. The job is played at a
short form as it stands, where the sentences must hold, and with the mutant, where none of them may. `--only` takes the mutants that
have one of these texts. The exit status is 1 where a sentence survives. `test_claims_mutants.py` checks that the table goes with the
jobs, and that each of their sentences has a mutant, or stands in `WITHOUT` with the reason.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from helpers.copies import ROOT
from helpers.judged import sentences

from mpi_compress.core.tables import markdown
from mpi_compress.evidence.sentences import text_of
from mpi_compress.job.loading import load_job

JOBS = ROOT / "jobs"


class Short(NamedTuple):
    """A job at a form that takes seconds."""

    job: str  # below jobs/
    settings: Mapping[str, Any]
    only: Sequence[str] = ()  # the runs that are played; (): all


class Mutant(NamedTuple):
    """A wrong method, and the sentences that must not hold of it."""

    what: str  # what is wrong, in a few words
    short: Short
    right: str  # the job's text as it stands, once in the file
    wrong: str
    kills: Sequence[str]  # parts of the sentences' texts


GSPAR = Short("gspar/fig1", {"data.samples": 256, "data.dim": 512, "stop.rounds": 240, "tune.values": [8, 16, 32, 64]}, ["*, c2 = 0.25, lambda2 = 1/N"])
SVM = Short("aiade/svm", {"stop.rounds": 800})
SGD = Short("aiade/interpolation", {"stop.rounds": 1000}, ["IADE-SGD"])
START = Short("ht/fig7-start", {"stop.rounds": 200}, ["top-1", "hard-threshold"])

_GSPAR, _UNISP = '{ name = "gspar", kappa = 0.1 }', '{ name = "unisp", kappa = 0.1 }'
_OWN = _UNISP + '\ntune = { parameter = "algorithm.step.a", to = { suboptimality = 1e-9 }, seeds = [0], values = [5.7, 6.7, 8, 9.5, 11, 13.5, 16, 19, 23] }'
_SHORT = _UNISP + """
algorithm = { name = "sgd", batch = 8, step = { form = "1/t", a = 0.1 } }
tune = { parameter = "algorithm.step.b", seeds = [0], values = [1, 1.1] }"""
_IADE, _AIADE = '{ name = "iade" }', '{ name = "aiade" }'
_IADE_SGD = 'label = "IADE-SGD"\nalgorithm = { name = "iade-sgd"'
_LAMBDA = "threshold = 14881.0"
LESS = "our algorithm generates gradients with less variance"

MUTANTS = (
    Mutant("uniform probabilities at twice the density in GSpar's place", GSPAR, _GSPAR, '{ name = "unisp", kappa = 0.2 }', [LESS]),
    Mutant("UniSp in GSpar's place", GSPAR, _GSPAR, _UNISP, [LESS]),
    Mutant("UniSp with a step a hundred times too short", GSPAR, _OWN, _SHORT, ["slowed down linearly"]),
    Mutant("AIADE without its correction τ (x⁺ − x)", SVM, _AIADE, '{ name = "aiade, no correction" }', ["c^k · G(k)", "O(Nd ln(k ln k))"]),
    Mutant("AIADE quantises four times as coarsely", SVM, _AIADE, '{ name = "aiade, coarse" }', ["is diminishing"]),
    Mutant("IADE takes a fortieth of its step", SVM, _IADE, '{ name = "iade, slow" }', ["max{0, ‖x0 − x*‖"]),
    Mutant("IADE quantises four times as coarsely", SVM, _IADE, '{ name = "iade, coarse" }', ["by triangle inequality"]),
    Mutant("IADE quantises 10⁹ times as finely", SVM, _IADE, '{ name = "iade, fine" }', ["Algorithm 1 only uses O(Nd)"]),
    Mutant("no x fits all samples", SGD, "condition = 10.0\n\n", "condition = 10.0\nnoise = 0.3\n\n", ["≤ 2ρL(f(x) − f(x*))"]),
    Mutant("IADE-SGD quantises four times as coarsely", SGD, _IADE_SGD, _IADE_SGD.replace("iade-sgd", "iade-sgd, coarse"), ["error’s square is bounded"]),
    Mutant("λ halved", START, _LAMBDA, "threshold = 7440.5", ["faster convergence than Top-k in Figure 7 a", "hard-threshold has a smaller total-error than"]),
    Mutant("λ four times as large", START, _LAMBDA, "threshold = 59524.0", ["faster convergence than Top-k in Figure 7 a", "hard-threshold has a smaller total-error than"]),
    Mutant("λ a tenth", START, _LAMBDA, "threshold = 1488.1", ["does not communicate any elements"]),
)

WITHOUT: Mapping[str, str] = {
    "deep/*": "networks: a mutant takes minutes",
    "literature/*": "the runs of its jobs take minutes to tune",
    "cat/*": "on text: a mutant takes minutes",
    "gspar/fig3*": "its grids of κ and steps take minutes; UniSp in GSpar's place fails at all levels that it reaches",
    "gspar/fig5": "it takes a core for each worker",
    "time/*": "a mutant takes minutes to tune",
    "gspar/residuals": "it does not hold",
    "gspar/fig2*": "SVRG's rows: those on variance are killed in fig1, and those on its rounds do not hold",
    "the empirically optimal step size is inversely": "trials a factor of 2^(1/4) apart at full size: minutes",
    "inversely related to the gradient variance as the theoretical analysis": "it does not hold",
    "aiade/condition": "a million rounds",
    "our algorithm IADE-SGD converges to the optimal solution at a linear rate": "its bound is too loose for 1000 rounds to show it",
    "ht/fig1": "3000 rounds on five seeds: minutes",
    "ht/fig[89]": "100,000 rounds",
    "so that they both communicate same data volume": "it does not hold",
}


def killed(m: Mutant, as_it_is: Mapping[str, str], mutated: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each sentence that the mutant must kill, its verdict without the mutant, and with it."""
    for part in m.kills:
        (text,) = (text for text in as_it_is if part in text)
        yield text, as_it_is[text], mutated[text]


def seen(before: str, after: str) -> bool:
    """True if a sentence holds of the method, and not of the mutant."""
    return before.startswith("holds") and "holds in" not in before and (not after.startswith("holds") or "holds in" in after)


def play(mutants: Sequence[Mutant], folder: Path) -> Iterator[list[str]]:
    """A row for each mutant and sentence."""
    import_module("helpers.mutant_parts")  # registers them: not before, since this module is imported with all tests
    as_they_are: dict[str, dict[str, str]] = {}
    for i, m in enumerate(mutants):
        file = JOBS / f"{m.short.job}.toml"
        if m.short.job not in as_they_are:
            as_they_are[m.short.job] = sentences(file, {**m.short.settings}, m.short.only, folder / "as-it-is")
        mutated = folder / f"{i}" / f"{m.short.job}.toml"
        mutated.parent.mkdir(parents=True)
        mutated.write_text(file.read_text().replace(m.right, m.wrong))
        found = sentences(mutated, {**m.short.settings}, m.short.only, folder / f"{i}")
        for text, before, after in killed(m, as_they_are[m.short.job], found):
            yield [m.what, m.short.job, text, before, after, "killed" if seen(before, after) else "LIVES"]


def invalid(mutants: Sequence[Mutant] | None = None) -> Iterator[str]:
    """What does not go with the jobs: a text that is not there once, a sentence that the job has not."""
    for m in MUTANTS if mutants is None else mutants:
        if (times := (JOBS / f"{m.short.job}.toml").read_text().count(m.right)) != 1:
            yield f"{m.short.job}: {m.right!r} is there {times} times"
        for part in m.kills:
            if (times := sum(part in text for text in sentences_of(m.short.job))) != 1:
                yield f"{m.short.job}: {part!r} is a part of {times} sentences"


def sentences_of(job: str) -> set[str]:
    return {text_of(claim) for claim in load_job(JOBS / f"{job}.toml").claims}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="mutants that have one of these texts")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if not options.only or any(text in f"{m.what} {m.short.job}" for text in options.only)]
    if problems := list(invalid(chosen)):
        print(*problems, sep="\n")
        return 2
    rows = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for row in play(chosen, Path(folder)):
            rows.append(row)
            print(": ".join(row), flush=True)
    print(markdown(("mutant", "job", "sentence", "as it is", "with the mutant", ""), rows))
    return 1 if any(row[-1] == "LIVES" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
