"""CAT's table 1 as a picture: its bounds on rounds beside the rounds that a run needed."""


import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from mpi_compress.core.errors import UserError
from mpi_compress.figures.style import COLUMN, STYLE
from mpi_compress.results import bounds
from mpi_compress.results.reader import Run

_LINE = 0.16  # inches


def draw_bounds(run: Run) -> Figure:
    """The rows of `mpi-compress show`, a run's iteration complexity (CAT table 1).

    Raises:
        UserError: the run has no theory, or no lemma of CAT covers it, or it reached no accuracy.
    """
    table = bounds.Table.of(run) if run.theory else None
    cells = [] if table is None else table.cells()
    if not cells:
        raise UserError(f"{run.file}: has no bounds of CAT's table 1; a run of cat or gd with log.theory = true has them")
    assert table is not None
    with mpl.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(2 * COLUMN, _LINE * (len(cells) + 4)))
        ax.axis("off")
        ax.set_title(f"{run.label}: rounds to an accuracy ε; least improvement {table.gain:.3g}, at worst {table.worst_gain:.3g}")
        drawn = ax.table(cells, colLabels=bounds.HEADS, loc="center", cellLoc="right", edges="horizontal")
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(mpl.rcParams["font.size"])
    return figure
