"""`mpi-compress calibrate`"""

from argparse import Namespace

from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.expressions import bits
from mpi_compress.exchange.ranks import launched
from mpi_compress.planning.links import calibrate


def act(options: Namespace) -> int:
    ranks, largest = launched(), checked_at("--largest", lambda: bits(options.largest))
    if options.repeats < 3 or largest < 8000:
        raise UserError("--repeats must be at least 3 and --largest at least 1 kB")
    found = calibrate(ranks, options.table, options.repeats, largest)
    for line in found if ranks.is_root else []:
        print(line)
    return 0
