"""`mpi-compress table JOB|RESULT.h5… --to COLUMN=LEVEL`"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_compress.cli.results_of import add_what, found, warn_of_mixtures
from mpi_compress.core.errors import UserError

if TYPE_CHECKING:
    from mpi_compress.evidence.comparison import Comparison
    from mpi_compress.results.reader import Run


def add_arguments(parser: ArgumentParser) -> None:
    add_what(parser)
    to = "a level to reach, such as loss=0.4, suboptimality=1e-3 or test_accuracy>=0.9; may be given several times"
    parser.add_argument("--to", action="append", default=[], metavar="COLUMN=LEVEL", help=to)
    by = "what it took: wire_bits_up, cost_up, paper_bits_up, seconds, model_seconds, round, or another (default: wire_bits_up)"
    parser.add_argument("--by", default="wire_bits_up", metavar="COLUMN", help=by)
    parser.add_argument("-o", dest="table", metavar="TABLE", help="write it to a .md, a .tex (with booktabs) or a .csv")


def act(options: Namespace) -> int:
    from mpi_compress.core.tables import WRITERS, plain
    from mpi_compress.evidence import comparison
    from mpi_compress.evidence.crossings import statements
    from mpi_compress.results.targets import target_of

    targets = [target_of(text) for text in options.to]
    if options.table and not targets:
        raise UserError(f"-o {options.table}: --to is needed too, such as --to loss=0.4")
    if options.table and Path(options.table).suffix not in WRITERS:
        raise UserError(f"-o {options.table}: a table is written as one of {', '.join(WRITERS)}")
    runs = found(options)
    warn_of_mixtures(runs)
    if not targets:
        print(*plain(comparison.ENDINGS, comparison.endings(runs)), sep="\n")
        print("--to COLUMN=LEVEL compares what each method needed, such as", _example(runs))
        return 0
    table = comparison.compare(runs, targets, options.by)
    print(f"{table.caption}:")
    print(*plain(table.heads, table.cells), sep="\n")
    for line in statements(runs, targets[0]):
        print(line)
    if options.table:
        _write(table, Path(options.table))
    return 0


def _example(runs: "list[Run]") -> str:
    """A level that about half of the runs reach."""
    last = sorted(float(run.trace["loss"][-1]) for run in runs if len(run.trace.get("loss", ())) and run.status != "diverged")
    return f"--to loss={last[len(last) // 2]:.3g}" if last else "--to loss=0.4"


def _write(table: "Comparison", file: Path) -> None:
    from mpi_compress.cli.parsing import ask_for_folder, text_file
    from mpi_compress.core.tables import WRITERS

    ask_for_folder(file)
    heads, rows = table.numbers if file.suffix == ".csv" else (table.heads, table.cells)
    text_file(file, WRITERS[file.suffix](heads, rows, table.caption))
    print(file)
