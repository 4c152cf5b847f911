"""From how many samples N* on keeping them needs fewer bits than sending them: the section of docs/records.md, and its figure."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from records_bits import DATA, TO, WAYS, Problem

from mpi_compress.figures import plotting
from mpi_compress.figures.legends import handles_of, put_below
from mpi_compress.figures.style import HEIGHT, PAGE_WIDTH, looks, style_of

FIGURE = Path(__file__).parent / "records-samples.png"

PAGE = """
## From how many samples on

The bits of the data grow nearly in proportion to N. Those of a method that keeps the samples hardly grow on census-income and gisette-like, and more slowly than the data's on rcv1-like.
N\\* is where the curves cross: they are straight, in logarithms of both axes, between the N that were run. All runs have ten workers and κ = 10⁴, and the settings that the protocol chose (below); nothing was tuned on these sets. At each N the least of those methods counts that keep the
samples: BFGS and *EF21, L-BFGS*, with three seeds each, and at the least N AIADE, which draws nothing. BFGS, which sends a Hessian, runs on census-income alone.

- *census-income* is real; its first N rows are taken.
- *rcv1-like* (d = 47,236) and *gisette-like* (d = 5,000, dense) are drawn, and their values have no structure. They are rounded to floats of 32 bits (`dtype = "float32"`), so that a value
  costs about 32 bits. The real sets' values have fewer digits; the data then cost less, and N\\* is larger.
- A larger N takes long to pack: on one core of two, 1,000 samples take 0.3 s of census-income, 4 s of rcv1-like and 100 s of gisette-like.

`mpi-compress run records/samples-census-income --full` runs the first of the three jobs; [records-samples.csv](records-samples.csv) has every method with its interval.
"""


@dataclass(frozen=True)
class Growth:
    """A set at growing numbers of samples N."""

    those: Sequence[Problem]  # by N

    @property
    def set(self) -> str:
        return self.those[0].set

    def curves(self, level: str, column: str) -> tuple[list[float], list[float]]:
        """The bits of sending the data, and those of the best method that keeps them, for each N."""
        return [p.data.took(level, column) for p in self.those], [p.ranked(level, column)[0].took(level, column) for p in self.those]

    def pays_from(self, level: str, column: str) -> float:
        """N*, from which on keeping the samples needs fewer bits: where the curves cross, straight between the N that were run in
        logarithms of both; 0 if it does from the least N on, and infinite if it does not at the largest."""
        sent, kept = (np.array(each) for each in self.curves(level, column))
        if kept[-1] >= sent[-1]:
            return math.inf
        if not (dearer := np.flatnonzero(kept >= sent)).size:
            return 0.0
        i = dearer[-1]
        apart, logs = np.log(kept[i : i + 2] / sent[i : i + 2]), np.log([p.sizes[0] for p in self.those[i : i + 2]])
        return float(np.exp(logs[0] + (logs[1] - logs[0]) * apart[0] / (apart[0] - apart[1])))

    def in_words(self, level: str, column: str) -> str:
        N = self.pays_from(level, column)
        if math.isinf(N):
            return f"above {self.those[-1].sizes[0]:,}"
        return f"about {float(f'{N:.2g}'):,.0f}" if N else f"below {self.those[0].sizes[0]:,}"


def growths(each: Sequence[Problem]) -> list[Growth]:
    """Of the numbers of samples that have results of sending them, and of keeping them."""
    those = [p for p in each if {DATA} < {m.name for m in p.methods}]
    return [Growth(sorted((p for p in those if p.set == name), key=lambda p: p.sizes)) for name in dict.fromkeys(p.set for p in those)]


def answer(each: Sequence[Growth]) -> str:
    """The page's first sentence."""
    from_on = ", ".join(f"{g.in_words('1e-6', 'wire_bits')} on {g.set}" for g in each)
    return f"""**Keeping the samples needs fewer bits than sending them from N\\* samples on, and N\\* is {from_on}.** Those are bits up and down to f − f\\* ≤ 1e-6 in
logistic regression with ten workers and κ = 10⁴. "Above" and "below" name the ends of what was run. [The table](#from-how-many-samples-on) has the other targets, and bits up alone."""


def by_samples(each: Sequence[Growth]) -> Iterator[str]:
    """The table of N*, that of the bits, and the figure."""
    draw_growth(each)
    yield PAGE
    yield "| set | counted | " + " | ".join(f"N\\* to {level}" for level in TO) + " |\n| --- | --- |" + " ---: |" * len(TO)
    for g, column in itertools.product(each, WAYS):
        yield f"| {g.set} | {WAYS[column]} | {' | '.join(g.in_words(level, column) for level in TO)} |"
    yield "\n![Bits up and down to 1e-6 against the number of samples, one panel a set](records-samples.png)\n"
    yield f"Mbit up and down; {DATA}, and the least that keeps the samples:\n"
    yield "| set | N | " + " | ".join(f"{level}: {DATA} | the least" for level in TO) + " |\n| --- | ---: |" + " ---: | --- |" * len(TO)
    for p in (p for g in each for p in g.those):
        cells = []
        for level in TO:
            best = p.ranked(level, "wire_bits")[0]
            cells += [p.data.text(level, "wire_bits"), f"{best.text(level, 'wire_bits')}, {best.name}"]
        yield f"| {p.set} | {p.sizes[0]:,} | {' | '.join(cells)} |"


def draw_growth(each: Sequence[Growth]) -> None:
    with mpl.rc_context(style_of("screen").settings):
        figure, panels = plt.subplots(1, len(each), figsize=(PAGE_WIDTH, HEIGHT), sharey=True, squeeze=False)
        for ax, g in zip(panels[0], each, strict=True):
            N, curves = [p.sizes[0] for p in g.those], g.curves("1e-6", "wire_bits")
            for bits, label, look in zip(curves, (DATA, "the best that keeps the samples"), looks(["sent", "kept"]).values(), strict=True):
                ax.plot(N, np.array(bits) / 1e6, label=label, **look.of_line)
            ax.set(xscale="log", yscale="log", xlabel="samples N", title=g.set)
        panels[0][0].set_ylabel("Mbit up and down to 1e-6")
        figure.set_figheight(HEIGHT + put_below(figure, handles_of(list(panels[0])), None))
        plotting.save(figure, FIGURE)
