"""Where two results first differ."""

from collections.abc import Iterator

from mpi_compress.results.reader import Run

BIT_FOR_BIT = "equal, bit for bit"


def difference(one: Run, other: Run) -> Iterator[str]:
    """Lines that say where two results first differ, compared bit for bit; /timing is left out."""
    parted: list[tuple[int, str]] = []
    alone = 0
    for table in ("trace", "workers", "theory"):  # /timing is measured, and never compared
        a, b = getattr(one, table), getattr(other, table)
        for column in sorted(set(a) | set(b)):
            if column not in a or column not in b:
                yield f"/{table}/{column} is in {(one if column in a else other).file} only"
                alone += 1
                continue
            n = min(len(a[column]), len(b[column]))
            row = next((i for i in range(n) if a[column][i].tobytes() != b[column][i].tobytes()), None)
            if row is not None:
                parted.append((row, f"/{table}/{column}: {a[column][row]} against {b[column][row]}"))
    rows = [one.rows, other.rows]
    if parted:
        first = min(row for row, _ in parted)
        yield f"they part in row {first} (round {one.trace['round'][first]}):"
        yield from (f"  {text}" for row, text in parted if row == first)
    elif rows[0] != rows[1]:
        yield f"equal in all rows that both have; {rows[0]} rows against {rows[1]}"
    elif len({None if run.x is None else run.x.tobytes() for run in (one, other)}) > 1:
        yield "all rows are equal, the last points are not"
    else:
        yield f"{BIT_FOR_BIT}: {rows[0]} rows{' of the columns that both have' if alone else ''}"
