"""Draws docs/layers.png from the package's imports: the packages on their layers, and an arrow from each package to those that it imports.

An arrow that follows from others is left out: where a package imports a second one and that one imports a third, the arrow from the
first to the third is not drawn.

    python docs/layers.py
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
from import_graph import FLOORS, modules, rooms
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

HOLDS = {
    "cli": "one file a command",
    "report": "one page about all jobs",
    "cluster": "SLURM: scripts, queue, notes",
    "planning": "estimates, links, the pool",
    "figures": "axes, curves, panels",
    "engine": "rounds, counting, evaluation",
    "preparing": "a run made ready, what refuses it",
    "guard": "checks of users' own parts",
    "evidence": "verdicts, comparisons, levels",
    "saving": "states on disk, for checkpoints",
    "job": "a job file, its runs and claims",
    "algorithms": "estimators, servers, downlinks, papers",
    "problem": "losses, data sets, objective, optimum",
    "exchange": "one process, or MPI",
    "results": "columns, writer, reader, status",
    "messages": "kinds, compressors, codecs, costs, links",
    "kernels": "Numba functions on arrays",
    "core": "errors, registry, random streams, signals",
}
PLACES = {
    "cli": 0.0, "report": 0.95, "cluster": -0.8, "planning": -0.8, "figures": 1.1, "engine": -0.8, "preparing": -0.8, "guard": -0.8,
    "evidence": 1.1, "job": 0.85, "algorithms": 0.2, "saving": -1.25, "problem": -0.3, "exchange": -1.0,
    "results": 1.1, "messages": -0.1, "kernels": -0.95, "core": 0.95,
}  # fmt: skip
"""Where a package is along its layer."""
WIDTH, HEIGHT = 1.3, 0.56
AGAINST_THE_RULE = "red"
COLOURS = ("#1b6ca8", "#d1495b", "#4c956c", "#8d6a9f", "#c77d0a", "#3a7d7c", "#7a6c5d")


def draw(ax: Axes) -> None:
    graph = rooms(modules())
    for floor in sorted({*FLOORS.values()}):
        ax.axhspan(floor - 0.5, floor + 0.5, facecolor="#fbfaf7" if floor % 2 else "#f1eee6", zorder=0)
        ax.text(-2.02, floor, str(floor), ha="center", va="center", fontsize=10, color="#777777")
    for number, room in enumerate(sorted(graph, key=lambda room: FLOORS[room])):
        for other in sorted(graph[room]):
            if not follows(graph, room, other):
                _arrow(ax, room, other, COLOURS[number % len(COLOURS)])
    for room, floor in FLOORS.items():
        x = PLACES[room]
        ax.add_patch(
            FancyBboxPatch(
                (x - WIDTH / 2, floor - HEIGHT / 2), WIDTH, HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.06", facecolor="white", edgecolor="#444444", zorder=3,
            )
        )  # fmt: skip
        ax.text(x, floor + 0.1, f"{room}/", ha="center", va="center", fontsize=11, weight="bold", zorder=4)
        ax.text(x, floor - 0.14, HOLDS[room], ha="center", va="center", fontsize=7.6, color="#333333", zorder=4)
    ax.set(xlim=(-2.12, 1.85), ylim=(0.5, 13.5))
    ax.axis("off")


def follows(graph: dict[str, set[str]], room: str, other: str) -> bool:
    """True if `room` imports another room that imports `other`, itself or by further rooms."""

    def reached(start: str) -> set[str]:
        return set().union(*({each} | reached(each) for each in graph.get(start, set()) if FLOORS[each] < FLOORS[start]))

    return any(other in reached(via) for via in graph[room] - {other})


def _arrow(ax: Axes, room: str, other: str, colour: str) -> None:
    x, to = PLACES[room], PLACES[other]
    slide = max(-0.35 * WIDTH, min(0.35 * WIDTH, 0.4 * (to - x)))  # arrows of one room begin and end apart
    start, end = (x + slide, FLOORS[room] - HEIGHT / 2), (to - slide, FLOORS[other] + HEIGHT / 2)
    if FLOORS[other] >= FLOORS[room]:
        start, end, colour = (x, FLOORS[room]), (to, FLOORS[other]), AGAINST_THE_RULE
    look = {"arrowstyle": "-|>", "mutation_scale": 12, "linewidth": 1.4, "color": colour, "zorder": 2}
    ax.add_patch(FancyArrowPatch(start, end, shrinkA=0, shrinkB=0, **look))


def main() -> None:
    figure, ax = plt.subplots(figsize=(8.0, 8.6), layout="constrained")
    draw(ax)
    file = Path(__file__).with_name("layers.png")
    figure.savefig(file, dpi=130, metadata={"Software": None})
    print(file)


if __name__ == "__main__":
    main()
