"""Watches the verbs of a user's algorithm: what they give, and in its first rounds what they do to the node and to states."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import Method
from mpi_compress.core.arrays import shown
from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import CorruptMessage, UserError
from mpi_compress.core.global_draws import FIRST_ROUNDS, refusing
from mpi_compress.core.registry import is_ours
from mpi_compress.guard.states import drifted, unsavable
from mpi_compress.messages.link import Link, Message
from mpi_compress.results.columns import TAKEN
from mpi_compress.saving.frames import dump

_PURE = ("worker_sends", "master_answers", "answers", "worker_hears")
"""Verbs that must not change the node."""
_STARTS = {"start": "node", "start_worker": "worker", "start_master": "master"}
_CHANGES = {"worker_sends": "worker", "master_answers": "master", "answers": "master", "all_hear": "node"}
"""The state that a verb may change."""


def watched(method: Method) -> Any:
    """A user's algorithm whose verbs raise UserError if they do what they must not; any other method as it is."""
    if is_ours(method) or method.shares_memory:
        return method
    looks: dict[str, Callable[..., str]] = {
        "start": lambda given, x0: unsavable(given),
        "start_worker": unsavable,
        "start_master": unsavable,
        "worker_sends": partial(_message, method.uplink, "up"),
        "master_answers": partial(_message, method.downlink, "down"),
        "all_hear": lambda *_: "",
        "worker_logs": partial(_numbers, method.log.columns),
    }
    if method.answers_each:
        looks["answers"] = partial(_answers, method.setting.n)
    if type(method).worker_hears is not Method.worker_hears:
        looks["worker_hears"] = lambda *_: ""
    watch = _Watch(method)
    verbs = {verb: partial(watch.call, verb, look) for verb, look in looks.items()}
    return method.bound_to(log=replace(method.log, of_worker=verbs.pop("worker_logs")), **verbs)


class _Watch:
    """The verbs of one algorithm on one rank."""

    def __init__(self, algorithm: Method):
        self._algorithm, self._name = algorithm, getattr(algorithm, "name", type(algorithm).__name__)
        self._firsts: dict[str, Any] = {}  # the first states, of the workers that of one
        self._round, self._held, self._last = -1, b"", ""  # the node as the round began, and the verb that was called last

    def call(self, verb: str, look: Callable[..., str], *arguments: Any) -> Any:
        """What a verb returns; UserError if it is not what it should be, or the verb did what it must not."""
        method = self._verb(verb)
        in_first_rounds = verb not in _STARTS and verb != "worker_logs" and arguments[-1].k < FIRST_ROUNDS
        given = self._in_round(verb, method, *arguments) if in_first_rounds else method(*arguments)
        if complaint := look(given, *arguments):
            raise self._refusal(verb, complaint)
        if verb in _STARTS:
            self._firsts.setdefault(_STARTS[verb], copy.deepcopy(given))
        return given

    def _verb(self, verb: str) -> Callable[..., Any]:
        return self._algorithm.log.of_worker if verb == "worker_logs" else getattr(self._algorithm, verb)

    def _in_round(self, verb: str, method: Callable[..., Any], *arguments: Any) -> Any:
        node, t = arguments[0], arguments[-1]
        if t.k != self._round:
            self._round, self._held, self._last = t.k, _digest(node), ""
        elif verb != self._last:
            self._compare(node)
        self._last = verb
        given = refusing(f"{self._name}, {verb}", method, *arguments)
        if whose := _CHANGES.get(verb):
            if whose == "master":
                self._compare(node)
            first, state, dim = self._firsts.get(whose), arguments[0 if whose == "node" else 1], self._algorithm.setting.dim
            if whose in self._firsts and (complaint := drifted(first, state, dim, type(self._algorithm))):
                raise self._refusal(verb, f"the {whose}'s {complaint}")
        return given

    def _compare(self, node: Any) -> None:
        if self._last in _PURE and _digest(node) != self._held:
            what = "changes the node, which all_hear alone may: other workers of this process would see it, and those of others not"
            raise self._refusal(self._last, what)

    def _refusal(self, verb: str, complaint: str) -> UserError:
        return UserError(f"{self._name}, {verb}: {complaint}{place_of(self._verb(verb))}")


def _digest(node: Any) -> bytes:
    try:
        return blake2b(dump(node).data).digest()
    except TypeError as error:
        raise UserError(f"the node cannot be saved in a checkpoint any more: {error}") from None


def _message(link_of: Callable[..., Link], way: str, given: Any, node: Any, *others: Any) -> str:
    if not isinstance(given, Message):
        return f"{shown(given)} was given; it should be a message: return self.{way}.pack(…, t)"
    t = others[-1]
    if t.k < FIRST_ROUNDS and not given.is_refused:
        try:
            link_of(node, t.k).unpack(Message(given.data))
        except CorruptMessage as error:
            return f"its receivers cannot read what was sent ({error}): pack it by self.{way}, or as {way}link(node, k) says"
    return ""


def _answers(n: int, given: Any, *_: Any) -> str:
    right = isinstance(given, list | tuple) and len(given) == n and all(isinstance(each, Message) for each in given)
    return "" if right else f"{shown(given)} was given; it should be a list of {n} messages, one to each worker in worker order"


def _numbers(logs: Sequence[str], given: Any, *_: Any) -> str:
    right = np.shape(given) == (len(logs),) and all(np.isscalar(v) and np.isreal(v) for v in given)
    return "" if right else f"{shown(given)} was given; it should be a number for each of {', '.join(logs)}"


def check_logs(algorithm: Method) -> None:
    """ValueError if the columns that an algorithm adds are no names, or those of other columns."""
    logs = algorithm.log.columns
    if isinstance(logs, str) or not all(isinstance(column, str) and column.isidentifier() for column in logs):
        raise ValueError(f'logs = {logs!r} should be names of columns, such as ("height",)')
    if taken := sorted(TAKEN.intersection(logs)):
        raise ValueError(f"logs: '{taken[0]}' is a column that every run has; give it another name")
