"""A figure of results that grow, drawn into a file again and again."""

import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt

from mpi_compress.core.errors import UserError
from mpi_compress.figures.plotting import draw, save
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.reader import Run


def redraw(runs: Sequence[Run], figure: FigureTable, file: Path) -> str:
    """Draw runs that have rows. Why that is not possible yet, such as on an axis that shows no value so far; "" if it is.

    Raises:
        UserError: the file cannot be written.
    """
    if not runs:
        return "no run has a row yet"
    try:
        drawn = draw(runs, figure)
    except UserError as error:
        return str(error)
    beside = file.with_name(f".{file.name}")  # replaces the file in one step, so that a viewer never sees half of it
    try:
        save(drawn, beside)
        os.replace(beside, file)
    except OSError as error:
        raise UserError(f"-o {file}: cannot be written: {error.strerror}") from None
    except UserError as error:
        raise UserError(str(error).replace(str(beside), str(file))) from None
    finally:
        beside.unlink(missing_ok=True)
        plt.close(drawn)
    return ""
