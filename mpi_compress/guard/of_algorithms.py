"""A method in rounds against its contract: its workers run together, and each by itself, on one worker and on three."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mpi_compress.algorithms import Method
from mpi_compress.core.errors import AllSent
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.guard.findings import SEED, Finding, tried
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Shards
from mpi_compress.saving.frames import dump
from mpi_compress.saving.saved_states import Expected, load

_ROUNDS = 6
STAGES = {
    "message": "worker {}'s message", "answer": "the master's answer", "worker": "worker {}'s memory",
    "master": "the master's memory", "node": "what every node knows", "error": "how it ends",
}  # fmt: skip
"""What is noted of a round, in the order in which it is made."""
FAILED = (10**9, [*STAGES].index("error"), 0)

Key = tuple[int, int, int]  # round, stage and whose it is
Notes = Mapping[Key, Any]  # messages and states, or their hashes
Problem = tuple[Method, Shards, Vector]  # a method that is bound to its setting, f_i of all workers, and x0


def rounds(_: Any, problems: Sequence[Problem]) -> Iterator[Finding]:
    """A method in rounds, its workers together, against its workers by themselves."""
    for method, fs, x0 in problems:
        what = f"n = {method.setting.n}"
        yield from tried(what, partial(_of_rounds, method, fs, x0, what))


def two_rounds(_: Any, play: Callable[[], None]) -> Iterator[Finding]:
    """Whether two rounds can be run."""
    with np.errstate(all="ignore"):
        play()
    yield Finding("two rounds", True, "two rounds can be run; run JOB --verify runs them on several layouts")


def in_other_ways(of: str, plain: Notes, others: Mapping[str, Notes], makers: Callable[[str], str] | None = None) -> Finding:
    """A run's rounds, `of` such as "8 rounds", as they were noted in one process, against those that were run in other ways. The
    line ends with what `makers` says of a stage: who makes what is noted there."""
    unlike = {way: [key for key in {*plain, *notes} if plain.get(key) != notes.get(key)] for way, notes in others.items()}
    differing = {way: min(keys) for way, keys in unlike.items() if keys}
    if FAILED in plain or not differing:
        said = f"cannot be run: {plain[FAILED]}" if FAILED in plain else f"{of} are the same {', '.join(others)}"
        return Finding("ways", FAILED not in plain, said)
    way = min(differing, key=differing.__getitem__)
    key, notes, also = differing[way], others[way], " and ".join(other for other in differing if other != way)
    what, when = [*STAGES.values()][key[1]].format(key[2]), "before the first round" if key[0] < 0 else f"in round {key[0]}"
    if FAILED in notes and key not in notes:
        what, when = "it", f"{when}, where it ends: {notes[FAILED]}"
    text = f"{what} differs {when}, run {way}" + f", and {also}" * bool(also)
    return Finding("ways", False, text + (makers([*STAGES][key[1]]) if makers else ""))


def _of_rounds(method: Method, fs: Shards, x0: Vector, what: str) -> Iterator[Finding]:
    with np.errstate(all="ignore"):
        together, apart = _played(method, fs, x0, False), _played(method, fs, x0, True)
    way = "where each worker is by itself, and saved and read after each"
    yield replace(in_other_ways(f"{_ROUNDS} rounds", together, {way: apart}), what=what)


def _played(method: Method, fs: Shards, x0: Vector, apart: bool) -> Notes:
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

    def __init__(self, method: Any, fs: Shards, x0: Vector, apart: bool, seed: int = SEED):
        self.method, self.fs, self.streams = method, fs, Streams(seed)
        self.homes: list[list[int]] = [[], *([i] for i in sorted(fs.who, reverse=True))] if apart else [[*fs.who]]
        self.nodes = [method.start(x0.copy()) for _ in self.homes]
        self.workers = {i: method.start_worker(node, fs[i]) for node, home in self._hosts() for i in home}
        self.up = {i: method.up.start() for i in fs.who}
        self.master, self.down = method.start_master(self.nodes[0]), method.down.start()
        self.firsts = copy.deepcopy((self.nodes[0], self.workers, self.master))
        self.expected = Expected(False, x0.size, type(method))
        self.ups: Sequence[Any] = []  # what the workers' last messages decode to

    def _hosts(self) -> Iterator[tuple[Any, list[int]]]:
        return zip(self.nodes, self.homes, strict=True)

    def play(self, k: int) -> tuple[Mapping[int, Message], Sequence[Message]]:
        """Run a round: the messages of workers, and the master's."""
        method, sent = self.method, {i: message for node, home in self._hosts() for i, message in self._sent(node, home, k)}
        uplink, downlink = method.uplink(self.nodes[0], k), method.downlink(self.nodes[0], k)
        self.ups = [uplink.unpack(Message(sent[i].data)) for i in self.fs.who]
        asked = self.nodes[0], self.master, self.ups, Round(k, self.streams, Role.MASTER, state=self.down)
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
            **{("message", i): sent[i].data for i in self.fs.who},
            **{("answer", i): message.data for i, message in enumerate(answers)},
            **{("worker", i): dump(self.workers[i]).data for i in self.fs.who},
            ("master", 0): dump(self.master).data,
            ("node", 0): b"".join({bytes(dump(node).data) for node in self.nodes}),
        }

    def _sent(self, node: Any, home: list[int], k: int) -> Iterator[tuple[int, Message]]:
        for i in home:
            t = self.fs.rounds[i] = Round(k, self.streams, Role.WORKER, i, state=self.up[i])
            yield i, self.method.worker_sends(node, self.workers[i], self.fs[i], t)

    def save_and_read(self) -> None:
        """Let all states be what a checkpoint makes of them."""
        node, workers, master = self.firsts
        self.nodes = [load(dump(each), node, self.expected) for each in self.nodes]
        self.workers = {i: load(dump(worker), workers[i], self.expected) for i, worker in self.workers.items()}
        self.master = load(dump(self.master), master, self.expected)
