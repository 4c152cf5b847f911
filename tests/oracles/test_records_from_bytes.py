"""Records, recomputed from the bytes of their runs' messages by a second program.

The runs behind [[record]] tables are played, and each message's bytes are kept as they go to their receivers. Nothing of the
package makes the numbers that are compared then: a plain reader decodes the bytes, a plain loop follows the workers and the
master of `bfgs`, and the data, f, f* and µ are those of plain NumPy.
"""

import lzma
import tomllib
from pathlib import Path

import numpy as np
import pytest
from fixtures import places
from helpers import plain_reader as reader

import mpi_compress as mc
from mpi_compress.exchange.base import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.messages.link import Message

JOBS = Path(__file__).parents[2] / "jobs" / "records"
FEATURES, WORKERS, KAPPA = {"a1a": 123, "mushrooms": 112, "ijcnn1.val": 22}, {"a1a": 16, "mushrooms": 10, "ijcnn1.val": 20}, 1e3
LENGTH = 4  # bytes of the length that comes before a message, which counts
MADE_ON = places.load(places.RUNS)["made on"]
WIDER, ROUNDING = 1e-4, 1e-12  # what rounding may add: of the distance between two points of a grid, and of the largest coordinate


class Recording(Exchange):
    """An exchange that keeps the bytes of each message, and hands on these bytes alone, so that every receiver decodes them."""

    def __init__(self, n):
        super().__init__(n)
        self.ups, self.downs = [], []

    def gather(self, ups):
        self.ups.append([up.data.tobytes() for up in ups])
        return super().gather([_bytes_alone(data) for data in self.ups[-1]])

    def broadcast(self, down):
        self.downs.append(down.data.tobytes())
        return super().broadcast(_bytes_alone(self.downs[-1]))


def _bytes_alone(data):
    return Message(np.frombuffer(data, np.uint8).copy())


class Logistic:
    """The mean logistic loss of a file of LIBSVM text with (µ/2)‖x‖², µ = L/κ, and the f_i of n workers; values in long floats."""

    def __init__(self, file, d, n):
        rows = [line.split() for line in lzma.decompress(file.read_bytes()).decode().splitlines()]
        labels = np.array([float(row[0]) for row in rows])
        self.y = np.where(labels == labels.max(), 1.0, -1.0)
        self.A = np.zeros((len(rows), d))
        for j, (_, *entries) in enumerate(rows):
            for index, number in (entry.split(":") for entry in entries):
                self.A[j, int(index) - 1] = float(number)
        self.N, self.d, self.n = len(rows), d, n
        self.mu = np.linalg.eigvalsh(self.A.T @ self.A)[-1] / (4 * self.N) / KAPPA
        self.shards = [slice(i * self.N // n, (i + 1) * self.N // n) for i in range(n)]
        self.long = self.A.astype(np.longdouble)

    def value(self, x):
        x = x.astype(np.longdouble)
        return np.logaddexp(0, -self.y * (self.long @ x)).sum() / self.N + self.mu * (x @ x) / 2

    def slope(self, x):
        """∇f(x) in long floats."""
        x = x.astype(np.longdouble)
        return self.long.T @ (-self.y / (1 + np.exp(self.y * (self.long @ x)))) / self.N + self.mu * x

    def gradient(self, x, i):
        A, y = self.A[self.shards[i]], self.y[self.shards[i]]
        return self.n / self.N * (A.T @ (-y / (1 + np.exp(y * (A @ x))))) + self.mu * x

    def hessian(self, x, rows=slice(None), weight=1.0):
        """The second derivatives, where rows of a shard have a `weight` times 1/N."""
        A, σ = self.A[rows], 1 / (1 + np.exp(-(self.A[rows] @ x)))
        return weight / self.N * (A.T * (σ * (1 - σ))) @ A + self.mu * np.eye(self.d)

    def least(self):
        """f* by Newton's method from 0 on, which needs no search here; ‖∇f‖ ends below 1e-15."""
        x = np.zeros(self.d, np.longdouble)
        for _ in range(30):
            x = x - np.linalg.solve(self.hessian(x.astype(float)), self.slope(x).astype(float))
        assert np.linalg.norm(self.slope(x).astype(float)) < 1e-15
        return self.value(x)


def is_near(read, v, apart):
    """True if every coordinate that was read is one of the two points of its grid that v lies between, but for rounding."""
    return bool(np.all(np.abs(read - v) <= (1 + WIDER) * apart + ROUNDING * np.abs(v).max()))


class Loop:
    """The states of `bfgs`, as all that receive the messages have them; what senders should have sent is compared."""

    def __init__(self, f, up, down, senders):
        self.f, self.up, self.down, self.senders = f, up, down, senders
        self.x, self.h, self.B, self.k = np.zeros(f.d), np.zeros((f.n, f.d)), None, 0

    def round(self, ups, down):
        """Take the messages of a round, and go on to the next x."""
        read = [self._worker(i, data) for i, data in enumerate(ups)]
        g = self.h.mean(axis=0)
        self.B = lifted(np.mean(read, axis=0), self.f.mu) if self.k == 0 else updated(self.B, self.s, g - self.g)
        self.s, end, apart = self.down(down, 0, self.f.d)
        assert end == len(down)
        assert is_near(self.s, -np.linalg.solve(self.B, g), apart), "the answer is what the messages up amount to"
        self.g, self.x, self.k = g, self.x + self.s, self.k + 1

    def _worker(self, i, data):
        """The Hessian of a worker's message, None after round 0; its gradient goes to h_i."""
        f, M = self.f, None
        v, end, apart = self.up(data, 0, f.d)
        assert is_near(v, f.gradient(self.x, i) - self.h[i], apart)
        self.h[i] += v
        if self.k == 0:
            m = self.senders
            sends = any(i == -(-j * f.n // m) for j in range(m))  # m of n, evenly spaced
            sent = reader.triangle(f.n / m * f.hessian(self.x, f.shards[i], f.n) if sends else np.zeros((f.d, f.d)))
            v, end, apart = reader.powers(2)(data, end, f.d * (f.d + 1) // 2)
            assert is_near(v, sent, apart)
            M = reader.matrix(v)
        assert end == len(data), "nothing is left over of a message"
        return M


def lifted(M, µ):
    values, vectors = np.linalg.eigh(M)
    return vectors @ np.diag(np.maximum(values, µ)) @ vectors.T


def updated(B, s, y):
    """BFGS's update, damped as Powell has it (Nocedal and Wright 2006, Procedure 18.2)."""
    Bs = B @ s
    θ = 1.0 if s @ y >= 0.2 * (s @ Bs) else 0.8 * (s @ Bs) / (s @ Bs - s @ y)
    r = θ * y + (1 - θ) * Bs
    return B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(r, r) / (s @ r)


RUNS = {
    "a1a, 15 levels": ("a1a", "BFGS, 15 levels", reader.levels, reader.levels, 16),
    "a1a, 15 levels of four": ("a1a", "BFGS, a quarter's Hessians, 15 levels", reader.levels, reader.levels, 4),
    "a1a, powers": ("a1a", "BFGS, natural", reader.powers(2), reader.powers(4), 16),
    "mushrooms, 15 levels": ("mushrooms", "BFGS, 15 levels", reader.levels, reader.levels, 10),
    "ijcnn1.val, 15 levels of five": ("ijcnn1.val", "BFGS, a quarter's Hessians, 15 levels", reader.levels, reader.levels, 5),
}
CODERS = {
    "7 levels": (mc.coder("qsgd", levels=7, norm="max", codec="entropy", float=32), reader.levels),
    "10,000 levels": (mc.coder("qsgd", levels=10_000, norm="max", codec="entropy", float=32), reader.levels),
    "powers": (mc.coder("natural", fraction=2, codec="entropy"), reader.powers(2)),
    "powers, 8 digits": (mc.coder("natural", fraction=8, codec="entropy"), reader.powers(8)),
}
CLAIMED = {  # [[record]] tables
    "a1a, 15 levels": 0, "a1a, 15 levels of four": 4, "a1a, powers": 0, "mushrooms, 15 levels": 3,
    "ijcnn1.val, 15 levels of five": 4,
}  # fmt: skip


@pytest.mark.parametrize("spread", [0.0, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("coder", [*CODERS])
def test_the_plain_reader_reads_what_the_codec_writes_and_finds_its_end(coder, spread):
    rng = np.random.default_rng(int(10 * spread))
    written, read = CODERS[coder]
    for d in (1, 2, 60, 1000):
        v = rng.standard_normal(d) * np.exp(spread * rng.standard_normal(d)) * (rng.random(d) < spread)
        data = written.encode(v, 1)
        found, end, apart = read(data + rng.bytes(12), 0, d)
        assert end == len(data)
        assert found.tobytes() == (written.decode(data, d) + 0.0).tobytes()
        assert is_near(found, v, apart)
        if v.any():
            with pytest.raises((AssertionError, IndexError)):
                read(data[:-1], 0, d)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_bits_of_a_record_are_those_of_messages_that_lead_to_its_level(name, real_data, tmp_path, monkeypatch):
    data, label, up, down, senders = RUNS[name]
    label, job, made = f"{label}, mu = 1e-3 L", JOBS / f"{data}.toml", []
    monkeypatch.setattr(Ranks, "exchange", lambda ranks, n, *how: made.append(Recording(n)) or made[-1])
    (run,) = mc.run(mc.load_job(job, only=label), out=tmp_path, quiet=True)
    (sent,) = made
    f = Logistic(real_data / f"{data}.xz", FEATURES[data], WORKERS[data])
    f_star, loop, gaps, bits, bits_up = f.least(), Loop(f, up, down, senders), [], [0], [0]
    for messages, answer in zip(sent.ups, sent.downs, strict=True):
        gaps.append(float(f.value(loop.x) - f_star))
        loop.round(messages, answer)
        bits_up.append(bits_up[-1] + sum(8 * (LENGTH + len(message)) for message in messages))
        bits.append(bits[-1] + bits_up[-1] - bits_up[-2] + f.n * 8 * (LENGTH + len(answer)))
    gaps.append(float(f.value(loop.x) - f_star))
    assert run.attrs["mu"] == pytest.approx(f.mu, rel=1e-12)
    assert np.array_equal(run.x, loop.x), "the answers alone make x"
    assert run.column("suboptimality") == pytest.approx(gaps, rel=1e-9, abs=1e-15)
    assert run.column("wire_bits_up").tolist() == bits_up
    assert run.column("wire_bits").tolist() == bits
    places.skip_elsewhere(MADE_ON)
    records = [record for record in tomllib.loads(job.read_text())["record"] if record["run"] == label]
    assert len(records) == CLAIMED[name]
    for record in records:
        first = next(t for t, gap in enumerate(gaps) if gap <= record["to"]["suboptimality"])
        assert (bits[first], bits_up[first]) == (record["wire_bits"], record["wire_bits_up"]), record
