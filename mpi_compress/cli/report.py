"""`mpi-compress report [JOB…]`"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from mpi_compress.cli.parsing import add_choice, overrides_of
from mpi_compress.core.shipped import named


def add_arguments(parser: ArgumentParser) -> None:
    add_page(parser)
    add_choice(parser)


def add_page(parser: ArgumentParser) -> None:
    """The jobs, and the page about them, without what `reproduce` does not take."""
    parser.add_argument("jobs", nargs="*", type=named, metavar="JOB|FOLDER", help="job files, or folders of such (default: ./jobs)")
    name, default = "PAGE.html", "report.html"
    parser.add_argument("-o", dest="page", type=_page, default=default, metavar=name, help=f"the page (default: {default})")
    parser.add_argument("--title", help="of the page (default: the job's own; of jobs of the papers: The papers, reproduced)")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where the jobs' results are (default: results)")
    parser.add_argument("--table", metavar="FILE.md", help="also a table of figures, data and status, as Markdown")
    parser.add_argument("--gallery", metavar="FILE.md", help="also all figures as pictures, in a page of Markdown")
    parser.add_argument("--full", action="store_true", help="at full size, where a job has a table [full]")


def act(options: Namespace) -> int:
    from mpi_compress import report
    from mpi_compress.cli.parsing import ask_for_folder

    ask_for_folder(Path(options.page))
    found = report.outcomes(report.job_files(options.jobs), Path(options.out), options.full, overrides_of(options), options.only)
    report.write(found, Path(options.page), options.title or None)
    if options.table:
        report.write_table(found, Path(options.table))
    if options.gallery:
        report.write_gallery(found, Path(options.gallery))
    for line in report.summary(found):
        print(line)
    print(options.page)
    return 0


def _page(text: str) -> str:
    """The name of a page."""
    if Path(text).suffix not in (".html", ".htm"):
        raise ArgumentTypeError(f"{text} was given; a report is a page, .html, which browsers print to PDF")
    return text
