"""Checks what the verbs of a user's algorithm give: states, messages and logs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.arrays import shown
from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import CorruptMessage, UserError
from mpi_compress.core.global_draws import FIRST_ROUNDS
from mpi_compress.guard.first_rounds import FirstRounds
from mpi_compress.guard.states import unsavable
from mpi_compress.messages.link import Link, Message
from mpi_compress.results.columns import TAKEN


def watched(algorithm: Algorithm) -> Algorithm:
    """The same algorithm, whose verbs raise UserError if they give no states, messages or logs of the right kind."""
    name, first = getattr(algorithm, "name", type(algorithm).__name__), FirstRounds(getattr(algorithm, "name", ""), algorithm)

    def watch(verb: str, look: Callable[..., str]) -> None:
        unwatched = getattr(algorithm, verb)
        starts, of_a_round = verb.startswith("start"), verb != "worker_logs"

        def verb_and_look(*arguments: Any) -> Any:
            given = first.around(verb, unwatched, *arguments) if of_a_round and not starts else unwatched(*arguments)
            if complaint := look(given, *arguments):
                raise UserError(f"{name}, {verb}: {complaint}{place_of(unwatched)}")
            if starts:
                first.started(verb, given)
            return given

        object.__setattr__(algorithm, verb, verb_and_look)

    watch("worker_sends", partial(_message, algorithm.uplink, "up"))
    watch("master_answers", partial(_message, algorithm.downlink, "down"))
    watch("worker_logs", partial(_numbers, algorithm.logs))
    if algorithm.answers_each:
        watch("answers", partial(_answers, algorithm.setting.n))
    hears = type(algorithm).worker_hears is not Algorithm.worker_hears
    for verb in ("worker_hears", "all_hear") if hears else ("all_hear",):
        watch(verb, lambda *_: "")
    watch("start", lambda given, x0: unsavable(given))
    for verb in ("start_worker", "start_master"):
        watch(verb, unsavable)
    return algorithm


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


def check_logs(algorithm: Algorithm) -> None:
    """ValueError if the columns that an algorithm adds are no names, or those of other columns."""
    logs = algorithm.logs
    if isinstance(logs, str) or not all(isinstance(column, str) and column.isidentifier() for column in logs):
        raise ValueError(f'logs = {logs!r} should be names of columns, such as ("height",)')
    if taken := sorted(TAKEN.intersection(logs)):
        raise ValueError(f"logs: '{taken[0]}' is a column that every run has; give it another name")
