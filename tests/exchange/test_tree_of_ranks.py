"""The exchange by a tree, on any number of ranks: what rank 0 adds up, what it receives, and who hears the answer.

Sums go from ranks of higher numbers to lower ones and answers back, so that one process can play all ranks in turn.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.kinds import Dense, Sparse
from mpi_compress.messages.link import Link, Message
from mpi_compress.messages.mean import Tree, TreeAdder

D = 40
LINK = Link(compressors.build("identity", "up"), codecs.build({"name": "auto", "float": 64}, "codec"), D)


class Post:
    """In place of both channels of all ranks: what was sent and has not been received."""

    letters: dict

    def __init__(self, comm, bell, kept=0):
        self.rank, self.bell = comm.rank, None

    def send_messages(self, messages, to, tag):
        for rank in to:
            self.letters.setdefault((self.rank, rank, tag), []).append([Message(m.data.copy()) for m in messages])

    def receive_messages(self, numbers, tag):
        found = {source: self.letters[source, self.rank, tag].pop(0) for source in numbers}
        assert {source: len(messages) for source, messages in found.items()} == dict(numbers)
        return found

    def send(self, data, to, tag):
        for rank in to:
            self.letters.setdefault((self.rank, rank, tag), []).append(data)

    def receive(self, source, tag, dtype):
        return self.letters[source, self.rank, tag].pop(0).reshape(-1)


@pytest.fixture
def ranks_of(monkeypatch):
    """The exchanges of so many ranks."""
    from mpi_compress.exchange import mpi

    monkeypatch.setattr(mpi, "Channel", Post)
    monkeypatch.setattr(mpi, "Messages", Post)

    def made(ranks, n, master_hosts):
        monkeypatch.setattr(Post, "letters", {}, raising=False)
        return [mpi.TreeOfRanks(SimpleNamespace(rank=r, size=ranks), n, master_hosts) for r in range(ranks)]

    return made


def vectors(n, kind):
    rng = np.random.default_rng(n)
    if kind == "dense":
        return [Dense(v) for v in rng.normal(size=(n, D))]
    return [Sparse(D, np.sort(rng.choice(D, i % 2, replace=False)).astype(np.uint32), rng.normal(size=i % 2)) for i in range(n)]


@pytest.mark.parametrize("master_hosts", [False, True])
@pytest.mark.parametrize(
    ("ranks", "n"), [(2, 1), (2, 70), (3, 70), (4, 33), (5, 2), (9, 200), (10, 200), (12, 9), (21, 200), (40, 39), (80, 640)]
)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rank_0_finishes_the_sum_of_one_process_and_all_hear_the_answer(ranks, n, master_hosts, kind, ranks_of):
    sent = [LINK.encode(v) for v in vectors(n, kind)]
    alone = TreeAdder(Tree(n), D).total({range(i, i + 1): m for i, m in enumerate(sent)}, LINK)
    team = ranks_of(ranks, n, master_hosts)
    assert sorted(i for each in team for i in each.mine) == list(range(n))
    for each in reversed(team):
        adder = TreeAdder(Tree(n), D)
        own = each.gather([Message(sent[i].data) for i in each.mine])
        pieces = each.rise(own, lambda found, workers, adder=adder: adder.added(found, workers, LINK))
        assert each.is_root or not pieces
        rows = each.counts(np.array([[i, 10.0 * i] for i in each.mine]).reshape(-1, 2))
    assert adder.total(pieces, LINK).dense().tobytes() == alone.dense().tobytes()
    assert rows.tolist() == [[i, 10.0 * i] for i in range(n)]
    hosts = ranks if master_hosts else ranks - 1
    if hosts in (1, 2, 4, 8) and n >= 16 * hosts and kind == "dense":  # a sum of each rank
        assert team[0].bytes_received_up == (hosts - master_hosts) * (4 + 8 + 8 * D)
    if hosts == 80 and kind == "dense":  # 5 ranks share two leaves of 20 workers; of 16 such groups 8 meet at rank 0, 8 elsewhere
        messages = sum(4 + m.data.size for m in sent[8:40])
        assert master_hosts
        assert team[0].bytes_received_up == messages + 8 * (4 + 8 + 8 * D)
    answer = Message(np.arange(9, dtype=np.uint8))
    assert [each.broadcast(answer if each.is_root else None).data.tolist() for each in team] == [list(range(9))] * ranks
    assert not any(Post.letters.values())
