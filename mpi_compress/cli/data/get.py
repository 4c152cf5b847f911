"""`mpi-compress data get NAME…`"""

from argparse import ArgumentParser, Namespace

from mpi_compress.core.progress import print_line


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--from", dest="url", metavar="URL", help="another address of the collection (or $MPI_COMPRESS_DATA_URL)")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def act(options: Namespace) -> int:
    from mpi_compress.problem.datasets import fetch

    for name in options.names:
        print(fetch.get(name, options.url, options.quiet, _silent if options.quiet else print_line))
    return 0


def _silent(_: str) -> None:
    pass
