"""A figure of results that grow, drawn again and again: into a file, or in a window."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_compress.core.errors import UserError
from mpi_compress.figures.plotting import FORMATS, draw, save
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.reader import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Redrawn:
    """Draws a figure of runs whenever they have changed.

    Args:
        place: the file to draw into, or a window of Matplotlib.

    Raises:
        UserError: the file is of no known format.
    """

    def __init__(self, figure: FigureTable, place: "Path | Figure"):
        self._figure, self._place = figure, place
        if isinstance(place, Path):
            import matplotlib as mpl

            if place.suffix not in FORMATS:
                raise UserError(f"-o {place}: a figure is written as one of {', '.join(FORMATS)}")
            mpl.use("agg")

    @property
    def has_window(self) -> bool:
        """True if there is a window, and nobody has closed it."""
        import matplotlib.pyplot as plt

        return not isinstance(self._place, Path) and plt.fignum_exists(self._place.number)

    def draw(self, runs: Sequence[Run]) -> str:
        """Draw runs that have rows. Why that was not possible yet, such as on an axis that shows no value so far; "" if it was.

        Raises:
            UserError: the file cannot be written.
        """
        import matplotlib.pyplot as plt

        if not runs:
            return "no run has a row yet"
        try:
            drawn = draw(runs, self._figure)
        except UserError as error:
            return str(error)
        try:
            if isinstance(self._place, Path):
                _replace(drawn, self._place)
            else:
                _show(drawn, self._place)
        finally:
            plt.close(drawn)
        return ""

    def answer(self, seconds: float) -> None:
        """Let the window take clicks and keys for a time."""
        if not isinstance(self._place, Path):
            self._place.canvas.start_event_loop(seconds)


def window() -> "Figure | None":
    """A window on the screen; None where Matplotlib can open none."""
    import matplotlib.pyplot as plt
    from matplotlib.backends import BackendFilter, backend_registry

    if plt.get_backend().lower() not in backend_registry.list_builtin(BackendFilter.INTERACTIVE):
        return None
    shown = plt.figure("mpi-compress watch")
    plt.show(block=False)
    return shown


def _replace(drawn: "Figure", file: Path) -> None:
    """Write the file anew in one step, so that a viewer never sees half of it."""
    beside = file.with_name(f".{file.name}")
    try:
        save(drawn, beside)
        os.replace(beside, file)
    except OSError as error:
        raise UserError(f"-o {file}: cannot be written: {error.strerror}") from None
    except UserError as error:
        raise UserError(str(error).replace(str(beside), str(file))) from None
    finally:
        beside.unlink(missing_ok=True)


def _show(drawn: "Figure", shown: "Figure") -> None:
    """Put a figure as a picture into the window, in the place of the one before."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn.set_dpi(2 * shown.dpi)
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    shown.clear()
    axes = shown.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.imshow(np.asarray(canvas.buffer_rgba()))
    shown.canvas.draw_idle()
