"""States are saved as data: they come back to the last bit, and whatever a file says, nothing of it is run, and nothing crashes."""

import json
import random
import struct
import tracemalloc
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.algorithms.error_memory import LOGS, ErrorMemory, FollowedNorms
from mpi_compress.algorithms.estimators import cat, ef
from mpi_compress.algorithms.parts import IterateMean, Node, ServerState
from mpi_compress.messages.kinds import Dense, WithScalar
from mpi_compress.problem.scaled_vector import ScaledVector
from mpi_compress.saving.frames import dump
from mpi_compress.saving.saved_states import UNKNOWN, Damaged, Expected, load

DIM = 40
OURS = Expected(True, DIM)


@dataclass
class Entry:
    """Of a user's state, found only later in a run."""

    at: int
    sent: Any


@dataclass(slots=True)
class Slotted:
    a: float = 0.5


@dataclass
class Own:
    """A user's state."""

    x: np.ndarray
    more: Any = None
    past: list[Entry] = field(default_factory=list)

    @cached_property
    def norm(self):
        return float(np.linalg.norm(self.x))


THEIRS = Expected(False, DIM, Own)


def first_own():
    return Own(np.zeros(DIM))


def later_own():
    state = Own(np.linspace(-1, 1, DIM))
    sparse = mc.Sparse(DIM, np.array([3, 7], dtype=np.uint32), np.array([0.5, -0.0]))
    state.past = [Entry(3, sparse), Entry(4, WithScalar(2.5, Dense(np.ones(DIM))))]
    state.more = {
        "nan": -np.float64("nan"), "inf": float("-inf"), "own nan": struct.unpack("<d", b"\1\0\0\0\0\0\xf8\xff")[0],
        2: (1, True, None, "ü", b"\0\xff", 1 + 2j, 10**40), "tuple": (np.float32(0.1), np.int8(-3), np.bool_(True)),
        "arrays": [np.arange(6).reshape(2, 3).T, np.array(3.5), np.zeros((0, 3)), np.array([True, False]), np.array(["a", "bc"])],
        "sets": ({1, 2}, frozenset(["x"])), "slots": Slotted(0.25), "scaled": ScaledVector(np.ones(3), 0.5),
    }  # fmt: skip
    state.unforeseen = [state.x, state.past]  # shared, and no field
    assert state.norm > 0
    return state


def same(a: Any, b: Any) -> bool:
    """True if two states are equal in every bit and type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.flags.fnc, a.tobytes()) == (b.dtype, b.shape, b.flags.fnc, b.tobytes())
    if isinstance(a, float | np.generic):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if hasattr(a, "__dict__"):
        return same({k: v for k, v in vars(a).items() if k != "norm"}, {k: v for k, v in vars(b).items() if k != "norm"})
    return a == b


def test_a_users_state_comes_back_in_every_bit_and_type():
    saved = later_own()
    found = load(dump(saved), first_own(), THEIRS)
    assert same(found, saved)
    assert found.x is found.unforeseen[0]
    assert found.past is found.unforeseen[1]
    assert found.x.flags.writeable
    assert "norm" not in vars(found)
    loop = [1]
    loop.append(loop)
    found = load(dump(loop), UNKNOWN, THEIRS)
    assert found[1] is found


def memory(e: Any, followed: Any = None, **more: Any) -> ErrorMemory:
    """The error memory of one worker."""
    return ErrorMemory(e, np.zeros(len(LOGS)), **{"step": 0.0, "followed": followed, **more})


NORMS = FollowedNorms(0.0, 0.0, 0.0, 0.0)


def ours():
    """First and later states of algorithms of this package."""
    z, r = np.zeros, np.random.default_rng(0).normal
    first = Node(ServerState(ScaledVector(z(DIM)), IterateMean(z(DIM))), ef.Memory(ef.Regime(z(DIM))))
    moved = ServerState(ScaledVector(r(size=DIM), 0.25), IterateMean(r(size=DIM), 2.0))
    yield first, Node(moved, ef.Memory(ef.Regime(r(size=DIM), 3.0, False), 7))
    yield memory(z(DIM), NORMS), memory(r(size=DIM), FollowedNorms(1.0, np.float64(2.0), 0.0, float("nan")), step=0.5)
    yield cat.Worker(0.0), cat.Worker(np.float64(3.0))


def test_states_of_ours_come_back_and_their_first_ones_stay_as_they_were():
    for first, later in ours():
        before = dump(first).tobytes()
        assert same(load(dump(later), first, OURS), later)
        assert dump(first).tobytes() == before


@pytest.mark.parametrize("other", [
    memory(np.zeros(DIM - 1)), memory(np.zeros(DIM, dtype=np.float32)), memory(np.zeros((DIM, 1))), memory(None),
    memory(np.zeros(DIM), NORMS), memory(np.zeros(DIM), step="1"), memory(np.zeros(DIM), step=1j),
    memory(ScaledVector(np.zeros(DIM))), cat.Worker(0.0), None, 3, [np.zeros(DIM)],
])  # fmt: skip
def test_a_state_of_another_kind_or_shape_is_refused(other):
    with pytest.raises(Damaged):
        load(dump(other), memory(np.zeros(DIM)), OURS)


def test_a_vector_of_a_users_state_keeps_its_length_and_compressed_vectors_are_checked():
    with pytest.raises(Damaged):
        load(dump(Own(np.zeros(DIM - 1))), first_own(), THEIRS)
    outside = mc.Sparse(DIM, np.array([3, 10**9], dtype=np.uint32), np.ones(2))
    with pytest.raises(Damaged, match="indices"):
        load(dump(Own(np.zeros(DIM), outside)), first_own(), THEIRS)


def framed(tree: Any, behind: bytes = b"") -> np.ndarray:
    text = (tree if isinstance(tree, str) else json.dumps(tree)).encode()
    return np.frombuffer(struct.pack("<Q", len(text)) + text + behind, dtype="u1")


@pytest.mark.parametrize("expected", [OURS, THEIRS])
@pytest.mark.parametrize(
    "change", [lambda fields: fields.update(more=1), lambda fields: fields.pop("step")], ids=["one more", "one less"]
)
def test_a_class_of_ours_with_other_fields_is_refused_also_in_a_users_state(change, expected):
    """So a checkpoint of other code is not gone on from, though nothing else says which code wrote it."""
    frame, first = dump(memory(np.zeros(DIM))).tobytes(), memory(np.zeros(DIM))
    end = 8 + struct.unpack("<Q", frame[:8])[0]
    tree = json.loads(frame[8:end])
    assert same(load(framed(tree, frame[end:]), first, expected), first)
    change(tree[2])
    with pytest.raises(Damaged, match="other fields"):
        load(framed(tree, frame[end:]), first, expected)


BASE = "mpi_compress.algorithms.error_memory.ErrorMemory"
HOSTILE = [
    ["object", "os.system", {}], ["object", "subprocess.Popen", {"args": "true"}], ["object", "builtins.type", {"__class__": 1}],
    ["object", "mpi_compress.saving.checkpoint.Header", {"k": 1}], ["object", BASE, {"__class__": 3}], ["object", BASE, {"drop": 3}],
    ["object", BASE, 3], ["object", [], {}], ["object"], ["os"], [], {}, {"a": 1}, [[]], [None], ["array"], ["same", 0], ["same", -1], ["same", True],
    ["same", 10**30], ["array", "|O8", [1], "C"], ["array", "O", [1], "C"], ["array", "<V8", [1], "C"],
    ["array", "<f8", [10**18], "C"], ["array", "<f8", [10**30, 0], "C"], ["array", "<f8", [-1], "C"], ["array", "<f8", [True], "C"],
    ["array", "<f8", [1.5], "C"], ["array", "<f8", [0] * 64, "C"], ["array", "<f8", [], "A"], ["array", "<f8", 3, "C"], ["array", "f8,O", [1], "C"],
    ["array", "<U999999999", [1], "C"], ["array", "<M8[generic]", [1], "C"], ["array", "<f3", [1], "C"], ["number", "O"], ["number", 3],
    ["python", "O"], ["python", 3], ["bytes", "zz"], ["float", "00"], ["dict", ["list"], 1], ["dict", 1], ["set", ["list"]], ["frozenset", ["dict"]],
    "[" * 100_000 + "]" * 100_000, "[\"list\"," * 3000 + "1" + "]" * 3000, "NaN", "[\"list\", Infinity]", "", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    "1" * 10_000, "nul",
]  # fmt: skip


def survives(frame: np.ndarray, first: Any, expected: Expected) -> bool:
    """True if a frame is read as a state; otherwise it must be Damaged, and either way take no memory beyond the file's size."""
    tracemalloc.reset_peak()
    begun = tracemalloc.get_traced_memory()[0]
    try:
        found = load(frame, first, expected)
    except Damaged:
        return False
    finally:
        assert tracemalloc.get_traced_memory()[1] - begun < 100 * frame.size + 300_000
    if expected.exact:
        kept = load(dump(found), first, expected)
        assert same(kept, found)
    return True


@pytest.fixture
def measured():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("behind", [b"", b"\xff" * 4096], ids=["nothing behind", "bytes behind"])
@pytest.mark.parametrize(("first", "expected"), [(memory(np.zeros(DIM)), OURS), (first_own(), THEIRS), (UNKNOWN, THEIRS)])
def test_hostile_trees_are_refused(first, expected, behind, measured):
    accepted = [tree for tree in HOSTILE if survives(framed(tree, behind), first, expected)]
    assert accepted == []


@pytest.mark.parametrize("times", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_crafted_trees_are_read_or_refused(times, measured):
    """Trees of all kinds, drawn at random, half of them in the place of a field of a good state."""
    draw = random.Random(times)
    read = 0
    for i in range(times):
        tree = drawn(draw, 4)
        if i % 2:
            tree = ["object", f"{__name__}.Own", {"x": ["array", "<f8", [DIM], "C"], "more": tree, "past": drawn(draw, 2)}]
        behind = bytes(DIM * 8 * (i % 2)) + draw.randbytes(draw.choice([0, 1, 8, 64]))
        read += survives(framed(tree, behind), first_own() if i % 2 else UNKNOWN, THEIRS)
        assert not survives(framed(tree, behind), memory(np.zeros(DIM)), OURS)
    assert 0 < read < times


def drawn(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([None, True, 3, -1, 0.5, "a", 10**25, *HOSTILE[:45]])
    kind = draw.choice(["list", "tuple", "set", "dict", "object", "array", "number", "same", "python", "bytes", "frozenset"])
    match kind:
        case "object":
            name = draw.choice(
                [f"{__name__}.{c}" for c in ("Own", "Entry", "Slotted")] + ["mpi_compress.messages.kinds.base.Sparse", BASE]
            )
            names = ["x", "more", "past", "at", "sent", "a", "norm", "dim", "indices", "values", "e", "__dict__", "checked"]
            return [kind, name, {each: drawn(draw, depth - 1) for each in draw.sample(names, draw.randrange(5))}]
        case "array":
            dtype = draw.choice(["<f8", "<u4", "|b1", "<U2", "|S3", "<c16", "|O", "<m8[s]", ">i2"])
            return [kind, dtype, [draw.choice([0, 1, 2, 8, 10**9]) for _ in range(draw.randrange(3))], draw.choice("CF")]
        case "number" | "python":
            return [kind, draw.choice(["<f8", "<c16", "|b1", "O"])]
        case "same":
            return [kind, draw.randrange(-1, 4)]
        case "bytes":
            return [kind, draw.randbytes(8).hex()]
    return [kind, *(drawn(draw, depth - 1) for _ in range(draw.randrange(4)))]


@pytest.mark.parametrize("times", [600, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_states_are_read_or_refused(times, measured):
    """Bytes of good frames changed, cut, doubled and swapped; their checksums would be right."""
    draw = random.Random(times)
    good = [(dump(later).tobytes(), first, OURS) for first, later in ours()]
    good.append((dump(later_own()).tobytes(), first_own(), THEIRS))
    read = 0
    for i in range(times):
        content, first, expected = good[i % len(good)]
        read += survives(np.frombuffer(mutated(content, draw), dtype="u1"), first, expected)
    assert times // 20 < read < times


def mutated(content: bytes, draw: random.Random) -> bytes:
    found = bytearray(content)
    (text,) = struct.unpack("<Q", content[:8])
    for _ in range(draw.choice([1, 1, 2, 8])):
        at = draw.randrange(8 + text if draw.random() < 0.7 else len(found))
        at = min(at, len(found) - 1)
        match draw.randrange(6):
            case 0:
                found[at] ^= 1 << draw.randrange(8)
            case 1:
                found[at] = draw.choice(b'0123456789[]{},":-eE<f8')
            case 2:
                del found[at : at + draw.randrange(1, 9)]
            case 3:
                found[at:at] = found[at : at + draw.randrange(1, 9)]
            case 4:
                digits = [i for i, byte in enumerate(found[8 : 8 + text], 8) if byte in b"0123456789" and i < len(found)]
                found[draw.choice(digits) if digits else at] = draw.choice(b"0123456789")
            case _:
                other = draw.randrange(len(found))
                found[at], found[other] = found[other], found[at]
        if not found:
            return b""
    return bytes(found)
