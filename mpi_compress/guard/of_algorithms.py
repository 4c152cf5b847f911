"""A method in rounds against its contract: its workers run together, and each by itself, on one worker and on three."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.algorithms.memories import one, put
from mpi_compress.algorithms.vocabulary import Algorithm, AllSent, Dense, Downlink, Method, Server, Shards, Vector, stacked
from mpi_compress.core.streams import Role, Round, Rounds, Streams
from mpi_compress.guard.findings import SEED, Finding, Findings, tried
from mpi_compress.messages.batch import Batch, together
from mpi_compress.messages.link import arrived
from mpi_compress.saving.frames import dump
from mpi_compress.saving.saved_states import Expected, load

_ROUNDS = 6
STAGES = {
    "message": "worker {}'s message", "answer": "the master's answer", "worker": "worker {}'s memory",
    "master": "the master's memory", "node": "what every node knows", "error": "how it ends",
}  # fmt: skip
"""What is noted of a round, in the order in which it is made."""
FAILED = (10**9, [*STAGES].index("error"), 0)
KEPT = (*FAILED[:2], 1)  # which parts of one's own kept something from call to call, in a run that came to its end

Key = tuple[int, int, int]  # round, stage and whose it is
Notes = Mapping[Key, Any]  # messages and states, or their hashes
Problem = tuple[Method, Shards, Vector]  # a method that is bound to its setting, f_i of all workers, and x0


def rounds(_: Algorithm | Server | Downlink, problems: Sequence[Problem]) -> Findings:
    """A method in rounds, its workers together, against its workers by themselves."""
    text = "layouts and states are checked here, not the algorithm; --theorem compares a method with the theorem that it states"
    yield Finding("algorithm", True, text, doubt="not judged")
    for problem in problems:
        yield from tried(f"n = {problem[0].setting.n}", _of_rounds, problem)


def two_rounds(_: Method, play: Callable[[], None]) -> Findings:
    """Whether two rounds can be run."""
    with np.errstate(all="ignore"):
        play()
    yield Finding("two rounds", True, "two rounds can be run; run JOB --verify runs them on several layouts")


def in_other_ways(of: str, plain: Notes, others: Mapping[str, Notes], makers: Callable[[str], str] | None = None) -> Finding:
    """A run's rounds, `of` such as "8 rounds", as they were noted in one process, against those that were run in other ways. The
    line ends with what `makers` says of a stage: who makes what is noted there. What is KEPT may change later rounds."""
    if FAILED in plain:
        return Finding("ways", False, f"cannot be run: {plain[FAILED]}")
    unlike = {way: [key for key in {*plain, *notes} - {KEPT} if plain.get(key) != notes.get(key)] for way, notes in others.items()}
    differing = {way: min(keys) for way, keys in unlike.items() if keys}
    if not differing:
        return Finding("ways", KEPT not in plain, plain.get(KEPT, f"{of} are the same {', '.join(others)}"))
    way = min(differing, key=differing.__getitem__)
    key, notes, also = differing.pop(way), others[way], " and ".join(differing)
    what, when = [*STAGES.values()][key[1]].format(key[2]), "before the first round" if key[0] < 0 else f"in round {key[0]}"
    if FAILED in notes and key not in notes:
        what, when = "it", f"{when}, where it ends: {notes[FAILED]}"
    text = f"{what} differs {when}, run {way}" + f", and {also}" * bool(also)
    return Finding("ways", False, text + (makers([*STAGES][key[1]]) if makers else ""))


def _of_rounds(problem: Problem) -> Findings:
    with np.errstate(all="ignore"):
        together, apart = _played(problem, False), _played(problem, True)
    way = "where each worker is by itself, and saved and read after each"
    yield replace(in_other_ways(f"{_ROUNDS} rounds", together, {way: apart}), what=f"n = {problem[0].setting.n}")


def _played(problem: Problem, apart: bool) -> Notes:
    stages, play, notes = [*STAGES], CheckedRounds(*problem, apart), dict[Key, Any]()
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
        homes = [slice(0), *(slice(i, i + 1) for i in reversed(range(len(fs))))] if apart else [slice(len(fs))]
        self.nodes = [method.start(x0.copy()) for _ in homes]
        self.hosted = []
        for node, own in zip(self.nodes, (fs[home] for home in homes), strict=True):
            states = [method.up.start() for _ in range(len(own))]
            workers = method.start_workers(node, own) if states else []
            self.hosted.append(HostedWorkers(method, own, workers, self.streams, states))
        self.master, self.down = method.start_master(self.nodes[0]), method.down.start()
        self.firsts = copy.deepcopy((self.nodes[0], [*self.workers], self.master))
        self.expected = Expected(False, x0.size, type(method))
        self.ups: Any = None  # what the workers' last messages decode to

    @property
    def workers(self) -> Iterator[Any]:
        """Their memories, in worker order."""
        return (one(hosted.workers, row) for hosted, row, _ in sorted(self._each(), key=lambda each: each[2]))

    def _each(self) -> Iterator[tuple[HostedWorkers, int, int]]:
        """Where each worker is hosted, and its number."""
        return ((hosted, row, who) for hosted in self.hosted for row, who in enumerate(hosted.fs.who.tolist()))

    def play(self, k: int) -> tuple[Batch, Batch]:
        """Run a round: the messages of workers, and the master's."""
        method, first, to_each = self.method, self.nodes[0], hasattr(self.method, "answers")
        sent = [hosted.messages(node, k) for node, hosted in zip(self.nodes, self.hosted, strict=True)]
        ups = _all_sent(sent[:0:-1] or sent)
        self.ups = arrived(method.uplink(first, k), ups)
        asked = first, self.master, self.ups, Round(k, self.streams, Role.MASTER, state=self.down)
        answers = _all_sent([*method.answers(*asked)] if to_each else [method.master_answers(*asked)])
        heard = arrived(method.downlink(first, k), answers)
        for node, hosted in zip(self.nodes, self.hosted, strict=True):
            t = Rounds(k, self.streams, Role.MASTER, who := hosted.fs.who)
            if who.size:
                method.workers_hear(node, hosted.workers, stacked([heard[i] for i in who]) if to_each else heard[0], t)
            down = Dense(method.point(self.master)) if to_each else heard[0]
            method.all_hear(node, down, Round(k, self.streams, Role.MASTER))
        return ups, answers

    def round(self, k: int) -> dict[tuple[str, int], Any]:
        """Run a round: its messages, and the states after it."""
        sent, answers = self.play(k)
        batches, nodes = {"message": sent, "answer": answers}, b"".join({bytes(dump(node).data) for node in self.nodes})
        found: dict[Any, Any] = {(stage, i): of.part(i, i + 1).raw for stage, of in batches.items() for i in range(len(of))}
        found |= {("worker", i): dump(worker).data for i, worker in enumerate(self.workers)}
        return {**found, ("master", 0): dump(self.master).data, ("node", 0): nodes}

    def save_and_read(self) -> None:
        """Let all states be what a checkpoint makes of them."""
        node, workers, master = self.firsts
        self.nodes = [load(dump(each), node, self.expected) for each in self.nodes]
        for hosted, row, who in self._each():
            put(hosted.workers, row, load(dump(one(hosted.workers, row)), workers[who], self.expected))
        self.master = load(dump(self.master), master, self.expected)


def _all_sent(batches: Sequence[Batch]) -> Batch:
    """These messages as their receiver has them; the error of the first one that could not be encoded is raised."""
    sent = together(batches)
    for error in filter(None, sent.refused.values()):
        raise error
    return Batch(sent.in_one(), sent.ends)
