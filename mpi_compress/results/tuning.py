"""What [tune] found, as results keep it."""

from collections.abc import Mapping
from typing import Any

from mpi_compress.core.expressions import evaluate, names_in

AT_END = "the end of the grid"


def at_end(tuned: Mapping[str, Any]) -> bool:
    """True if the value that won is the least or the largest of three or more; False where they are no numbers of one unit.

    Args:
        tuned: what `reader.Run.tuned` gives.
    """
    values = [value for value, _ in tuned["tried"]]
    try:
        units = {frozenset(names_in(value)) for value in values}
        sizes = [evaluate(value, dict.fromkeys(names_in(value), 1.0)) for value in values]
    except (ValueError, TypeError):
        return False
    own = sizes[values.index(tuned["value"])]
    return len(units) == 1 and len(set(sizes)) > 2 and own in (min(sizes), max(sizes))
