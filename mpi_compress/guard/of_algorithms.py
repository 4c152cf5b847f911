"""A method in rounds against its contract: its workers played together, and each by itself, on one worker and on three."""

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm, Setting
from mpi_compress.core.errors import AllSent, UserError
from mpi_compress.core.registry import is_ours
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.guard.findings import IN_A_JOB, SEED, Finding, tried
from mpi_compress.guard.objective import GuardedObjective
from mpi_compress.guard.of_messages import usual
from mpi_compress.guard.verbs import watched
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.compressors.base import AmongWorkers
from mpi_compress.messages.costs import costs
from mpi_compress.messages.guarded import GuardedLink
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.saving.frames import dump
from mpi_compress.saving.saved_states import Expected, load

_ROUNDS = 6
_DIM, _ROWS, _MU = 12, 8, 0.1  # of made-up problems
_LINKS = ("identity", "random-k", "top-k", "perm-k")
Notes = dict[tuple[int, str], bytes]  # messages and states, by round and what it is


def of_algorithm(given: Algorithm) -> Iterator[Finding]:
    """A method on made-up problems of one worker and of three; UserError if none of the usual links goes with it."""
    for n in (1, 3):
        method, fs = _made_up(given, n)
        yield from tried(f"n = {n}", partial(_of_rounds, method, fs, np.linspace(-1.0, 1.0, _DIM), f"n = {n}"))


def of_method(method: Algorithm, fs: Mapping[int, Objective], x0: Vector) -> Iterator[Finding]:
    """A method that is bound to its setting, with the objectives of all workers."""
    what = f"n = {method.setting.n}"
    yield from tried(what, partial(_of_rounds, method, fs, x0, what))


def _of_rounds(method: Algorithm, fs: Mapping[int, Objective], x0: Vector, what: str) -> Iterator[Finding]:
    with np.errstate(all="ignore"):
        together, apart = _played(watched(method), fs, x0, False), _played(method, fs, x0, True)
    differing = [key for key in together if together[key] != apart.get(key)]
    if not differing:
        text = f"{_ROUNDS} rounds are the same, whether workers share a process or not, and saved and read after each"
        yield Finding(what, True, text)
        return
    k, first = differing[0]
    yield Finding(what, False, f"{first} differs in round {k} where each worker is by itself, and saved and read after each round")


def _played(method: Algorithm, fs: Mapping[int, Objective], x0: Vector, apart: bool) -> Notes:
    """The messages and states of a few rounds."""
    play, notes = _Play(method, fs, x0, apart), Notes()
    for k in range(_ROUNDS):
        try:
            found = play.round(k)
        except AllSent:
            break
        notes |= {(k, what): bytes(held) for what, held in found.items()}
        if apart:
            play.save_and_read()
    return notes


class _Play:
    """Rounds of a method. Workers share one node; or, `apart`, each and the master has its own, and the last worker comes first."""

    def __init__(self, method: Any, fs: Mapping[int, Objective], x0: Vector, apart: bool):
        self.method, self.fs, self.streams = method, fs, Streams(SEED)
        self.homes: list[list[int]] = [[], *([i] for i in sorted(fs, reverse=True))] if apart else [[*fs]]
        self.nodes = [method.start(x0.copy()) for _ in self.homes]
        self.workers = {i: method.start_worker(node, fs[i]) for node, home in self._hosts() for i in home}
        self.up = {i: method.up.start() for i in fs}
        self.master, self.down = method.start_master(self.nodes[0]), method.down.start()
        self.firsts = copy.deepcopy((self.nodes[0], self.workers, self.master))
        self.expected = Expected(is_ours(method), x0.size, type(method))

    def _hosts(self) -> Iterator[tuple[Any, list[int]]]:
        return zip(self.nodes, self.homes, strict=True)

    def round(self, k: int) -> dict[str, Any]:
        """Play a round: its messages, and the states after it."""
        method, sent = self.method, {i: message for node, home in self._hosts() for i, message in self._sent(node, home, k)}
        uplink, downlink = method.uplink(self.nodes[0], k), method.downlink(self.nodes[0], k)
        ups = [uplink.unpack(Message(sent[i].data)) for i in self.fs]
        asked = self.nodes[0], self.master, ups, Round(k, self.streams, Role.MASTER, state=self.down)
        answers = [*method.answers(*asked)] if method.answers_each else [method.master_answers(*asked)]
        heard = [downlink.unpack(Message(message.data)) for message in answers]
        for node, home in self._hosts():
            t = Round(k, self.streams, Role.MASTER)
            for i in home:
                method.worker_hears(node, self.workers[i], heard[i % len(heard)], t.to(i))
            method.all_hear(node, Dense(method.point(self.master)) if method.answers_each else heard[0], t)
        return {
            **{f"worker {i}'s message": sent[i].data for i in self.fs},
            **{f"the master's answer {i}": message.data for i, message in enumerate(answers)},
            **{f"worker {i}'s memory": dump(self.workers[i]).data for i in self.fs},
            "the master's memory": dump(self.master).data,
            "what every node knows": b"".join({bytes(dump(node).data) for node in self.nodes}),
        }

    def _sent(self, node: Any, home: list[int], k: int) -> Iterator[tuple[int, Message]]:
        for i in home:
            t = self.fs[i].round = Round(k, self.streams, Role.WORKER, i, state=self.up[i])
            yield i, self.method.worker_sends(node, self.workers[i], self.fs[i], t)

    def save_and_read(self) -> None:
        """Let all states be what a checkpoint makes of them."""
        node, workers, master = self.firsts
        self.nodes = [load(dump(each), node, self.expected) for each in self.nodes]
        self.workers = {i: load(dump(worker), workers[i], self.expected) for i, worker in self.workers.items()}
        self.master = load(dump(self.master), master, self.expected)


def _made_up(given: Algorithm, n: int) -> tuple[Algorithm, dict[int, Objective]]:
    """A method within a made-up problem of n workers, and their objectives."""
    rng, loss = np.random.default_rng(SEED), losses.shipped("logistic")()
    a, y = rng.standard_normal((n * _ROWS, _DIM)) / np.sqrt(_DIM), rng.choice([-1.0, 1.0], n * _ROWS)
    L = 0.25 * float(np.linalg.norm(a, 2) ** 2) / _ROWS + _MU  # not below that of any f_i
    numbers = dict.fromkeys(("L", "L_max", "L_mean", "L_rms", "L_pm", "L_row", "g0"), L)
    numbers |= {"mu": _MU, "n": float(n), "d": float(_DIM), "N": float(n * _ROWS), "kappa": L / _MU}
    apart = _MU if given.regularizer == "master" else 0.0
    whole, x_star = partial(Objective, loss=loss, weight=1.0 / len(y), mu=_MU), np.zeros(_DIM)
    kind, why = Objective if is_ours(given) else GuardedObjective, ""
    rows = [Rows((a[i::n],), y[i::n], _DIM) for i in range(n)]
    for names in product((given.compressor, *_LINKS), _LINKS):
        try:
            up, down = (_link(name, n, is_ours(given)) for name in names)
            setting = Setting(n, _DIM, up, down, costs.shipped("wire")(), apart, numbers, x_star, whole=whole)
            return given.within(setting), {i: kind(shard, loss, 1.0 / _ROWS, _MU - apart) for i, shard in enumerate(rows)}
        except Exception as error:  # other links may do
            why = why or str(error)
    raise UserError(f"{given.name}: {why}; {IN_A_JOB}")


def _link(name: str, n: int, trusted: bool) -> Link:
    compressor = usual(compressors[name])
    compressor = compressor.among(n) if isinstance(compressor, AmongWorkers) else compressor
    return (Link if trusted else GuardedLink)(compressor, codecs[compressor.codec](), _DIM)
