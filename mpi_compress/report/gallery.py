"""Every job's own figure, as pictures in a page of Markdown."""

from collections.abc import Sequence
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.figures.outcomes import Outcome
from mpi_compress.report.render import PAPERS, group_of

_HEAD = "# Gallery\n\nEach figure as its job draws it, by `mpi-compress plot JOB`; written by `mpi-compress report --gallery`.\n"


def write_gallery(found: Sequence[Outcome], target: Path) -> None:
    """Write a page, and the pictures into a folder of its name beside it; jobs without results are left out.

    Raises:
        UserError: it cannot be written.
    """
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    from mpi_compress.figures import plotting as figures

    lines = [_HEAD]
    for group in (*PAPERS, ""):
        members = [o for o in found if o.runs and group_of(o) == group]
        lines += [f"## {group or 'Further'}\n"] if members else []
        for o in members:
            assert o.job is not None
            lines.append(f"### {o.key}\n\n{o.title}: {o.paper or 'ours'}; {o.data}.\n")
            picture = Path(target.stem) / f"{o.key}.png"
            try:
                drawn = figures.draw(o.runs, o.job.titled_figure)
            except UserError as error:
                lines.append(f"{error}\n")
                continue
            figures.save(drawn, target.parent / picture, dpi=110)
            plt.close("all")
            lines.append(f"![{o.title}]({picture.as_posix()})\n")
    try:
        target.write_text("\n".join(lines), encoding="utf-8")
    except OSError as error:
        raise UserError(f"--gallery {target}: cannot be written: {error.strerror}") from None
