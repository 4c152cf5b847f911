"""Every job's own figure, as pictures in a page of Markdown."""

from collections.abc import Sequence
from pathlib import Path

from mpi_compress.errors import UserError
from mpi_compress.page.outcomes import Outcome

_HEAD = "# Gallery\n\nEach figure as its job draws it, by `mpi-compress plot JOB`; written by `mpi-compress report --gallery`.\n"


def write_gallery(found: Sequence[Outcome], target: Path) -> None:
    """Write a page, and the pictures into a folder of its name beside it; jobs without results are left out.

    Raises:
        UserError: it cannot be written.
    """
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    from mpi_compress import figures

    lines, paper = [_HEAD], ""
    for o in (o for o in found if o.job and o.runs):
        assert o.job is not None
        picture = target.with_suffix("") / f"{o.key.replace('/', '-')}.png"
        try:
            figures.save(figures.draw(o.runs, o.job.titled_figure), picture, dpi=110)
        except UserError as error:
            lines.append(f"{o.key}: {error}\n")
            continue
        finally:
            plt.close("all")
        if (o.paper or "Further").split()[0] != paper:
            paper = (o.paper or "Further").split()[0]
            lines.append(f"## {paper}\n")
        lines.append(f"### {o.key}\n\n{o.title}: {o.paper or 'ours'}; {o.data}.\n")
        lines.append(f"![{o.title}]({target.stem}/{picture.name})\n")
    try:
        target.write_text("\n".join(lines), encoding="utf-8")
    except OSError as error:
        raise UserError(f"--gallery {target}: cannot be written: {error.strerror}") from None
