"""What a user's algorithm does in its first rounds: whether verbs change the node that must not, and how states drift."""

import copy
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import UserError
from mpi_compress.core.global_draws import FIRST_ROUNDS, refusing
from mpi_compress.guard.states import drifted
from mpi_compress.saving.frames import dump

_PURE = ("worker_sends", "master_answers", "answers", "worker_hears")
"""Verbs that must not change the node."""
_STARTS = {"start": "node", "start_worker": "worker", "start_master": "master"}


class FirstRounds:
    """Looks at the verbs of one algorithm on one rank, in its first rounds."""

    def __init__(self, name: str, algorithm: Algorithm):
        self._name, self._dim, self._kind = name, algorithm.setting.dim, type(algorithm)
        self._methods = {verb: getattr(algorithm, verb, None) for verb in (*_PURE, "all_hear")}
        self._firsts: dict[str, Any] = {}  # the first states
        self._round, self._held, self._last = -1, b"", ""  # the node as the round began, and the verb that was called last

    def started(self, verb: str, state: Any) -> None:
        """Keep a first state, of the workers that of one."""
        self._firsts.setdefault(_STARTS[verb], copy.deepcopy(state))

    def around(self, verb: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """What a verb returns; UserError if it did what it must not."""
        node, t = arguments[0], arguments[-1]
        if t.k >= FIRST_ROUNDS:
            return method(*arguments)
        if t.k != self._round:
            self._round, self._held, self._last = t.k, _digest(node), ""
        elif verb != self._last:
            self._compare(node)
        self._last = verb
        given = refusing(f"{self._name}, {verb}", method, *arguments)
        if verb in ("master_answers", "answers"):
            self._compare(node)
            self._look(verb, "master", arguments[1])
        elif verb == "worker_sends":
            self._look(verb, "worker", arguments[1])
        elif verb == "all_hear":
            self._look(verb, "node", node)
        return given

    def _compare(self, node: Any) -> None:
        if self._last in _PURE and _digest(node) != self._held:
            what = "changes the node, which all_hear alone may: other workers of this process would see it, and those of others not"
            raise UserError(f"{self._name}, {self._last}: {what}{place_of(self._methods[self._last])}")

    def _look(self, verb: str, whose: str, state: Any) -> None:
        if whose in self._firsts and (complaint := drifted(self._firsts[whose], state, self._dim, self._kind)):
            raise UserError(f"{self._name}, {verb}: the {whose}'s {complaint}{place_of(self._methods[verb])}")


def _digest(node: Any) -> bytes:
    try:
        return blake2b(dump(node).data).digest()
    except TypeError as error:
        raise UserError(f"the node cannot be saved in a checkpoint any more: {error}") from None
