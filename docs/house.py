"""Draws docs/house.png: the rooms on their floors, and an arrow for each room that another one imports, from the package's source.

    python docs/house.py
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
    "report": "the page of all jobs",
    "cluster": "SLURM, reproduce, calibrate",
    "figures": "axes, curves, verdicts",
    "engine": "preparing, rounds, evaluation, checkpoints",
    "engine.fast": "all workers of a process together",
    "job": "a job file, its runs and claims",
    "algorithms": "one paper, one file",
    "problem": "losses, data sets, objective, optimum",
    "exchange": "one process, or MPI",
    "results": "columns, writer, reader",
    "messages": "kinds, compressors, codecs, costs, links",
    "kernels": "Numba functions on arrays",
    "core": "errors, registry, streams, signals",
}
PLACES = {
    "cli": 0, "report": 0.75, "cluster": -0.75, "figures": 1.3, "engine": -1.0, "engine.fast": 0.3, "job": 1.3, "algorithms": 0,
    "problem": -0.6, "exchange": -1.3, "results": 1.3, "messages": -0.3, "kernels": -1.0, "core": 1.0,
}  # fmt: skip
"""Where a room's middle is along its floor."""
WIDTH, HEIGHT = 0.98, 0.52
COLOURS = ("#1b6ca8", "#d1495b", "#4c956c", "#8d6a9f", "#c77d0a", "#3a7d7c", "#7a6c5d")


def draw(ax: Axes) -> None:
    graph = rooms(modules())
    for number, room in enumerate(sorted(graph, key=lambda room: FLOORS[room])):
        for other in shown(graph, room):
            _arrow(ax, room, other, COLOURS[number % len(COLOURS)])
    for room, floor in FLOORS.items():
        x = PLACES[room]
        ax.add_patch(
            FancyBboxPatch(
                (x - WIDTH / 2, floor - HEIGHT / 2), WIDTH, HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.06", facecolor="#f6f3ec", edgecolor="#444444", zorder=3,
            )
        )  # fmt: skip
        ax.text(x, floor + 0.09, room.replace(".", "/") + "/", ha="center", va="center", fontsize=9, weight="bold", zorder=4)
        ax.text(x, floor - 0.13, HOLDS[room], ha="center", va="center", fontsize=5.6, color="#333333", zorder=4)
    ax.set(xlim=(-1.9, 1.9), ylim=(0.6, 10.4))
    ax.axis("off")


def shown(graph: dict[str, set[str]], room: str) -> list[str]:
    """The rooms that a room imports, without those that it reaches by another of them too: arrows that say nothing new."""

    def reached(start: str) -> set[str]:
        return set().union(*({other} | reached(other) for other in graph.get(start, set()) if FLOORS[other] < FLOORS[start]))

    return sorted(other for other in graph[room] if not any(other in reached(via) for via in graph[room] - {other}))


def _arrow(ax: Axes, room: str, other: str, colour: str) -> None:
    start = (PLACES[room], FLOORS[room] - HEIGHT / 2)
    end = (PLACES[other], FLOORS[other] + HEIGHT / 2)
    if FLOORS[other] >= FLOORS[room]:  # against the rule: seen at once
        start, end, colour = (PLACES[room], FLOORS[room]), (PLACES[other], FLOORS[other]), "red"
    ax.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, linewidth=1.1, color=colour, shrinkA=0, shrinkB=0, zorder=2)
    )


def main() -> None:
    figure, ax = plt.subplots(figsize=(7.4, 8.6), layout="constrained")
    draw(ax)
    file = Path(__file__).with_name("house.png")
    figure.savefig(file, dpi=130, metadata={"Software": None})
    print(file)


if __name__ == "__main__":
    main()
