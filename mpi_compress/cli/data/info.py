"""`mpi-compress data info FILE|NAME`"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE|NAME")


def act(options: Namespace) -> int:
    from mpi_compress.problem.datasets.table import find_file

    for line in described(find_file(options.file)):
        print(line)
    return 0


def described(file: Path) -> Iterator[str]:
    """What is in a file of LIBSVM text, which is read in blocks."""
    from mpi_compress.problem.datasets.labels import listed
    from mpi_compress.problem.datasets.table import contents_of, digest

    found = contents_of(file)
    length, norm = found.lengths, found.norms
    yield str(file)
    yield f"  samples    {length.size}"
    yield f"  features   {found.features}, the largest index" + (f" ({found.published})" if found.published else "")
    share = length.mean() / max(1, found.features)
    yield f"  nonzeros   {length.sum()}: {length.min()} to {length.max()} a row, mean {length.mean():.4g}, {share:.3%} of all"
    if found.features:
        low, high = found.range
        yield f"  values     {low:.6g} to {high:.6g}; rows have norms from {norm.min():.6g} to {norm.max():.6g}"
    ordered = sorted(found.labels)
    if len(ordered) <= 20:
        yield "  labels     " + "; ".join(f"{label:g}: {found.labels[label]}" for label in ordered)
    else:
        yield f"  labels     {len(ordered)} of them: {listed(ordered)}"
    yield f"  SHA-256    {digest(file)}"
