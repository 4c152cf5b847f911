"""`mpi-compress data list`"""

from argparse import ArgumentParser, Namespace

from mpi_compress.core.errors import UserError


def add_arguments(parser: ArgumentParser) -> None:
    """None."""


def act(options: Namespace) -> int:
    from mpi_compress.problem.datasets import KNOWN, generators
    from mpi_compress.problem.datasets.known import how_to_get
    from mpi_compress.problem.datasets.table import find_set

    for name, known in KNOWN.items():
        try:
            where = str(find_set(name, "data"))
        except UserError:
            where = how_to_get(name) or "not here"
        size = f"{known.samples:,}" if known.samples else "part of a set"
        print(f"{name:22s} {size:>13s} × {known.dim:<11,} {where}")
    for name, generator in generators.items():
        size = "by its parameters"
        if (given := generator().size()) is not None:
            size = f"{given[0]:>13,} × {given[1]:<11,}"
        print(f"{name:22s} {size} generated")
    return 0
