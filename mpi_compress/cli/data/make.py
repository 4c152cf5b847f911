"""`mpi-compress data make GENERATOR`"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_compress.cli.parsing import key_values

if TYPE_CHECKING:
    from mpi_compress.problem.datasets import Generator


def add_arguments(parser: ArgumentParser) -> None:
    from mpi_compress.problem.datasets import generators

    parser.add_argument("generator", metavar="GENERATOR", help="one of: " + ", ".join(generators))
    parser.add_argument("parameters", nargs="*", metavar="KEY=VALUE", help="its parameters, such as samples=1000")
    parser.add_argument("-o", dest="file", metavar="FILE", help="LIBSVM text; .gz, .bz2 and .xz are compressed")


def act(options: Namespace) -> int:
    from mpi_compress.problem.datasets.store import open_data
    from mpi_compress.problem.datasets.table import DataTable

    table = DataTable(generator=options.generator, parameters=key_values(options.parameters))
    generator = table.build_generator()
    if options.file is None:
        data = open_data(table, Path(), "contiguous", 0, generator.real_labels)
        print(f"{data.file}: {data.n_samples} samples, d = {data.dim}, {data.nonzeros} nonzeros")
    else:
        print(f"{options.file}: {_write(Path(options.file), generator)} samples")
    return 0


def _write(target: Path, generator: "Generator") -> int:
    """Write a generated set as LIBSVM text; how many samples it has."""
    from mpi_compress.problem.datasets import libsvm
    from mpi_compress.problem.datasets.cache import replace

    rows = 0

    def fill(part: Path) -> None:
        nonlocal rows
        with libsvm.open_text(part, "wb", target.suffix) as out:
            for samples, labels in generator.chunks():
                libsvm.write(out, samples, labels)
                rows += labels.size

    replace(target, fill)
    return rows
