"""`mpi-compress report [JOB…]`"""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from mpi_compress.cli.parsing import overrides_of, set_in_name
from mpi_compress.core.ending import EXIT_FAILED
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.signals import EXIT_STOPPED, Interrupted
from mpi_compress.core.terminal import say
from mpi_compress.evidence.outcomes import job_files, loaded, only_words, outcomes
from mpi_compress.job.loading import Job
from mpi_compress.planning import estimates, pool
from mpi_compress.report import render, text


def act(options: Namespace) -> int:
    if options.get and not options.run:
        raise UserError("--get: fetches sets for runs; --run is needed, too")
    files, title = job_files(options.jobs), options.title
    words = [f"--set={value}" for value in options.set]
    words += [f"--out={options.out}"] * (options.out != Path("results"))
    found_in = partial(outcomes, out=options.out, full=options.full, overrides=overrides_of(options), only=options.only)
    labels: Mapping[Path, Sequence[str]] = dict.fromkeys(files, ())
    if options.only is not None:  # those that have such a run
        labels = {each.file: each.only for each in found_in(files)}
    try:
        failed = _run(labels, options, words) if options.run else []
    except Interrupted as interrupted:
        print_line(f"stopped by {interrupted}; what was under way is saved, and the same command goes on")
        print_line("`mpi-compress report` without --run draws what is done")
        return EXIT_STOPPED
    found = found_in([*labels])
    on = "".join(dict.fromkeys(o.job.on for o in found if o.job))
    page = options.page or Path(f"report{on}{set_in_name(options)}.html")
    render.write(found, page, title, words)
    if options.table:
        text.write_table(found, options.table, title)
    say(*text.summary(found), str(page))
    for file in failed:
        say(f"{file}: failed, or a run of it diverged; `mpi-compress plan {file}` says why")
    return EXIT_FAILED if failed else 0


def _run(labels: Mapping[Path, Sequence[str]], options: Namespace, words: Sequence[str]) -> list[Path]:
    """Run what is not done of these jobs, of each its labels, () for all, with further `words`; those that failed, or a run of
    which diverged."""
    files = [*labels]
    if options.full:
        for line in estimates.text([*estimates.estimates(files, options.out, True)]):
            print_line(line)
    if options.get:
        pool.get_missing(files, print_line)

    def load(file: Path, full: bool) -> Job:
        return loaded(file, full, overrides_of(options), labels[file] or None)

    def words_of(file: Path) -> list[str]:
        return [*only_words(labels[file]), *words]

    status = pool.run_jobs(files, options.out, options.full, options.at_once, print_line, load, words_of)
    return [file for file, ended in status.items() if ended not in (0, 2)]
