"""A method in rounds against its contract: its workers run together, and each by itself, on one worker and on three."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from mpi_compress.algorithms import Method, Setting
from mpi_compress.core.errors import AllSent
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.guard.findings import SEED, Finding, NeedsAJob, tried
from mpi_compress.guard.of_messages import usual
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.compressors.base import AmongWorkers
from mpi_compress.messages.costs import costs
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
STAGES = {
    "message": "worker {}'s message", "answer": "the master's answer", "worker": "worker {}'s memory",
    "master": "the master's memory", "node": "what every node knows", "error": "how it ends",
}  # fmt: skip
"""What is noted of a round, in the order in which it is made."""
FAILED = (10**9, [*STAGES].index("error"), 0)

Key = tuple[int, int, int]  # round, stage and whose it is
Notes = Mapping[Key, Any]  # messages and states, or their hashes
Problem = tuple[Method, Mapping[int, Objective], Vector]  # a method that is bound to its setting, f_i of all workers, and x0


def rounds(problems: Sequence[Problem]) -> Iterator[Finding]:
    """A method in rounds, its workers together, against its workers by themselves."""
    for method, fs, x0 in problems:
        what = f"n = {method.setting.n}"
        yield from tried(what, partial(_of_rounds, method, fs, x0, what))


def first_difference(one: Notes, other: Notes) -> Key | None:
    """The first of what was noted that differs, if something does."""
    return min((key for key in {*one, *other} if one.get(key) != other.get(key)), default=None)


def named(key: Key) -> str:
    """What a message or a state is called."""
    return [*STAGES.values()][key[1]].format(key[2])


def rehearsal(play: Callable[[], None]) -> Iterator[Finding]:
    """Two rounds."""
    with np.errstate(all="ignore"):
        play()
    yield Finding("rehearsal", True, "two rounds can be run; run JOB --verify runs them on several layouts")


def in_other_ways(of: str, plain: Notes, others: Mapping[str, Notes], makers: Callable[[str], str]) -> Finding:
    """A run's rounds, `of` such as "8 rounds", as they were noted in one process, against those that were run in other ways. The
    line ends with what `makers` says of a stage: who makes what is noted there."""
    differing = {way: key for way, notes in others.items() if (key := first_difference(plain, notes))}
    if FAILED in plain or not differing:
        said = f"cannot be run: {plain[FAILED]}" if FAILED in plain else f"{of} are the same {', '.join(others)}"
        return Finding("ways", FAILED not in plain, said)
    way = min(differing, key=differing.__getitem__)
    key, notes, also = differing[way], others[way], " and ".join(other for other in differing if other != way)
    what, when = named(key), "before the first round" if key[0] < 0 else f"in round {key[0]}"
    if FAILED in notes and key not in notes:
        what, when = "it", f"{when}, where it ends: {notes[FAILED]}"
    text = f"{what} differs {when}, run {way}" + f", and {also}" * bool(also)
    return Finding("ways", False, text + makers([*STAGES][key[1]]))


def _of_rounds(method: Method, fs: Mapping[int, Objective], x0: Vector, what: str) -> Iterator[Finding]:
    with np.errstate(all="ignore"):
        together, apart = _played(method, fs, x0, False), _played(method, fs, x0, True)
    differing = first_difference(together, apart)
    if differing is None:
        text = f"{_ROUNDS} rounds are the same, whether workers share a process or not, and saved and read after each"
        yield Finding(what, True, text)
        return
    where = f"in round {differing[0]} where each worker is by itself, and saved and read after each round"
    yield Finding(what, False, f"{named(differing)} differs {where}")


def _played(method: Method, fs: Mapping[int, Objective], x0: Vector, apart: bool) -> Notes:
    stages = [*STAGES]
    play, notes = Rounds(method, fs, x0, apart), dict[Key, Any]()
    for k in range(_ROUNDS):
        try:
            found = play.round(k)
        except AllSent:
            break
        notes |= {(k, stages.index(stage), who): bytes(held) for (stage, who), held in found.items()}
        if apart:
            play.save_and_read()
    return notes


class Rounds:
    """Rounds of a method. Workers share one node; or, `apart`, each and the master has its own, and the last worker comes first."""

    def __init__(self, method: Any, fs: Mapping[int, Objective], x0: Vector, apart: bool, seed: int = SEED):
        self.method, self.fs, self.streams = method, fs, Streams(seed)
        self.homes: list[list[int]] = [[], *([i] for i in sorted(fs, reverse=True))] if apart else [[*fs]]
        self.nodes = [method.start(x0.copy()) for _ in self.homes]
        self.workers = {i: method.start_worker(node, fs[i]) for node, home in self._hosts() for i in home}
        self.up = {i: method.up.start() for i in fs}
        self.master, self.down = method.start_master(self.nodes[0]), method.down.start()
        self.firsts = copy.deepcopy((self.nodes[0], self.workers, self.master))
        self.expected = Expected(False, x0.size, type(method))

    def _hosts(self) -> Iterator[tuple[Any, list[int]]]:
        return zip(self.nodes, self.homes, strict=True)

    def play(self, k: int) -> tuple[Mapping[int, Message], Sequence[Message]]:
        """Run a round: the messages of workers, and the master's."""
        method, sent = self.method, {i: message for node, home in self._hosts() for i, message in self._sent(node, home, k)}
        uplink, downlink = method.uplink(self.nodes[0], k), method.downlink(self.nodes[0], k)
        ups = [uplink.unpack(Message(sent[i].data)) for i in self.fs]
        asked = self.nodes[0], self.master, ups, Round(k, self.streams, Role.MASTER, state=self.down)
        answers = [*method.answers(*asked)] if hasattr(method, "answers") else [method.master_answers(*asked)]
        heard = [downlink.unpack(Message(message.data)) for message in answers]
        for node, home in self._hosts():
            t = Round(k, self.streams, Role.MASTER)
            for i in home:
                method.worker_hears(node, self.workers[i], heard[i % len(heard)], t.to(i))
            method.all_hear(node, Dense(method.point(self.master)) if hasattr(method, "answers") else heard[0], t)
        return sent, answers

    def round(self, k: int) -> dict[tuple[str, int], Any]:
        """Run a round: its messages, and the states after it."""
        sent, answers = self.play(k)
        return {
            **{("message", i): sent[i].data for i in self.fs},
            **{("answer", i): message.data for i, message in enumerate(answers)},
            **{("worker", i): dump(self.workers[i]).data for i in self.fs},
            ("master", 0): dump(self.master).data,
            ("node", 0): b"".join({bytes(dump(node).data) for node in self.nodes}),
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


def made_up_problem(given: Method, n: int) -> Problem:
    """A method within a made-up problem of n workers; NeedsAJob if none of the usual links goes with it."""
    rng, loss = np.random.default_rng(SEED), losses["logistic"]()
    a, y = rng.standard_normal((n * _ROWS, _DIM)) / np.sqrt(_DIM), rng.choice([-1.0, 1.0], n * _ROWS)
    L = 0.25 * float(np.linalg.norm(a, 2) ** 2) / _ROWS + _MU  # not below that of any f_i
    numbers = dict.fromkeys(("L", "L_max", "L_mean", "L_rms", "L_pm", "L_row", "g0"), L)
    numbers |= {"mu": _MU, "n": float(n), "d": float(_DIM), "N": float(n * _ROWS), "kappa": L / _MU, "rounds": 9.0}
    apart = _MU if given.regularizer == "master" else 0.0
    whole, x_star = partial(Objective, loss=loss, weight=1.0 / len(y), mu=_MU), np.zeros(_DIM)
    why = ""
    rows = [Rows((a[i::n],), y[i::n], _DIM) for i in range(n)]
    for names in product((given.compressor, *_LINKS), _LINKS):
        try:
            up, down = (_link(name, n) for name in names)
            cost = costs["wire"]()
            setting = Setting(
                n=n, dim=_DIM, up=up, down=down, cost=cost, numbers=numbers, mu_apart=apart, x_star=x_star, whole=whole
            )
            fs = {i: Objective(shard, loss, 1.0 / _ROWS, _MU - apart, careful=True) for i, shard in enumerate(rows)}
            return given.bind(setting), fs, np.linspace(-1.0, 1.0, _DIM)
        except Exception as error:  # other links may do
            why = why or str(error)
    raise NeedsAJob(f"{given.name}: {why}")


def _link(name: str, n: int) -> Link:
    compressor = usual(compressors[name])
    compressor = compressor.among(n) if isinstance(compressor, AmongWorkers) else compressor
    return Link(compressor, codecs[compressor.codec](), _DIM)
