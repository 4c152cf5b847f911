"""Messages of any length, one after another, arrive as they were sent: whole, refused, silent, one or many at once."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers.refusals import naming
from helpers.running import BIN, PATIENT

from mpi_compress.core.errors import NotAsAnnounced
from mpi_compress.exchange.base import announced, arrived, framed
from mpi_compress.messages.batch import SILENT, batch_of, together
from mpi_compress.messages.fields import ROOM

PROGRAM = """
import numpy as np
from mpi4py import MPI
from mpi_compress.exchange.mpi import AllGather, PointToPoint
from dataclasses import replace
from mpi_compress.messages.batch import SILENT, batch_of, silent, together

comm = MPI.COMM_WORLD
lengths = [0, 1, None, 100, 16384, 16385, 16385, 16385, 20000, 16385, 5, 300_000, 300_000, None, 300_000, 2_000_000, 70_000, 0]
lengths += [1, 2_000_000, *lengths[::-1], 2_000_000, 1, 0]  # those of 1 MiB and more stay where they are until they must go on
refused = replace(SILENT, refused={0: None})
made = lambda k, i, length: refused if length is None else batch_of(np.full(length, 50 * i + k, np.uint8))
of_one = lambda m: None if m.refused else (m.size, *([] if m.size == 0 else [m.raw.min(), m.raw.max()]))
seen = lambda batch: [of_one(batch.part(i, i + 1)) for i in range(len(batch))]
wanted = lambda k, i, length: of_one(made(k, i, length))
for exchange in (PointToPoint(comm, 3, False, 60.0), PointToPoint(comm, 5, True), AllGather(comm, 5, 60.0)):
    held, received = [], 0
    for k, length in enumerate(lengths):
        of = lambda i, k=k, length=length: length if i != 1 else lengths[-1 - k]
        arrived = exchange.gather(together([made(k, i, of(i)) for i in exchange.mine]))
        assert not exchange.has_master or seen(arrived) == [wanted(k, i, of(i)) for i in range(exchange.n)]
        received += sum(4 + (of(i) or 0) for i in range(exchange.n) if i not in exchange.mine) if exchange.has_master else 0
        held.append((arrived, k, of))
        if not isinstance(exchange, AllGather):
            assert seen(exchange.broadcast(made(k, 0, length) if exchange.is_root else None)) == [wanted(k, 0, length)]
            downs = exchange.scatter(together([made(k, i, of(i)) for i in range(exchange.n)]) if exchange.is_root else None)
            assert seen(downs) == [wanted(k, i, of(i)) for i in exchange.mine]
    for arrived, k, of in held:
        assert seen(arrived) in ([], [wanted(k, i, of(i)) for i in range(exchange.n)])
    assert exchange.bytes_received_up == received
    for length in (1, 12_000, 40_000):  # reports
        of_each = [[np.full((1, length), float(i)), np.arange(i, dtype=np.uint32)] for i in exchange.mine]
        arrived = [(len(report[0]), report[0][0, -1], report[1].size) for report in exchange.collect(iter(of_each))]
        assert arrived == [(1, i, i) for i in range(exchange.n if exchange.is_root else 0)]
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
    refused = replace(batch_of(np.full(2, 5, np.uint8)), refused={0: OverflowError()})  # whose bytes do not travel
    messages = together([batch_of(np.arange(3, dtype=np.uint8)), refused, SILENT, batch_of(np.full(1, 9, np.uint8))])
    lengths, data = framed(messages)
    assert (lengths.tobytes().hex(), data.tobytes().hex()) == ("03000000" "ffffffff" "00000000" "01000000", "000102" "09")
    again = arrived(np.append(data, np.zeros(ROOM, np.uint8)), announced(lengths))
    assert [*again.refused] == [1]
    assert [again.part(i, i + 1).raw.tolist() for i in range(4)] == [[0, 1, 2], [], [], [9]]


def test_messages_that_are_here_before_they_are_received_are_not_mistaken_for_each_other(monkeypatch):
    """Nobody waits for a rank without workers: the next message, long and as long as the one before it, may be here already."""
    from mpi4py import MPI

    from mpi_compress.exchange import channel

    monkeypatch.setattr(channel, "_SHORT", 100)
    messages = channel.Messages(MPI.COMM_SELF, False, 0)

    def sent(k, length):
        return messages.begin_to_send(batch_of(np.full(length, k, np.uint8)), [0], 2)

    lengths = [300, 200, 200, 200, 50, 50, 200, 300, 300]
    requests = [*sent(0, lengths[0])]
    for k, length in enumerate(lengths):
        if k == 1:  # all others are sent before any of them is received
            requests += [request for i in range(1, len(lengths)) for request in sent(i, lengths[i])]
        data = messages.receive_messages({0: 1}, 2)[0].raw
        assert (data.size, set(data.tolist())) == (length, {k})
    messages.wait(*requests)
    messages.free()


CUT = """
import sys
import numpy as np
from mpi4py import MPI
from mpi_compress.core.ending import run_to_the_end
from mpi_compress.exchange import channel
from mpi_compress.messages.batch import batch_of

part, length, change = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

class Changing:  # a communicator that cuts messages, or lengthens them
    def __init__(self, comm):
        self.comm, self.sent = comm, 0

    def Isend(self, data, rank, tag):
        data, self.sent = np.frombuffer(data, np.uint8), self.sent + 1
        if (self.sent > 1) == (part == "second"):
            data = np.concatenate([data, np.zeros(change, np.uint8)]) if change > 0 else data[:change]
        return self.comm.Isend(data, rank, tag)

def main():
    messages = channel.Messages(MPI.COMM_WORLD, None, 1)
    for k in range(2):
        if MPI.COMM_WORLD.rank == 0:
            message = messages.receive_messages({1: 1}, 2)[1]
            print(k, message.size, flush=True)
        else:
            messages.comm = Changing(messages.comm) if k else messages.comm
            messages.send_messages(batch_of(np.full(length, 7, np.uint8)), [0], 2)
    return 0

sys.exit(run_to_the_end(main))
"""


@pytest.mark.parametrize("crowded", ["0", "1"])
@pytest.mark.parametrize(("part", "length", "change", "said"), [
    ("first", 10, -1, "13 bytes came from rank 1, which has announced 14"),
    ("first", 10, 1, "15 bytes 1 14"),
    ("first", 10, 20_000, "more bytes came from one of ranks [1] than it has announced"),
    ("second", 40_000, -1, "39999 bytes 1 40000"),
    ("second", 40_000, 1, "more bytes [1]"),
])  # fmt: skip
def test_bytes_that_are_not_as_announced_end_all_ranks_in_one_line(part, length, change, said, crowded):
    line = [str(BIN / "mpiexec"), "-n", "2", sys.executable, "-c", CUT, part, str(length), str(change)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENT, env={**os.environ, "MPI_COMPRESS_CROWDED": crowded})
    assert done.returncode == 3
    assert done.stdout == f"0 {length}\n"
    (told,) = [line for line in done.stderr.splitlines() if line.startswith("mpi-compress")]
    assert re.search(naming(f"mpi-compress: rank 0: {said} this MPI"), told)
    assert "Traceback" not in done.stderr


def test_joined_messages_that_are_cut_are_refused():
    lengths, data = framed(together([batch_of(np.arange(3, dtype=np.uint8)), batch_of(np.full(5, 9, np.uint8))]))
    for changed in (data[:-1], np.append(data, np.uint8(0))):
        with pytest.raises(NotAsAnnounced, match="bytes came where 8 were announced"):
            arrived(np.append(changed, np.zeros(ROOM, np.uint8)), announced(lengths))
