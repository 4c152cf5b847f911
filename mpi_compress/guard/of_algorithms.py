"""A method in rounds against its contract: its workers run together, and each by itself, on one worker and on three."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mpi_compress.algorithms import Method
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.algorithms.memories import one, put
from mpi_compress.core.errors import AllSent
from mpi_compress.core.streams import Role, Round, Rounds, Streams
from mpi_compress.guard.findings import SEED, Finding, tried
from mpi_compress.messages.kinds import Dense, Vector, stacked
from mpi_compress.messages.link import Batch, arrived, together
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
    play, notes = CheckedRounds(method, fs, x0, apart), dict[Key, Any]()
    for k in range(_ROUNDS):
        try:
            found = play.round(k)
        except AllSent:
            break
        notes |= {(k, stages.index(stage), who): bytes(held) for (stage, who), held in found.items()}
        if apart:
            play.save_and_read()
    return notes


class CheckedRounds:
    """Rounds of a method. Workers share one node; or, `apart`, each and the master has its own, and the last worker comes first."""

    def __init__(self, method: Any, fs: Shards, x0: Vector, apart: bool, seed: int = SEED):
        self.method, self.fs, self.streams = method, fs, Streams(seed)
        n = len(fs)
        homes = [slice(0, 0), *(slice(i, i + 1) for i in reversed(range(n)))] if apart else [slice(0, n)]
        self.nodes = [method.start(x0.copy()) for _ in homes]
        self.hosted = [self._hosted(node, fs[home]) for node, home in zip(self.nodes, homes, strict=True)]
        self.master, self.down = method.start_master(self.nodes[0]), method.down.start()
        self.firsts = copy.deepcopy((self.nodes[0], [*self.workers], self.master))
        self.expected = Expected(False, x0.size, type(method))
        self.ups: Any = None  # what the workers' last messages decode to

    def _hosted(self, node: Any, fs: Shards) -> HostedWorkers:
        states = [self.method.up.start() for _ in range(len(fs))]
        return HostedWorkers(self.method, fs, self.method.start_workers(node, fs) if states else [], self.streams, states)

    @property
    def workers(self) -> Iterator[Any]:
        """Their memories, in worker order."""
        of = {who: (hosted, row) for hosted in self.hosted for row, who in enumerate(hosted.fs.who.tolist())}
        return (one(hosted.workers, row) for hosted, row in map(of.get, self.fs.who.tolist()))  # type: ignore[misc]

    def play(self, k: int) -> tuple[Batch, Batch]:
        """Run a round: the messages of workers, and the master's."""
        method, first = self.method, self.nodes[0]
        sent = [hosted.messages(node, k) for node, hosted in zip(self.nodes, self.hosted, strict=True)]
        ups = _all_sent(sent if len(sent) == 1 else sent[:0:-1])
        self.ups = arrived(method.uplink(first, k), ups)
        asked = first, self.master, self.ups, Round(k, self.streams, Role.MASTER, state=self.down)
        answers = _all_sent([*method.answers(*asked)] if hasattr(method, "answers") else [method.master_answers(*asked)])
        heard = arrived(method.downlink(first, k), answers)
        for node, hosted in zip(self.nodes, self.hosted, strict=True):
            t = Rounds(k, self.streams, Role.MASTER, who := hosted.fs.who)
            if who.size:
                each = stacked([heard[i] for i in who]) if hasattr(method, "answers") else heard[0]
                method.workers_hear(node, hosted.workers, each, t)
            down = Dense(method.point(self.master)) if hasattr(method, "answers") else heard[0]
            method.all_hear(node, down, Round(k, self.streams, Role.MASTER))
        return ups, answers

    def round(self, k: int) -> dict[tuple[str, int], Any]:
        """Run a round: its messages, and the states after it."""
        sent, answers = self.play(k)
        return {
            **{("message", i): sent.part(i, i + 1).raw for i in range(len(sent))},
            **{("answer", i): answers.part(i, i + 1).raw for i in range(len(answers))},
            **{("worker", i): dump(worker).data for i, worker in enumerate(self.workers)},
            ("master", 0): dump(self.master).data,
            ("node", 0): b"".join({bytes(dump(node).data) for node in self.nodes}),
        }

    def save_and_read(self) -> None:
        """Let all states be what a checkpoint makes of them."""
        node, workers, master = self.firsts
        self.nodes = [load(dump(each), node, self.expected) for each in self.nodes]
        for hosted in self.hosted:
            for row, who in enumerate(hosted.fs.who.tolist()):
                put(hosted.workers, row, load(dump(one(hosted.workers, row)), workers[who], self.expected))
        self.master = load(dump(self.master), master, self.expected)


def _all_sent(batches: Sequence[Batch]) -> Batch:
    """These messages as their receiver has them; the error of the first one that could not be encoded is raised."""
    sent = together(batches)
    for error in filter(None, sent.refused.values()):
        raise error
    return Batch(sent.data, sent.ends)
