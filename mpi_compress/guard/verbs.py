"""Watches the verbs of a user's algorithm: what they give, and in its first rounds what they do to the node and to states.

What it asks of an objective is checked, too: points and rows become what kernels expect, or are refused.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from hashlib import blake2b
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms import Estimator
from mpi_compress.algorithms.contract import Method
from mpi_compress.core import arrays
from mpi_compress.core.arrays import shown
from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import CorruptMessage, UserError, checked_at
from mpi_compress.core.global_draws import FIRST_ROUNDS, refusing
from mpi_compress.core.registry import is_ours
from mpi_compress.messages.kinds import Compressed, Indices, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.points import Point
from mpi_compress.problem.scaled_vector import ScaledVector
from mpi_compress.results.columns import TAKEN
from mpi_compress.saving.frames import attributes, dump, held_in
from mpi_compress.saving.saved_states import Expected, load


def unsavable(state: Any, *others: Any) -> str:
    """Why a state could not be saved and given back as it is, "" if it can; `others` are saved apart from it."""
    try:
        load(dump(state), state, Expected(False, -1))
    except (TypeError, ValueError) as error:
        return f"its state cannot be saved in a checkpoint: {error}; dataclasses of arrays, numbers, lists and dicts can"
    arrays, elsewhere = ([each for each in held_in(held) if isinstance(each, np.ndarray)] for held in (state, others))
    for i, one in enumerate(arrays):
        if any(one is not other and np.may_share_memory(one, other) for other in arrays[i + 1 :]):
            return "its state has arrays that share memory, which a checkpoint would part: keep one of them"
        if any(np.may_share_memory(one, other) for other in elsewhere):
            return "its state shares memory with another, which a checkpoint would part: keep a copy"
    return ""


def drifted(first: Any, now: Any, dim: int, algorithm: type) -> str:
    """Why a checkpoint of a state could not be read by the state that it began as; "" if it could."""
    try:
        load(dump(now), first, Expected(False, dim, algorithm))
    except (TypeError, ValueError) as error:
        changes = (f"{place} was {was}, and is {shown(found)}" for place, was, found in _changes(first, now, dim))
        return f"{next(changes, str(error))}, so that no checkpoint of it can be read; the first state says what it is"
    return ""


def _changes(first: Any, now: Any, dim: int, place: str = "") -> Iterator[tuple[str, str, Any]]:
    """The arrays (d,) of a first state that have another type or shape now: where, what they were, and what they are."""
    if isinstance(first, np.ndarray) and first.shape == (dim,):
        if not (isinstance(now, np.ndarray) and (now.dtype, now.shape) == (first.dtype, first.shape)):
            yield place, shown(first), now
    elif is_dataclass(first) and not isinstance(first, type):
        for name, held in attributes(first).items():
            yield from _changes(held, getattr(now, name, None), dim, f"{place}.{name}".strip("."))
    elif isinstance(first, Mapping) and isinstance(now, Mapping):
        for key, held in first.items():
            yield from _changes(held, now.get(key), dim, f"{place}[{key!r}]")


def refuse_wrong_theorems(compressor: Any, dim: int) -> None:
    """UserError if δ, ω or v² of a user's compressor is neither None nor a number from 0 on."""
    for name, most in {"omega": math.inf, "variance": math.inf, "delta": 1.0}.items() if not is_ours(compressor) else ():
        given = (method := getattr(compressor, name))(dim)
        right = given is None or (isinstance(given, int | float | np.number) and 0 <= given <= most)
        if wrong := _unless(right, given, f"a number from 0 to {most:g}, or None where there is no such theorem"):
            raise UserError(f"{compressor.name}, {name}: {wrong}{place_of(method)}")


def first_state(link: Link) -> Any:
    """What a node's compressor remembers before its first message; UserError if it cannot be saved, or `compress` does not take
    it."""
    compressor = link.compressor
    try:
        signature(compressor.compress).bind(*range(2 + compressor.has_state))
    except TypeError:
        has, state = ("a", ", state") if compressor.has_state else ("no", "")
        where = place_of(compressor.compress)
        raise UserError(f"{compressor.name}: with {has} start(self, dim) it needs compress(self, v, t{state}){where}") from None
    state = link.start()
    if compressor.has_state and (complaint := unsavable(state)):
        raise UserError(f"{compressor.name}, start: {complaint}{place_of(compressor.start)}")
    return state


_PURE = ("worker_sends", "master_answers", "answers", "worker_hears")
"""Verbs that must not change the node."""
_STARTS = {"start": "node", "start_worker": "worker", "start_master": "master"}
_CHANGES = {"worker_sends": "worker", "master_answers": "master", "answers": "master", "all_hear": "node"}
"""The state that a verb may change."""


def watched(method: Method) -> Any:
    """A user's algorithm whose verbs raise UserError if they do what they must not; any other method as it is."""
    if is_ours(method) or method.shares_memory:
        return method
    if isinstance(method, Estimator):  # a verb that the others call
        method = method.bound_to(estimate=partial(_Watch(method).call, "estimate", partial(_terms, (method.setting.dim,))))
    watch = _Watch(method)
    looks: dict[str, Callable[..., str]] = {
        "start": partial(_node, type(method).iterate is Method.iterate),
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
        in_first_rounds = (verb in _PURE or verb == "all_hear") and arguments[-1].k < FIRST_ROUNDS
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


def _unless(right: Any, given: Any, wanted: str) -> str:
    return "" if right else f"{shown(given)} was given; it should be {wanted}"


def _node(has_x: bool, given: Any, x0: Vector) -> str:
    right = not has_x or np.shape(getattr(given, "x", 0)) == x0.shape
    return unsavable(given) or _unless(right, given, f"the node, a dataclass whose x is the iterate {x0.shape}")


def _terms(shape: tuple[int, ...], given: Any, *_: Any) -> str:
    terms: Any = given if isinstance(given, list | tuple) else [None] * (given is not None)
    right = all(isinstance(each, Compressed) or np.shape(each) == shape for each in terms)
    return _unless(right, given, f"a list of terms, each a vector {shape} or what was decoded, such as [g]; or None, and x stays")


def _message(link_of: Callable[..., Link], way: str, given: Any, node: Any, *others: Any) -> str:
    if wrong := _unless(isinstance(given, Message), given, f"a message: return self.{way}.pack(…, t)"):
        return wrong
    t = others[-1]
    if t.k < FIRST_ROUNDS and not given.is_refused:
        try:
            link_of(node, t.k).unpack(Message(given.data))
        except CorruptMessage as error:
            return f"its receivers cannot read what was sent ({error}): pack it by self.{way}, or as {way}link(node, k) says"
    return ""


def _answers(n: int, given: Any, *_: Any) -> str:
    right = isinstance(given, list | tuple) and len(given) == n and all(isinstance(each, Message) for each in given)
    return _unless(right, given, f"a list of {n} messages, one to each worker in worker order")


def _numbers(logs: Sequence[str], given: Any, *_: Any) -> str:
    right = np.shape(given) == (len(logs),) and all(np.isscalar(v) and np.isreal(v) for v in given)
    return _unless(right, given, f"a number for each of {', '.join(logs)}")


def check_logs(algorithm: Method) -> None:
    """ValueError if the columns that an algorithm adds are no names, or those of other columns."""
    logs = algorithm.log.columns
    if isinstance(logs, str) or not all(isinstance(column, str) and column.isidentifier() for column in logs):
        raise ValueError(f'logs = {logs!r} should be names of columns, such as ("height",)')
    if taken := sorted(TAKEN.intersection(logs)):
        raise ValueError(f"logs: '{taken[0]}' is a column that every run has; give it another name")


class GuardedObjective(Objective):
    """The objective for a user's algorithm: points and rows are checked, and gradients are copies."""

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        return self.at(Point(self.point(x)))

    def at(self, point: Point) -> tuple[float, Vector]:
        value, gradient = super().at(Point.at(self.point(point.x)))
        return value, gradient.copy()

    def gradient(self, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None = None) -> Vector:
        return super().gradient(self.point(x), None if rows is None else self._rows(rows)).copy()

    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None) -> None:
        if not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == (self.dim,) and out.flags.carray):
            raise UserError(f"add_gradient: out is {shown(out)}; it should be an array of float64 ({self.dim},) to write to")
        super().add_gradient(out, self.point(x), None if rows is None else self._rows(rows))

    def add_sparse_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Indices, float]:
        if not self.gradients_are_sparse:
            raise UserError("add_sparse_gradient: the gradients of this function are not sparse, as gradients_are_sparse says")
        return super().add_sparse_gradient(out, self.point(x), self._rows(rows))

    def point(self, x: Any) -> Any:
        """x as kernels expect it."""
        if isinstance(x, ScaledVector):
            return ScaledVector(self.point(x.v), x.scale)
        return checked_at("gradient", lambda: arrays.floats(x, (self.dim,), "coordinates of x"))

    def _rows(self, rows: Any) -> NDArray[np.uint64]:
        array = checked_at("gradient", lambda: arrays.whole(rows, (np.size(rows),), "rows"))
        most = len(self.rows) - 1
        if not (array.size and array.min() >= 0 and array.max() <= most):
            said = f"go from {array.min()} to {array.max()}" if array.size else "are none"
            raise UserError(f"gradient: rows {said}; they should be from 0 to {most}, of this worker's shard")
        return array.astype(np.uint64, copy=False)
