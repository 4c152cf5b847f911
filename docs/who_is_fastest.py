"""The table of docs/time.md, of the results of jobs/time/who-is-fastest.toml: python docs/who_is_fastest.py RESULTS.

Each cell has the method that needs the least seconds of the model in the median over seeds, beside rounds of all workers; and the
picture docs/time.png, whose colours are methods.
"""

import sys
from pathlib import Path
from statistics import median

import matplotlib.pyplot as plt

import mpi_compress as mc

SPEEDS, LINKS = ["equal", "√i", "i", "lognormal"], ["fast", "slow"]
RULES, SENT = ["all", "8 of 16", "Rennala", "Ringmaster"], ["whole", "random 25 %"]
COLOURS = dict(zip(RULES, ("#4c78a8", "#72b7b2", "#f2cf5b", "#e45756"), strict=True))


def seconds(runs: list[mc.Run]) -> float:
    """The median over seeds of the seconds to f ≤ 0.4; infinite where most do not come there."""
    reached = [(run.trace["model_seconds"][run.trace["loss"] <= 0.4]) for run in runs]
    return median(float(each[0]) if each.size else float("inf") for each in reached)


def table(folder: Path) -> dict[tuple[str, str], dict[tuple[str, str], float]]:
    """The seconds of each method in each cell."""
    found: dict[str, list[mc.Run]] = {}
    for file in folder.rglob("*.h5"):
        if "tuning" not in file.parts:
            run = mc.read(file)
            found.setdefault(str(run.attrs["label"]).split(", seed")[0], []).append(run)
    return {
        (speed, link): {(r, w): seconds(found[f"{r}, {w}, {speed}, {link}"]) for r in RULES for w in SENT}
        for speed in SPEEDS
        for link in LINKS
    }


def draw(cells: dict[tuple[str, str], dict[tuple[str, str], float]], file: Path) -> None:
    fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for (speed, link), of in cells.items():
        x, y, best = LINKS.index(link), SPEEDS.index(speed), min(of, key=lambda each: of[each])
        ax.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, color=COLOURS[best[0]], alpha=0.8))
        text = f"{best[0]}{', random 25 %' if best[1] != 'whole' else ''}\n{of[best]:.3g} s, all {of['all', 'whole']:.3g} s"
        ax.text(x, y, text, ha="center", va="center", fontsize=9)
    ax.set(xlim=(-0.5, 1.5), ylim=(len(SPEEDS) - 0.5, -0.5), yticks=range(len(SPEEDS)), yticklabels=SPEEDS)
    ax.set_xticks(range(2), ["100 Mbit/s", "100 kbit/s"])
    ax.set_ylabel("time of a gradient")
    fig.savefig(file, dpi=120)


def main() -> None:
    cells = table(Path(sys.argv[1]))
    print("| time of a gradient | link | " + " | ".join(f"{r}{', 25 %' * (w != 'whole')}" for r in RULES for w in SENT) + " |")
    print("| --- | --- |" + " --- |" * (len(RULES) * len(SENT)))
    for (speed, link), of in cells.items():
        least = min(of.values())
        each = [f"**{s:.3g}**" if s == least else f"{s:.3g}" for s in of.values()]
        print(f"| {speed} | {link} | " + " | ".join(each) + " |")
    draw(cells, Path(__file__).with_name("time.png"))


if __name__ == "__main__":
    main()
