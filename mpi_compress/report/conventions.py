"""One run drawn by each way of counting its bits."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpi_compress.evidence.lines import name_of
from mpi_compress.figures.axes import scales
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import column_of, named
from mpi_compress.results.reader import Run

X = "bits_counted"
"""The x of the view: each line has the bits of another column."""

_UDP = "sent, with the headers of UDP on Ethernet"


def counted(run: Run) -> dict[str, str]:
    """The columns in which the bits that a run sent up are counted, and their names; none without [log] count."""
    columns = {name: column_of(name).label for name in named("convention") if name in run.trace}
    if not columns:
        return {}
    columns["wire_bits_up"] = column_of("wire_bits_up").label
    if run.written.get("cost", {}).get("model") == "udp-ethernet":
        columns["cost_up"] = _UDP
    return columns


def one_run(runs: Sequence[Run], figure: FigureTable) -> tuple[Run, dict[str, Any], Mapping[str, Any]] | None:
    """The first run that is counted by a convention, the head of its view, and its columns; None if there is none."""
    for run in runs:
        y = next((name for name in (figure.y.split(",")[0].strip(), "loss") if run.has(name)), "")
        if (columns := counted(run)) and y:
            own = FigureTable(X, y, yscale=figure.yscale if y in figure.y else None)
            xscale, yscale = scales(own)
            title = f"{name_of(run)}, by each way of counting"
            axes: dict[str, Any] = {"x": X, "y": y, "xscale": xscale, "yscale": yscale, "bounds": []}
            axes |= {"xlabel": None, "ylabel": None}
            values = {"round": run.trace["round"].astype(float), y: np.asarray(run.column(y), dtype=float)}
            values |= {name: run.trace[name].astype(float) for name in columns}
            return run, {"kind": "lines", "title": title, **axes}, values
    return None
