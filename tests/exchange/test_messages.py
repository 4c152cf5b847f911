"""Messages of any length, one after another, arrive as they were sent: whole, refused, silent, one or many at once."""

import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.running import BIN, PATIENT

from mpi_compress.messages.link import REFUSED, Message

PROGRAM = """
from types import SimpleNamespace
import numpy as np
from mpi4py import MPI
from mpi_compress.exchange.mpi import AllGather, PointToPoint
from mpi_compress.messages.link import REFUSED, Message

comm = MPI.COMM_WORLD
lengths = [0, 1, None, 100, 16384, 16385, 16385, 16385, 20000, 16385, 5, 300_000, 300_000, None, 300_000, 300_000, 70_000, 0]
made = lambda k, i, length: Message(REFUSED if length is None else np.full(length, 50 * i + k, np.uint8))
seen = lambda m: None if m.is_refused else (m.data.size, *([] if m.data.size == 0 else [m.data.min(), m.data.max()]))
wanted = lambda k, i, length: seen(made(k, i, length))
for exchange in (PointToPoint(comm, 3, False, 60.0), PointToPoint(comm, 5, True), AllGather(comm, 5, 60.0)):
    held, received = [], 0
    for k, length in enumerate(lengths):
        of = lambda i, k=k, length=length: length if i != 1 else lengths[-1 - k]
        arrived = exchange.gather([made(k, i, of(i)) for i in exchange.mine])
        assert not exchange.has_master or [seen(m) for m in arrived] == [wanted(k, i, of(i)) for i in range(exchange.n)]
        received += sum(4 + (of(i) or 0) for i in range(exchange.n) if i not in exchange.mine) if exchange.has_master else 0
        held.append((arrived, k, of))
        if not isinstance(exchange, AllGather):
            assert seen(exchange.broadcast(made(k, 0, length) if exchange.is_root else None)) == wanted(k, 0, length)
            downs = exchange.scatter([made(k, i, of(i)) for i in range(exchange.n)] if exchange.is_root else None)
            assert [seen(m) for m in downs] == [wanted(k, i, of(i)) for i in exchange.mine]
    for arrived, k, of in held:
        assert [seen(m) for m in arrived] in ([], [wanted(k, i, of(i)) for i in range(exchange.n)])
    assert exchange.bytes_received_up == received
    for length in (1, 12_000, 40_000):  # reports: several together, or each in a message of its own
        into = SimpleNamespace(seen=[], add=lambda report: into.seen.append((report.size, report[0])))
        exchange.collect((np.full(length, float(i)) for i in exchange.mine), into if exchange.is_root else None)
        assert into.seen == [(length, i) for i in range(exchange.n if exchange.is_root else 0)]
    exchange.close()
if comm.rank == 0:
    print("done")
"""


@pytest.mark.parametrize("crowded", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_messages_arrive_as_they_were_sent(crowded):
    line = [str(BIN / "mpiexec"), "-n", "3", sys.executable, "-m", "mpi4py", "-c", PROGRAM]
    environment = {**os.environ, "MPI_COMPRESS_CROWDED": crowded}
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENT, env=environment)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_joined_messages_are_lengths_and_bytes_and_are_parted_again():
    from mpi_compress.exchange.channel import joined, parted

    messages = [Message(np.arange(3, dtype=np.uint8)), Message(REFUSED), Message(np.empty(0, np.uint8)), Message(np.full(1, 9, np.uint8))]
    data = joined(messages)
    assert data.tobytes().hex() == "03000000" "ffffffff" "00000000" "01000000" "000102" "09"
    again = parted(data, 4)
    assert [m.is_refused for m in again] == [False, True, False, False]
    assert [m.data.tolist() for m in again] == [[0, 1, 2], [], [], [9]]


def test_messages_that_are_here_before_they_are_received_are_not_mistaken_for_each_other(monkeypatch):
    """Nobody waits for a rank without workers: the next message, long and as long as the one before it, may be here already."""
    from mpi4py import MPI

    from mpi_compress.exchange import channel

    monkeypatch.setattr(channel, "_SHORT", 100)
    messages = channel.Messages(MPI.COMM_SELF, False, 0)

    def sent(k, length):
        return messages.begin_to_send([Message(np.full(length, k, np.uint8))], [0], 2)

    lengths = [300, 200, 200, 200, 50, 50, 200, 300, 300]
    requests = [*sent(0, lengths[0])]
    for k, length in enumerate(lengths):
        if k == 1:  # all others are sent before any of them is received
            requests += [request for i in range(1, len(lengths)) for request in sent(i, lengths[i])]
        ((data,),) = ([m.data for m in found] for found in messages.receive_messages({0: 1}, 2).values())
        assert (data.size, set(data.tolist())) == (length, {k})
    messages.wait(*requests)
    messages.free()
