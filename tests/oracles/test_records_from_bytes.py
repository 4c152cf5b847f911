"""Records, recomputed from the bytes of their runs' messages by a second program.

The runs of all seeds behind [[record]] tables run, with the candidate that [tune] chose, and each message's bytes are kept
as they go to their receivers. Nothing of the package makes the numbers that are compared then: a plain reader decodes the bytes,
a plain loop follows the workers and the master, and the data, f, f*, µ and the medians over seeds are those of plain NumPy.
"""

import lzma
import math
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fixtures import places
from helpers import plain_reader as reader
from helpers import plain_samples

import mpi_compress as mc
from mpi_compress.exchange.base import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.messages.batch import batch_of, together

JOBS = Path(__file__).parents[2] / "jobs" / "records"
FEATURES, WORKERS, KAPPA = {"a1a": 123, "w1a": 300}, {"a1a": 16, "w1a": 10}, 1e3
LENGTH = 4  # bytes of the length that comes before a message, which counts
MADE_ON = places.load(places.RUNS)["made on"]
SOLVED = 1e-6  # how far from x* the solver of `ship-data` may end
WIDER, ROUNDING = 1e-4, 1e-12  # what rounding may add: of the distance between two points of a grid, and of the largest coordinate


class Recording(Exchange):
    """An exchange that keeps the bytes of each message, and hands on these bytes alone, so that every receiver decodes them."""

    def __init__(self, n):
        super().__init__(n)
        self.ups, self.downs = [], []

    def gather(self, ups):
        self.ups.append([up.raw.tobytes() for up in (ups.part(i, i + 1) for i in range(self.n))])
        return super().gather(together([_bytes_alone(data) for data in self.ups[-1]]))

    def broadcast(self, down):
        self.downs.append(down.raw.tobytes())
        return super().broadcast(_bytes_alone(self.downs[-1]))


def _bytes_alone(data):
    return batch_of(np.frombuffer(data, np.uint8))


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
        self.L = (KAPPA + 1) * self.mu
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

    def minimiser(self):
        """x* by Newton's method from 0 on, which needs no search here; ‖∇f‖ ends below 1e-15."""
        x = np.zeros(self.d, np.longdouble)
        for _ in range(30):
            x = x - np.linalg.solve(self.hessian(x.astype(float)), self.slope(x).astype(float))
        assert np.linalg.norm(self.slope(x).astype(float)) < 1e-15
        return x


def is_near(read, v, apart):
    """True if every coordinate that was read is one of the two points of its grid that v lies between, but for rounding."""
    return bool(np.all(np.abs(read - v) <= (1 + WIDER) * apart + ROUNDING * np.abs(v).max()))


class Loop:
    """The states of `bfgs` with `memory`, and of `ef21` with the server l-bfgs and the downlink ef21-p, as all that receive the
    messages have them; what senders should have sent is compared.

    Both send C(∇f_i(x) − h_i) up and step by −H g, g the mean of the h_i, H of pairs (s, y). The master of `bfgs` sends the step;
    that of `ef21-p` is `ahead` of the x that all know by what its answers rounded away.
    """

    def __init__(self, f, method):
        """`method` is its table in the job."""
        m = method.get("senders", f.n)
        self.m = m if m >= 1 else max(1, round(m * f.n))  # below 1 it is a share
        self.f, self.at = f, method.get("at", 0) if method["name"] == "bfgs" else -1
        self.memory = method.get("memory") or method["server"]["memory"]
        self.of_hessians = reader.powers(method["hessian"]["compressor"]["fraction"]) if self.at >= 0 else None
        self.x, self.h, self.B, self.k = np.zeros(f.d), np.zeros((f.n, f.d)), None, 0
        self.pairs, self.ahead = [], np.zeros(f.d)

    def round(self, ups, down):
        """Take the messages of a round, and go on to the next x."""
        read = [self._worker(i, data) for i, data in enumerate(ups)]
        g = self.h.mean(axis=0)
        if self.k == self.at:
            self.B, self.pairs = lifted(np.mean(read, axis=0), self.f.mu), []
        elif self.k > 0:
            self.pairs = [*self.pairs, (self.s, damped(self.s, g - self.g, self.f.mu, self.f.L))][-self.memory :]
        step = -self._product(g, self.pairs)
        answer, end, apart = reader.levels(down, 0, self.f.d)
        assert end == len(down)
        assert is_near(answer, self.ahead + step, apart), "the answer is what the messages up amount to"
        if self.at < 0:
            self.s, self.ahead = step, self.ahead + step - answer
        else:
            self.s = answer
        self.g, self.x, self.k = g, self.x + answer, self.k + 1

    def _worker(self, i, data):
        """The Hessian of a worker's message in round `at`, None in others; its gradient goes to h_i."""
        f, M = self.f, None
        v, end, apart = reader.levels(data, 0, f.d)
        assert is_near(v, f.gradient(self.x, i) - self.h[i], apart)
        self.h[i] += v
        if self.k == self.at:
            sends = any(i == -(-j * f.n // self.m) for j in range(self.m))  # m of n, evenly spaced
            sent = reader.triangle(f.n / self.m * f.hessian(self.x, f.shards[i], f.n) if sends else np.zeros((f.d, f.d)))
            v, end, apart = self.of_hessians(data, end, f.d * (f.d + 1) // 2)
            assert is_near(v, sent, apart)
            M = reader.matrix(v)
        assert end == len(data), "nothing is left over of a message"
        return M

    def _product(self, p, pairs):
        """H p, H = (I − ρ s yᵀ) H⁻ (I − ρ y sᵀ) + ρ s sᵀ by the last pair, ρ = 1/sᵀy, and H⁻ by those before."""
        if not pairs:
            return self._begun(p)
        *older, (s, y) = pairs
        α = (s @ p) / (s @ y)
        r = self._product(p - α * y, older)
        return r + (α - (y @ r) / (s @ y)) * s

    def _begun(self, p):
        """H p of no pairs, scaled as the newest one says."""
        s, y = self.pairs[-1] if self.pairs else (None, None)
        if self.B is None:
            return p / (self.f.L if s is None else min(self.f.L, (y @ y) / (s @ y)))
        return np.linalg.solve(self.B, p) * (1.0 if s is None else (s @ y) / (y @ np.linalg.solve(self.B, y)))


class Sent:
    """The states of `ship-data`: the rows of the first messages are those of the shards, and the answers add up to their minimiser,
    each but for the levels that it was rounded to."""

    def __init__(self, f, method):
        assert method == {"name": "ship-data"}
        self.f, self.x, self.k, self.x_star = f, np.zeros(f.d), 0, f.minimiser().astype(float)

    def round(self, ups, down):
        for i, data in enumerate(ups):
            assert rows_in(data, self.f.d) == self._rows(i) if self.k == 0 else not data
        answer, end, apart = reader.levels(down, 0, self.f.d, short=True)
        assert end == len(down)
        assert np.all(np.abs(answer - (self.x_star - self.x)) <= (1 + WIDER) * apart + SOLVED)
        self.x, self.k = self.x + answer, self.k + 1

    def _rows(self, i):
        """The rows of a shard: labels, the places of their entries, and these."""
        each = zip(self.f.y[self.f.shards[i]].tolist(), self.f.A[self.f.shards[i]], strict=True)
        return sorted((y, np.flatnonzero(a).tolist(), a[a != 0].tolist()) for y, a in each)


@cache
def rows_in(data, d):
    """The rows of a message, which has nothing more."""
    rows, end = plain_samples.rows_of(data, d)
    assert end == len(data)
    return sorted(rows)


def lifted(M, µ):
    """M, its eigenvalues below µ, or below the size of the least one if that is negative, lifted to that."""
    values, vectors = np.linalg.eigh(M)
    return vectors @ np.diag(np.maximum(values, max(µ, -values.min()))) @ vectors.T


def damped(s, y, c, L):
    """y with sᵀy ≥ c‖s‖², as Powell damps BFGS's update; here towards L s."""
    θ = 1.0 if s @ y >= c * (s @ s) else (L - c) * (s @ s) / (L * (s @ s) - s @ y)
    return θ * y + (1 - θ) * L * s


def followed(loop, f_star, sent):
    """What the loop finds in the messages: the gap before each round and at the end, and the bits until then."""
    gaps, bits, bits_up = [], [0], [0]
    for messages, answer in zip(sent.ups, sent.downs, strict=True):
        gaps.append(float(loop.f.value(loop.x) - f_star))
        loop.round(messages, answer)
        bits_up.append(bits_up[-1] + sum(8 * (LENGTH + len(message)) for message in messages))
        bits.append(bits[-1] + bits_up[-1] - bits_up[-2] + loop.f.n * 8 * (LENGTH + len(answer)))
    return [*gaps, float(loop.f.value(loop.x) - f_star)], {"wire_bits": bits, "wire_bits_up": bits_up}


RUNS = {  # the data, the label, the place of the candidate that [tune] chose (by the protocol's sets), and how many [[record]] tables
    "L-BFGS": ("w1a", "EF21, L-BFGS", 7, 4),
    "BFGS": ("a1a", "BFGS", 0, 4),
    "sending the data": ("a1a", "sending the data", 1, 4),
}
CODERS = {
    "7 levels": (mc.coder("qsgd", levels=7, norm="max", codec="entropy", float=32), reader.levels),
    "10,000 levels": (mc.coder("qsgd", levels=10_000, norm="max", codec="entropy", float=32), reader.levels),
    "powers": (mc.coder("natural", fraction=2, codec="entropy"), reader.powers(2)),
    "powers, 8 digits": (mc.coder("natural", fraction=8, codec="entropy"), reader.powers(8)),
}


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
def test_the_bits_of_a_record_are_medians_of_messages_that_lead_to_its_level(name, real_data, tmp_path, monkeypatch):
    (data, label, chosen, claimed), made = RUNS[name], []
    label, file = f"{label}, mu = 1e-3 L", JOBS / f"{data}.toml"
    monkeypatch.setattr(Ranks, "exchange", lambda ranks, n, *how: made.append(Recording(n)) or made[-1])
    job = mc.load_job(file, only=label)
    specs = [spec.changed(spec.tune.put(spec.tune.grid[chosen]), label, without="tune") for spec in job.runs]
    runs = mc.run(replace(job, runs=specs), out=tmp_path, quiet=True)
    f, found = Logistic(real_data / f"{data}.xz", FEATURES[data], WORKERS[data]), []
    f_star = f.value(f.minimiser())
    for run, spec, sent in zip(runs, specs, made, strict=True):
        loop = (Sent if label.startswith("sending") else Loop)(f, spec.written["algorithm"])
        gaps, bits = followed(loop, f_star, sent)
        assert run.attrs["mu"] == pytest.approx(f.mu, rel=1e-12)
        assert np.array_equal(run.x, loop.x), "the answers alone make x"
        assert run.column("suboptimality") == pytest.approx(gaps, rel=1e-9, abs=1e-15)
        assert {column: run.column(column).tolist() for column in bits} == bits
        found.append((gaps, bits))
    places.skip_elsewhere(MADE_ON)
    records = [record for record in tomllib.loads(file.read_text()).get("record", []) if record["run"] == label]
    assert len(records) == claimed
    for record in records:
        firsts = [next((t for t, gap in enumerate(gaps) if gap <= record["to"]["suboptimality"]), -1) for gaps, _ in found]
        for column in ("wire_bits", "wire_bits_up"):
            took = [math.inf if t < 0 else bits[column][t] for t, (_, bits) in zip(firsts, found, strict=True)]
            assert math.ceil(np.median(took)) == record[column], record
