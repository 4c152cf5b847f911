"""A run's method from its tables, with the links of its messages."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mpi_compress.algorithms import Algorithm, Estimator, Method, algorithms
from mpi_compress.algorithms.product import heard_by, known_as, other_parts
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.job.dotted import refuse_unknown
from mpi_compress.job.tables import LinkTable, Tables
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.from_tables import parts_of

_EXACT: dict[str, Any] = {"compressor": "identity", "codec": {"name": "auto", "search": "quick"}}


def method_of(table: Tables, down: Tables) -> Method:
    """The algorithm of [algorithm], with the downlink that [down] names by `by`; UserError for one without a step."""
    algorithm, by = algorithms.build(table, "algorithm"), down.get("by")
    if not isinstance(algorithm, Estimator):
        if by is not None:
            raise UserError(f"down.by: {algorithm.name} is no method of three parts, whose downlink a job may choose: leave by out")
        return algorithm
    if by is not None:
        algorithm = checked_at("down", heard_by, algorithm, by)
    is_given = "step" in table or (by is None and "server" not in table and _states_step(type(algorithm)))
    if (others := other_parts(algorithm)) and not is_given:
        name, method = known_as(algorithm), f"{algorithm.name} with {others}"
        why = f'{method} has a name of its own: name = "{name}"' if name else f"no theorem is known for {method}"
        raise UserError(f"algorithm: step = … is needed: {why}")
    return algorithm


def _states_step(cls: type) -> bool:
    """True if the class that states the server, or one that is derived from it, states the step."""
    stated = [vars(each).get("__annotations__", {}) for each in cls.__mro__]
    server = next(i for i, names in enumerate(stated) if "server" in names)
    return any("step" in names for names in stated[: server + 1])


def _link(table: dict[str, Any], where: str) -> LinkTable:
    refuse_unknown(table, ("compressor", "codec"), where)
    return LinkTable(*parts_of(table.get("compressor", "identity"), table.get("codec"), where))


def uplink_of(table: dict[str, Any], algorithm: Method) -> LinkTable:
    """[up], or the uplink of an algorithm if a job names none."""
    if not compressors.knows(algorithm.compressor):
        raise UserError(f"up: the compressor of {algorithm.name}: {compressors.lacks(algorithm.compressor)}")
    if not table:
        try:
            return _link(algorithm.links.get("up") or {"compressor": algorithm.compressor}, "up")
        except UserError:
            such = f'[up] with compressor = {{ name = "{algorithm.compressor}", k = "1%" }}'
            raise UserError(f"up: {algorithm.name} needs a compressor with its parameters, such as {such}") from None
    budget = table.pop("budget", None)
    if budget is None:
        return _link(table, "up")
    if budget != "cat":
        raise UserError(f'up.budget: {budget!r} was given; it should be "cat", which tunes each message, or left out')
    if algorithm.sets_compressor or not isinstance(algorithm, Algorithm):
        raise UserError(f"up.budget: {algorithm.name} sets what is sent itself: leave budget out of [up]")
    return replace(_link(table, "up"), budget=budget)


def downlink_of(table: dict[str, Any], algorithm: Method) -> LinkTable:
    """[down], or the downlink of an algorithm if a job names none; with floats alone it is the exact one in these floats."""
    exact = "compressor" not in table
    if table.pop("by", None) is not None:
        assert isinstance(algorithm, Estimator)
        table.setdefault("compressor", algorithm.by.compressor)
    table, codec = table or algorithm.links.get("down") or _EXACT, table.get("codec")
    if exact and table.get("compressor", "identity") == "identity" and isinstance(codec, Mapping) and "name" not in codec:
        table = {**table, "codec": {**_EXACT["codec"], **codec}}
    return _link(table, "down")
