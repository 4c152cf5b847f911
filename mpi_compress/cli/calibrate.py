"""`mpi-compress calibrate`"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mpi_compress.core.errors import UserError


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-o", dest="table", default="link.toml", metavar="LINK.toml", help="where to write (default: link.toml)")
    parser.add_argument("--repeats", type=int, default=30, metavar="N", help="trips there and back for each size (default: 30)")
    parser.add_argument("--largest", default="8 MB", metavar="SIZE", help="the largest message (default: 8 MB)")


def act(options: Namespace) -> int:
    from mpi_compress.core.expressions import bits
    from mpi_compress.exchange.ranks import launched
    from mpi_compress.planning.links import calibrate

    ranks = launched()
    try:
        largest = bits(options.largest)
    except ValueError as error:
        raise UserError(f"--largest: {error}") from None
    if options.repeats < 3 or largest < 8000:
        raise UserError("--repeats must be at least 3 and --largest at least 1 kB")
    found = calibrate(ranks, Path(options.table), options.repeats, largest)
    for line in found if ranks.is_root else []:
        print(line)
    return 0
