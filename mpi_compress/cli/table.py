"""`mpi-compress table JOB|RESULT|FOLDER… --to COLUMN=LEVEL`"""

import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from mpi_compress.cli.results_of import absent, found, jobs_of, warn_of_mixtures
from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.tables import WRITERS, comma_separated, latex, markdown, shown
from mpi_compress.core.terminal import say
from mpi_compress.evidence.comparison import Comparison, compare
from mpi_compress.evidence.crossings import statements
from mpi_compress.evidence.lines import name_in_paper
from mpi_compress.evidence.method_status import LESS_NEEDED, endings
from mpi_compress.evidence.notes import on_data
from mpi_compress.evidence.problems import differing
from mpi_compress.report.needed import proposed
from mpi_compress.results.reader import rising
from mpi_compress.results.targets import Target, in_signs, typed


def act(options: Namespace) -> int:
    asked = [typed(text) for text in options.to]
    for file in options.table:
        if not asked:
            raise UserError(f"-o {file}: --to is needed too; without -o the table proposes one")
        if file.suffix not in WRITERS:
            raise UserError(f"-o {file}: a table is written as one of {', '.join(WRITERS)}")
    jobs = jobs_of(options)
    runs = found(options, jobs, [column for column, _ in asked])
    warn_of_mixtures(runs)
    beside = [*differing(runs), *absent(jobs, runs)]
    if not asked:
        heads, rows, notes = endings(runs)
        say(*shown(sys.stdout, heads, rows, LESS_NEEDED), *notes, *beside, *on_data(runs, [*map(name_in_paper, runs)]))
        such = " ".join(proposed(runs, next(iter(jobs.values()), None)))
        say(f"--to COLUMN=LEVEL compares what each method needed{such and f', such as {such}'}")
        return 0
    targets = [Target.of(column, level, rising(runs)) for column, level in asked]
    table = compare(runs, targets, options.by)
    table = replace(table, shared=[*table.shared, *beside])
    say(f"{table.caption}:", *shown(sys.stdout, table.heads, table.cells), *table.notes)
    if options.by == "model_seconds":
        say(*(line for target in targets for line in statements(runs, target)))
    for file in options.table:
        _write(table.in_file, file)
    return 0


def _write(table: Comparison, file: Path) -> None:
    texts = len(table.heads) - len(table.targets)
    if file.suffix == ".tex":
        heads, notes = ([*map(in_signs, lines)] for lines in (table.heads, table.notes_of()))
        text = latex(heads, table.cells, table.whole_caption, notes, texts, file.stem)
    elif file.suffix == ".md":
        text = markdown(table.heads, table.cells, table.whole_caption, texts)
        text += "".join(f"\n{note}\n" for note in table.notes_of())
    else:
        text = comma_separated(*table.numbers)
    with writing(file):
        file.write_text(text, encoding="utf-8")
    say(str(file))
