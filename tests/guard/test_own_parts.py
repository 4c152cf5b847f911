"""Parts that users write: what is natural to write works, and what is wrong is told in one line that says what would do."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from helpers.layouts import assert_equal
from helpers.own_parts import HEAD, module_in
from helpers.refusals import naming
from helpers.running import After, command, gone_on, here

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.blame import function_of, is_ours
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import registries
from mpi_compress.core.signals import Stopped
from mpi_compress.engine import executing
from mpi_compress.engine.checking import findings_in_job
from mpi_compress.guard.of_messages import contradicted
from mpi_compress.guard.own_draws import unrepeatable
from mpi_compress.messages.link import Link
from mpi_compress.preparing import runs as preparing

JOB = """
plugins = ["{name}"]
data = {{ {data} }}
objective = {{ mu = 0.1 }}
workers = {{ count = 4 }}
stop = {{ rounds = 5 }}
algorithm = {{ name = "{algorithm}" }}
[up]
compressor = {compressor}
codec = "{codec}"
"""
OURS = {
    "data": 'generator = "gspar", samples = 40, dim = 20',
    "algorithm": "ef",
    "compressor": '{ name = "mine" }',
    "codec": "fixed",
}


pytestmark = pytest.mark.usefixtures("registered_for_one_test_only")


def written(tmp_path, source, more="", **parts):
    """A job file with a module of one's own beside it."""
    name = module_in(tmp_path, source)
    file = tmp_path / f"{name}.toml"
    file.write_text(JOB.format(name=name, **{**OURS, **parts}) + more)
    return file


def compressor(body, decorated="@dataclass(frozen=True)", base="(mc.Compressor)", field="share: float = 0.5", name='"mine"'):
    return f"""
@mc.compressors.register({name})
{decorated}
class Mine{base}:
    {field}

    def compress(self, v, t):
        {body}
"""


def played(tmp_path, source, more="", **parts):
    (run,) = mc.run(mc.load_job(written(tmp_path, source, more, **parts)), out=tmp_path)
    return run


SORTED = "i = np.sort(np.argpartition(np.abs(v), -3)[-3:]).astype(np.uint32); return mc.Sparse(v.size, i, v[i])"


IN_ANY_ORDER = {
    "partitioned": "i = np.argpartition(np.abs(v), -3)[-3:]; return mc.Sparse(v.size, i, v[i])",
    "by size": "i = np.argsort(-np.abs(v))[:3]; return mc.Sparse(v.size, i, v[i])",
    "slices": "i = np.argsort(-np.abs(v))[:3].astype(np.int16); return mc.Sparse(v.size, i[::-1], v[i][::-1])",
    "lists": "i = np.argsort(-np.abs(v))[:3]; return mc.Sparse(v.size, list(i), list(v[i]))",
}


@pytest.mark.parametrize("codec", ["fixed", "bitmap", "rice", "entropy", "elias-omega", "auto"])
def test_indices_may_come_in_any_order_and_type(codec, tmp_path):
    bodies = {"sorted": SORTED, **IN_ANY_ORDER}
    source = "".join(compressor(body, name=f'"{name}"').replace("Mine", f"Mine{i}") for i, (name, body) in enumerate(bodies.items()))
    more = "".join(f'[[run]]\nlabel = "{name}"\nup.compressor = "{name}"\n' for name in bodies)
    expected, *found = mc.run(written(tmp_path, source, more, codec=codec), out=tmp_path)
    assert [run.label for run in found] == [*IN_ANY_ORDER]
    for run in found:
        assert run.status == "complete"
        assert np.array_equal(run.x, expected.x), run.label
        assert np.array_equal(run.trace["wire_bits_up"], expected.trace["wire_bits_up"]), run.label


def test_values_may_be_of_single_precision(tmp_path):
    body = SORTED.replace("v[i])", "v[i].astype(np.float32))")
    run = played(tmp_path, compressor(body))
    assert run.status == "complete"
    assert run.trace["loss"][-1] < run.trace["loss"][0]


MODULE = """
from dataclasses import field
from functools import cache
SEEN, NOTES, RNG = np.zeros(3), [], np.random.default_rng(0)

def note(t):
    NOTES.append(t.k)

@cache
def table(n):
    return np.arange(n)
"""


def test_what_is_computed_once_may_be_cached(tmp_path):
    assert played(tmp_path, MODULE + compressor(f"table(v.size); {SORTED}")).status == "complete"


STATEFUL = compressor(SORTED).replace("v, t):", "v, t, state):") + "\n    def start(self, dim):\n        return {}\n"


def test_the_state_of_a_compressor_is_its_own(tmp_path):
    """Two runs of one job have the same bytes, and their state begins anew."""
    body = STATEFUL.replace("return {}", "return np.zeros(3)").replace(
        "        i = np.sort", "        state += 1; v = v / state[0]; i = np.sort"
    )
    file = written(tmp_path, body)
    one, other = (mc.run(mc.load_job(file), out=tmp_path / name)[0] for name in "ab")
    assert one.status == "complete"
    assert_equal(one.file, other.file)


NATURAL = """
@mc.compressors.register("mine")
@dataclass(frozen=True)
class Mine(mc.Compressor):
    makes = mc.Dense
    codec = "dense"

    def compress(self, v, t):
        return mc.Dense(np.sign(v) * np.exp2(np.floor(np.log2(np.abs(v) + 1e-300))))
"""
THEOREM = """
    def omega(self, dim):
        return 1 / 8
"""


@pytest.mark.parametrize(("source", "count"), [(NATURAL, 0), (NATURAL + THEOREM, 1)])
def test_a_compressor_that_is_charged_for_whole_floats_is_told_once(source, count, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(preparing, "_warned", set())
    file = written(tmp_path, source, codec="dense")
    for folder in "ab":
        mc.run(mc.load_job(file), out=tmp_path / folder, quiet=False)
    said = "mine: makes Dense, so each message counts as 20 floats of 64 bits; a kind and a codec of its own"
    assert capfd.readouterr().err.count(said) == count


def test_under_mpi_it_is_reported_once(tmp_path):
    said = command("run", written(tmp_path, compressor("return v")), "--out", tmp_path, ranks=3)
    assert said.returncode == 2
    assert said.stderr.count("Compressed") == 1
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("work", ["v *= self.share", "v[0] = 0", "np.sqrt(np.abs(v), out=v)"])
def test_the_vector_cannot_be_written_to(work, tmp_path, capfd):
    run = played(tmp_path, compressor(f"{work}; {SORTED}"))
    assert run.status == "failed"
    assert "read-only" in run.attrs["reason"]
    assert work in capfd.readouterr().err, "the line of the user's own"


@pytest.mark.parametrize("decorated", ["", "@dataclass(frozen=True)"])
def test_a_registered_class_is_a_frozen_dataclass_decorated_or_not(decorated, tmp_path):
    source = compressor(SORTED, decorated, field="share: float = field(default=0.5, repr=False)")
    run = played(tmp_path, "from dataclasses import field\n" + source, compressor='{ name = "mine", share = 0.25 }')
    assert run.status == "complete"
    mine = mc.compressors["mine"](0.25)
    assert (repr(mine), mine) == ("Mine()", mc.compressors["mine"](share=0.25))
    with pytest.raises(FrozenInstanceError):
        mine.share = 1.0


def test_parameters_may_be_tuples_and_paths(tmp_path):
    fields = "share: tuple[float, ...] = (0.5,)\n    log: Path = Path('a')"
    body = f"assert (self.share, self.log) == ((0.25, 1.0), Path('b')); {SORTED}"
    source = "from pathlib import Path\n" + compressor(body, field=fields)
    assert played(tmp_path, source, compressor='{ name = "mine", share = [0.25, 1.0], log = "b" }').status == "complete"


ALGORITHM = """
@dataclass
class Node:
    x: np.ndarray

@mc.algorithms.register("mine")
@dataclass(frozen=True)
class Mine(mc.Algorithm):
    def start(self, x0):
        return Node(x0.copy())

    def worker_sends(self, node, worker, f, t):
        {sends}

    def master_answers(self, node, master, ups, t):
        {answers}

    def all_hear(self, node, down, t):
        down.add_to(node.x, -0.1)
"""
SENDS, ANSWERS = "return self.up.pack(f.gradient(node.x), t)", "return self.down.pack(self.mean(ups), t)"
TOP = {"algorithm": "mine", "compressor": '{ name = "top-k", k = 3 }'}


def algorithm(sends=SENDS, answers=ANSWERS, more=""):
    return ALGORITHM.format(sends=sends, answers=answers) + more


def test_an_algorithm_may_pack_what_is_of_another_type_or_not_side_by_side(tmp_path):
    right = played(tmp_path, algorithm(), **TOP)
    strided = played(tmp_path, algorithm(SENDS.replace("(node.x)", "(node.x).repeat(2)[::2]")), **TOP)
    assert np.array_equal(strided.x, right.x)
    short = played(tmp_path, algorithm(SENDS.replace("(node.x)", "(node.x).astype('f4')")), **TOP)
    np.testing.assert_allclose(short.x, right.x, rtol=1e-5)


@pytest.mark.parametrize(("natural", "careful"), [
    ("g = f.gradient(node.x); g *= 2", "g = 2 * f.gradient(node.x)"),
    ("g = f.gradient(node.x) + f.gradient(0.9 * node.x)", "g = f.gradient(node.x).copy(); g = g + f.gradient(0.9 * node.x)"),
    (
        "y = node.x.copy(); [y.__isub__(0.01 * f.gradient(y)) for _ in range(5)]; g = node.x - y",
        "import functools; g = node.x - functools.reduce(lambda y, _: y - 0.01 * f.gradient(y), range(5), node.x)",
    ),
    ("r = np.arange(3); g = f.gradient(node.x, r); h = f.gradient(node.x, r + 1); g = g - h / 2",
     "r = np.arange(3, dtype=np.uint64); g = 1.0 * f.gradient(node.x, r); g -= f.gradient(node.x, r + np.uint64(1)) / 2"),
    ("g = f.gradient(list(node.x))", "g = f.gradient(node.x)"),
], ids=["in place", "two points", "local steps", "rows", "a list"])  # fmt: skip
def test_gradients_may_be_kept_and_changed(natural, careful, tmp_path):
    runs = [
        played(tmp_path, algorithm(f"{g}; return self.up.pack(g, t)"), **TOP)
        for g in (natural, careful)
    ]
    assert np.array_equal(runs[0].x, runs[1].x)
    assert runs[0].trace["grad_norm"].tolist() == runs[1].trace["grad_norm"].tolist()


def test_an_algorithm_may_need_more_rows_and_workers_than_two_rounds_beforehand_have(tmp_path):
    sends = "r = t.rng.choice(len(f.rows), 8, replace=False); return self.up.pack(f.gradient(node.x, r), t)"
    answers = "return self.down.pack(ups[3], t)"
    assert played(tmp_path, ALGORITHM.format(sends=sends, answers=answers), **TOP).status == "complete"


STATES = {
    "return Node(x0.copy(), lambda: 0)": "a state of mine cannot be saved in a checkpoint: function",
    "return Node(x0.copy(), collections.deque())": "a state of mine cannot be saved in a checkpoint: collections.deque",
    "return Node(x0, 0); #": "",
    "return Node(x0.copy(), [{'a': np.ones(3)}, None, 2, (1.5, 'x')])": "",
}


@pytest.mark.parametrize("start", STATES)
def test_states_that_a_checkpoint_cannot_hold_are_refused_before_the_first_round(start, tmp_path):
    source = "import collections\nfrom typing import Any\n" + algorithm()
    source = source.replace("    x: np.ndarray\n", "    x: np.ndarray\n    more: Any = None\n").replace(
        "return Node(x0.copy())", start
    )
    file = written(tmp_path, source, **TOP)
    if STATES[start]:
        with pytest.raises(UserError, match=naming(STATES[start])):
            mc.run(mc.load_job(file), out=tmp_path)
    else:
        assert mc.run(mc.load_job(file), out=tmp_path)[0].status == "complete"


GROWING = """
@dataclass
class Heard:
    round: int
    what: mc.Sparse

@dataclass
class Memory:
    heard: list
    last: object = None
    sizes: object = None
"""


def test_states_that_grow_and_change_their_kinds_are_resumed_to_the_same_bytes(tmp_path, capfd):
    source = GROWING + algorithm("worker.sizes = np.arange(float(t.k)); " + SENDS)
    source = source.replace(
        "def worker_sends", "def start_worker(self, node, f):\n        return Memory([])\n\n    def worker_sends"
    )
    source = source.replace("    x: np.ndarray\n", "    x: np.ndarray\n    past: object = None\n")
    source = source.replace("return Node(x0.copy())", "return Node(x0.copy(), Memory([]))")
    source = source.replace(
        "        down.add_to(node.x, -0.1)\n",
        "        node.past.heard.append(Heard(t.k, down))\n"
        "        node.past.last = {'first': node.past.heard[0], t.k: np.float64(t.k)}\n"
        "        node.x -= 0.1 * sum(h.what.dense() for h in node.past.heard[-2:])\n"
        "        assert node.past.last['first'] is node.past.heard[0] and len(node.past.heard) == t.k + 1\n",
    )
    job = mc.load_job(written(tmp_path, source, "[checkpoint]\nevery = 1\n", **TOP))
    (whole,) = mc.run(job, out=tmp_path / "whole")
    for _ in range(20):
        try:
            (run,) = mc.run(job, out=tmp_path / "stopped", interrupts=After(2), quiet=False)
            break
        except Stopped:
            continue
    assert len(gone_on(capfd.readouterr().err)) >= 2
    assert_equal(whole.file, run.file)


def test_sys_exit_in_a_part_ends_every_rank_with_a_word(tmp_path):
    file = written(tmp_path, compressor("import sys; sys.exit(0) if t.k == 3 and t.who == 2 else None; " + SORTED))
    for ranks in (None, 3):
        said = command("run", file, "--out", tmp_path, "--quiet", ranks=ranks)
        assert said.returncode != 0
        assert "something called sys.exit(0)" in said.stderr


def test_a_compressor_of_other_parameters_computes_its_own(tmp_path):
    source = """
import functools

@mc.compressors.register("mine")
@dataclass(frozen=True)
class Mine(mc.Compressor):
    many: int = 3

    @functools.cached_property
    def indices(self):
        return np.arange(self.many, dtype=np.uint32)

    def compress(self, v, t):
        return mc.Sparse(v.size, self.indices, v[self.indices])
"""
    mc.load_job(written(tmp_path, source))
    link = Link(mc.compressors.compressors["mine"](), mc.codecs.codecs["fixed"](), 20)
    assert [link.at(many=m).compress(np.ones(20), None).elements for m in (3, 5, 2)] == [3, 5, 2]
    assert link.compressor.indices.size == 3
    assert link.at(many=4).compressor.indices.size == 4


CODEC = """
@mc.codecs.register("mine")
@dataclass(frozen=True)
class Mine(mc.Codec):
    def writes(self, kind):
        return kind is mc.Sparse

    def encode(self, c):
        count = np.array([c.indices.size], dtype="<u4")
        out = np.concatenate([a.view(np.uint8) for a in (count, c.indices.astype("<u4"), c.values)])
        return {encoded}

    def decode(self, data, at, dim, kind, known={{}}):
        n = int(data[at : at + 4].view("<u4")[0])
        split, end = at + 4 + 4 * n, at + 4 + 12 * n
        out = mc.Sparse(dim, data[at + 4 : split].copy().view("<u4"), data[split:end].copy().view("<f8"))
        return {decoded}
"""
OWN_CODEC = {"compressor": '{ name = "top-k", k = 3 }', "codec": "mine"}


def test_a_float_that_changes_none_of_a_codecs_bytes_is_refused_and_check_part_names_the_codec(tmp_path):
    source = CODEC.format(encoded="out", decoded="out, end")
    says = r"float = 32 changes nothing: Mine.encode writes the same bytes as with 64, and paper bits are \d+, not \d+; write floats of "
    file = written(tmp_path, source, **OWN_CODEC)
    for name in ("mine", "top-k"):
        (found,) = findings_in_job(name, mc.load_job(file)).values()
        (wrong,) = (each for each in found if each.what == "float")
        assert not wrong.holds
        assert re.match(f"{says}self.float_format .*{file.stem}.py, line", wrong.text), wrong
    job = mc.load_job(file, overrides={"up.codec": {"name": "mine", "float": 32}})
    with pytest.raises(UserError, match=rf"up\.codec: {says}"):
        mc.run(job, out=tmp_path)




@pytest.mark.parametrize("encoded", ["out", "bytes(out)", "bytearray(out)", "np.repeat(out, 2)[::2]"])
def test_a_codec_may_write_bytes_of_any_kind(encoded, tmp_path):
    run = played(tmp_path, CODEC.format(encoded=encoded, decoded="out, end"), **OWN_CODEC)
    assert run.trace["wire_bits_up"].tolist() == [4 * k * 8 * (4 + 4 + 3 * 12) for k in range(6)]


def test_a_codec_of_ones_own_is_looked_after_where_a_number_goes_ahead_of_the_vector(tmp_path):
    cat = {**OWN_CODEC, "algorithm": "cat", "compressor": '{ name = "stochastic" }'}
    expected = played(tmp_path, "", **{**cat, "codec": "fixed"})
    assert np.array_equal(played(tmp_path, CODEC.format(encoded="bytes(out)", decoded="out, end"), **cat).x, expected.x)
    file = written(tmp_path, CODEC.format(encoded="out", decoded="mc.Sparse(dim, out.indices + 10**6, out.values), end"), **cat)
    with pytest.raises(UserError, match=r"mine, decode: indices .*10000"):
        mc.run(mc.load_job(file), out=tmp_path)


GENERATOR = """
@mc.datasets.register("mine")
@dataclass(frozen=True)
class Mine(mc.Generator):
    samples: int = 30
    dim: int = 10

    def make(self):
        rng = self.stream(0)
        a, y = rng.standard_normal((self.samples, self.dim)), np.sign(rng.standard_normal(self.samples))
        {made}
"""
OWN_DATA = {"data": 'generator = "mine"', "compressor": '{ name = "top-k", k = 3 }'}

BY_RANDOM_ROWS = 'async-sgd", batch = 1, step = "0.01'  # an algorithm's name, and more of its table
STATE_WORKER = "\n    def start_worker(self, node, f):\n        return Node(node.x)\n"
LOGS = "\n    log = mc.Log({}, lambda worker: {})\n"
COST = """
@mc.costs.register("mine")
@dataclass(frozen=True)
class Mine(mc.CostModel):
    def cost(self, payload):
        return {}
"""
EACH = """
@dataclass
class Node:
    x: np.ndarray

@mc.algorithms.register("mine")
@dataclass(frozen=True)
class Mine(mc.AnswersEach):
    def start(self, x0):
        return Node(x0.copy())

    def start_master(self, node):
        return Node(node.x.copy())

    def worker_sends(self, node, worker, f, t):
        return self.up.pack(f.gradient(node.x), t)

    def answers(self, node, master, ups, t):
        messages = [self.down.pack(master.x, t.to(i)) for i in range(self.setting.n)]
        return {}

    def point(self, master):
        return master.x

    def all_hear(self, node, down, t):
        node.x = down.dense()
"""


ESTIMATE = """
@mc.algorithms.register("mine")
@dataclass(frozen=True)
class Mine(mc.Estimator):
    step: mc.Step = 0.1

    def worker_sends(self, node, worker, f, t):
        return self.up.pack(f.gradient(node.x), t)

    def estimate(self, node, memory, mean, t):
        return {}
"""
NO_VECTOR = {
    "return v": "an array of float64 (20,) a Compressed, such as Sparse(v.size, indices, v[indices])",
    "pass": "None Compressed",
    "return mc.Dense(v)": "a Dense was given, and receivers read a Sparse; makes = Dense in the class says otherwise",
    "return mc.Sparse(v.size, v > 0, v[v > 0])": "indices are true and false; they should be coordinates: np.flatnonzero gives them",
    "return mc.Sparse(v.size, np.array([3, 20]), v[:2])": "indices go from 3 to 20; they should be coordinates from 0 to 19",
    "return mc.Sparse(v.size, np.array([-1, 2]), v[:2])": "indices -1 2 0 19",
    "return mc.Sparse(v.size, np.array([4, 3, 4]), v[:3])": "indices have 4 more than once; each coordinate is sent once",
    "return mc.Sparse(v.size, np.array([1, 2]), v[:3])": "values have shape (3,); it should be (2,)",
    "return mc.Sparse(v.size, np.array([[1, 2]]), v[None, :2])": "indices (1, 2) (2,)",
    "return mc.Sparse(v.size, np.array([1.0, 2.0]), v[:2])": "indices are of type float64; they should be whole numbers",
    "return mc.Sparse(v.size, np.array([1, 2]), 1j * v[:2])": "values complex128 real",
    "return mc.Sparse(5, np.array([1, 2]), v[:2])": "dim = 5 was given, and the vector has 20 coordinates",
}
AS_IT_RUNS = [
    *((compressor(body), {"codec": codec}, f"mine, compress: {says}") for body, says in NO_VECTOR.items() for codec in ("fixed", "rice")),
    # states
    (STATEFUL.replace("return {}", "return open"), {}, "a state of ef or of its compressors cannot be saved in a checkpoint"),
    (STATEFUL, {"algorithm": BY_RANDOM_ROWS}, "async-sgd keeps nothing for a compressor: mine has a state"),
    # messages
    (compressor("i = np.argpartition(np.abs(v), -3)[-3:]; return mc.Sparse(v.size, i + 100 * (t.k == 3), v[i])"), {"algorithm": BY_RANDOM_ROWS},
     "mine, compress: indices 119"),
    *((ESTIMATE.format(given), TOP, f"mine, estimate: {says} a list of terms, each a vector (20,)") for given, says in (
        ("mean.dense()", "array float64 (20,)"), ("[mean.dense()[:3]]", "[array"), ("mean", "Sparse"), ("'g'", "'g'"), ("0.5", "0.5"),
    )),
    *((compressor(SORTED) + f"\n    def {name}(self, dim):\n        return {given}\n", {"algorithm": f'ef21", step = "0.1 * {name}'}, f"mine, {name}: {given} for d = number from 0")
      for name, given in (("delta", "1.5"), ("delta", "[1]"), ("omega", "-1"))),
    *((EACH.format(answers), {"algorithm": "mine", "compressor": '"identity"'}, "mine, answers: a list of messages, one to each worker")
      for answers in ("messages[:1]", "messages * 2", "messages[0]")),
    # points, rows and logs
    *((algorithm(f"{wrong}; {SENDS}"), TOP, "mine: worker_sends changes node.x, which workers share; change a copy, node.x.copy()")
      for wrong in ("node.x[0] += t.who", "y = node.x; y -= 0.01 * f.gradient(y)")),
    *((ESTIMATE.format("[mean.dense()]").replace("    return self.up", f"    {wrong}\n        return self.up"), TOP, says) for wrong, says in (
        ("node.x *= 1.01", "mine: worker_sends changes node.x, which workers share; change a copy, node.x.copy()"),
        ("node.x[:] *= 1.01", "mine: worker_sends changes node.x, which workers share; change a copy, node.x.copy()"),
        ("node.x = 1.01 * node.x", "node.x is another array now: a server moves x, and workers share it; change a copy, node.x.copy()"),
    )),
    (ESTIMATE.format("[mean.dense()]").replace("mc.Step = 0.1", 'mc.Step = "theory"\n    beta: float = 0.5\n    theory = "(1 - beta)/L"'), TOP,
     "algorithm: 'beta' is a field of Mine of the type float; formulas may name fields of the type mc.Expression own_ line 6"),
    *((algorithm(f"return self.up.pack(f.gradient({asked}), t)"), TOP, f"gradient: {says}") for asked, says in (
        ("node.x[:5]", "coordinates of x (5,) (20,)"), ("np.append(node.x, 1.0)", "coordinates of x (21,)"),
        ("node.x, np.arange(20)", "rows go from 0 to 19; they should be from 0 to 9"),
        ("node.x, [-1]", "rows -1 -1"), ("node.x, [0.5]", "rows float64 whole"),
    )),
    *((algorithm(more=LOGS.format(logs, given)), TOP, says) for logs, given, says in (
        ('("height",)', "[1.0, 2.0]", "log, of_worker: numbers, one for each column, (2,) (1,)"),
        ('("height",)', "[]", "log, of_worker: (0,)"), ('("loss",)', "[1.0]", "log: 'loss' is a column that every run has"),
        ('("a/b",)', "[1.0]", "should be names of columns"), ('"ab"', "[1.0]", "ab names"),
    )),
    # codecs, costs and data
    *((CODEC.format(encoded=encoded, decoded=decoded), OWN_CODEC, f"mine, {says}") for encoded, decoded, says in (
        ("None", "out, end", "encode: None bytes uint8"),
        ("1.0 * out", "out, end", "encode: array float64 (40,)"), ("out", "out", "decode: Sparse(dim=20"),
        ("out", "mc.Sparse(dim, out.indices + 10**6, out.values), end", "decode: indices 1000000"),
        ("out", "mc.Sparse(dim, out.indices, out.values[:1]), end", "decode: values (1,) (3,)"),
    )),
    *((COST.format(cost), {"compressor": TOP["compressor"], "more": '[cost]\nmodel = "mine"'}, says) for cost, says in (
        ("None", "cost: costs object real"),
        ("float('nan')", "cost: nan was given for 0 bits; a cost should be a finite number from 0 on"),
        ("5 - payload", "cost: -3 8 bits"), ("1 / (1 + payload)", "cost: it falls as payloads grow; a cost should not"),
        ("np.max(payload)", "cost: costs of an array of payloads: () (6,)"),
        ("__import__('math').ceil(payload / 8)", "a cost takes numbers and arrays alike, as np.ceil does"),
        ("1.0 if payload < 9 else 2.0", "cost arrays np.ceil"),
        ("np.zeros(np.shape(payload)) + np.max(payload)", "an array of payloads costs something else than its payloads one by one"),
    )),
    *((GENERATOR.format(made=made), OWN_DATA, "data.generator: make of mine gives ; it should be numbers (m, d)") for made in (
        "return a, y[:-1]", "return a", "return a, y, y", "pass", "return a[:, 0], y", "return a, ['x'] * 30", "return a.astype(object), y",
        "return 1j * a, y", "yield a", "yield a, y[1:]",
    )),
    (GENERATOR.format(made="yield a, y\n        yield a[:, :7], y"), OWN_DATA, "make of mine gives chunks of 10 and of 7 columns"),
]  # fmt: skip
KEPT = [  # outside of the state
    (MODULE + compressor(f"{work}; {SORTED}", field=field), {}, f"mine keeps something in {place} from call to call") for field, work, place in (
        ("memory: dict = field(default_factory=dict)", "self.memory[t.who] = t.k", "self.memory"),
        ("memory = {}", "self.memory.setdefault(t.who, []).append(t.k)", "Mine.memory"), ("calls = 0", "type(self).calls += 1", "Mine.calls"),
        ("share: float = 0.5", "SEEN[0] += 1", "SEEN"), ("share: float = 0.5", "note(t)", "NOTES"), ("share: float = 0.5", "RNG.random()", "RNG"),
    )
]  # fmt: skip
OTHER_EACH_TIME = {
    "": ("np.random.default_rng()", "np.random.default_rng(None)", "np.random.default_rng(seed=None)", "np.random.rand(3)", "random.random()",
         "np.random.RandomState()", "random.Random()", "time.time()", "time.perf_counter_ns()", "os.urandom(4)", "uuid.uuid4()", "secrets.randbelow(5)",
         "datetime.now()", "normal(3)", "DrawsItself().draw()", "drawn_once()"),
    "import random as r; ": ("r.random()",),
    "from numpy.random import default_rng as of; ": ("of()",),
}  # fmt: skip
WITHIN = {"DrawsItself().draw()": ("random.random", "        return random"), "drawn_once()": ("os.urandom", "    return os")}
SAME_EACH_TIME = (
    "np.random.default_rng(3)", "np.random.default_rng(t.k)", "np.random.SeedSequence(5)", "random.Random(3)", "time.sleep(0)", "np.random.Philox(key=3)",
    "t.rng.random()", "secrets = t.rng; secrets.random()", "datetime.fromtimestamp(0)", "(lambda f: f.time())(type('T', (), {'time': int}))",
)  # fmt: skip
DRAWS = """
import os, random, secrets, time, uuid
from datetime import datetime
from functools import cache
from numpy.random import normal

class DrawsItself:
    def draw(self):
        return random.random()

@cache
def drawn_once():
    return os.urandom(4)

def used_by_nothing():
    return np.random.rand()
"""
SEEN_BY_CHECKS = [
    *KEPT,
    (MODULE + compressor(f"np.random.random(); {SORTED}"), {}, "come from the global random or np.random, not from t.rng"),
    (algorithm(more=STATE_WORKER), TOP, "differs in round 1"),
    (algorithm().replace("return Node(x0.copy())", "z = np.zeros((2, x0.size)); z[0] = x0; return Two(z[0], z)").replace(
        "@mc.algo", "@dataclass\nclass Two:\n    x: np.ndarray\n    all: np.ndarray\n\n@mc.algo").replace("node.x, -0.1", "node.all[0], -0.1"), TOP, "differs"),
    (algorithm().replace("down.add_to(node.x, -0.1)", "node.x = (node.x - 0.1 * down.dense()).astype('f4')"), TOP, "numpy.ndarray was saved, and the run begins with"),
    *((compressor(SORTED) + f"\n    def {name}(self, dim):\n        return {given}\n", {}, f"mine, {name}: {given} for d = number from 0")
      for name, given in (("delta", "1.5"), ("omega", "-1"))),
]  # fmt: skip
ENDS_THE_RUN = [
    (STATEFUL.replace(", state):", "):"), {}, "TypeError: Mine.compress() takes 3 positional arguments but 4 were given"),
    (STATEFUL.replace("def start", "def begin"), {}, "TypeError: Mine.compress() missing 1 required positional argument: 'state'"),
    ("from mpi_compress.messages.kinds import Lattice\n" + compressor("return Lattice(np.rint(v / 0.1).astype(np.int64), 0.05 * v.size**0.5, 1e3)",
     field="makes = Lattice"), {"codec": "lattice", "algorithm": "gd"}, "CorruptMessage: 1 floats of 64 bits do not end in 0 bytes"),
    (algorithm().replace("return Node(x0.copy())", "return x0.copy()"), TOP, "AttributeError: 'numpy.ndarray' object has no attribute 'x'"),
    (algorithm().replace("return Node(x0.copy())", "pass"), TOP, "AttributeError: 'NoneType' object has no attribute 'x'"),
    (algorithm(answers="return self.mean(ups)"), TOP, "AttributeError: 'Sparse' object"),
    (algorithm("return self.up.encode(mc.Sparse(20, [7, 7], [1.0, 2.0]))"), TOP, "AttributeError: 'list' object"),
    (algorithm("return self.up.pack(f.gradient(node.x, []), t)"), TOP, "ZeroDivisionError"),
    (algorithm("return self.down.pack(f.gradient(node.x), t)"), TOP, "CorruptMessage: 160 bytes are left over"),
]  # fmt: skip
WITH_THE_JOB = [
    (compressor(SORTED, field="share = 0.5"), "Mine has no parameter 'share': a parameter is a field with its type, share: float"),
    (compressor(SORTED, base=""), "TypeError: Mine is no compressor: derive it from Compressor"),
    (compressor(SORTED).replace("def compress", "def squeeze"), "abstract method compress"),
    (compressor(SORTED).replace('register("mine")', "register"), 'register takes the name that jobs use: @register("my-compressor")'),
    (algorithm().replace("(mc.Algorithm)", ""), "TypeError: Mine is no algorithm: derive it from Algorithm"),
    # a method that is nearly a verb
    (algorithm().replace("worker_sends", "worker_send"), "Mine.worker_send is used by nothing; did you mean worker_sends?"),
    (compressor(SORTED, field="start: int = 2"), "Mine.start is a value, and parts of this kind have a method start: give the value another name"),
    (algorithm().replace("master_answers", "master_answer"), "did you mean master_answers?"),
    (algorithm().replace("all_hear", "all_hears"), "did you mean all_hear?"),
    (compressor(SORTED) + "\n    def deltas(self, dim):\n        return 0.1\n", "did you mean delta?"),
    (compressor(SORTED) + "\n    def dleta(self, dim):\n        return 0.1\n", "did you mean delta?"),
    (compressor(SORTED).replace("def compress(", "def compres("), "did you mean compress?"),
]


@pytest.mark.parametrize(("source", "parts", "says"), AS_IT_RUNS, ids=[says for *_, says in AS_IT_RUNS])
def test_what_is_wrong_is_refused_before_or_in_the_rounds(source, parts, says, tmp_path):
    file = written(tmp_path, source, **parts)
    job_first = says.startswith(("mine, compress:", "gradient:"))
    with pytest.raises(UserError, match=naming(f"{file}: {says}" if job_first else says)) as caught:
        mc.run(mc.load_job(file), out=tmp_path)
    assert file.stem in str(caught.value)
    assert not list(tmp_path.rglob("*.h5"))


@pytest.mark.parametrize(("source", "parts", "says"), ENDS_THE_RUN, ids=[says for *_, says in ENDS_THE_RUN])
def test_what_python_finds_wrong_ends_the_run_with_one_line_that_names_the_file(source, parts, says, tmp_path, capfd):
    file = written(tmp_path, source, **parts)
    (run,) = mc.run(mc.load_job(file), out=tmp_path)
    assert run.status == "failed"
    assert says in run.attrs["reason"]
    (line,) = capfd.readouterr().err.splitlines()
    assert re.search(rf"\({re.escape(str(file.with_suffix('.py')))}, line \d+", line)


@pytest.mark.parametrize(("source", "parts", "says"), SEEN_BY_CHECKS, ids=[says for *_, says in SEEN_BY_CHECKS])
def test_what_passes_in_a_run_is_seen_by_check_part(source, parts, says, tmp_path):
    job = mc.load_job(written(tmp_path, source, **parts))
    (found,) = findings_in_job("mine", job).values()
    wrong = [each for each in found if not each.holds]
    assert [each for each in wrong if re.search(naming(says), each.text)], wrong


@pytest.mark.parametrize(("source", "parts", "says"), KEPT, ids=[says for *_, says in KEPT])
def test_a_run_says_in_one_line_what_a_part_keeps_outside_of_its_state(source, parts, says, tmp_path, capsys):
    mc.run(mc.load_job(written(tmp_path, source, **parts)), out=tmp_path)
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "keeps something" in line)
    assert re.search(naming(says), line)
    assert "memory comes from start(dim)" in line
    (result,) = tmp_path.rglob("*.h5")
    for words in (["show", result], ["table", result], ["table", result, "--to", "loss=0.69"]):
        assert main([*map(str, words)]) == 0
        assert any(re.search(naming(says), line) for line in capsys.readouterr().out.splitlines()), words


@pytest.mark.parametrize("first", OTHER_EACH_TIME)
def test_calls_that_return_something_else_each_time_are_named_with_their_lines(first, tmp_path):
    calls = OTHER_EACH_TIME[first]
    file = written(tmp_path, DRAWS + compressor("\n        ".join([f"{first}0", *calls, SORTED])))
    (found,) = findings_in_job("mine", mc.load_job(file)).values()
    assert (found[0].what, found[0].holds) == ("draws", False)
    source = file.with_suffix(".py").read_text().splitlines()
    for call in calls:
        named, place = WITHIN.get(call, (call.partition("(")[0], f"        {call}"))
        line = next(i for i, text in enumerate(source, 1) if text.startswith(place))
        assert f" {named}() ({file.stem}.py, line {line}, in " in found[0].text, call
    assert found[0].text.count(", line ") == len(calls), found[0].text


def test_a_run_names_such_a_call_and_so_do_the_commands_that_show_its_result(tmp_path, capsys):
    source = compressor("i = np.random.default_rng().choice(v.size, 2, replace=False); return mc.Sparse(v.size, i, v[i])")
    file = written(tmp_path, source)
    mc.run(mc.load_job(file), out=tmp_path)
    line = 1 + file.with_suffix(".py").read_text()[: -len(source)].count("\n") + source[: source.index("i = np")].count("\n")
    says = f"mine calls np.random.default_rng() ({file.stem}.py, line {line}, in Mine.compress), which returns something else each time"
    (line,) = (line for line in capsys.readouterr().err.splitlines() if says in line)
    assert "Random numbers come from t.rng" in line
    (result,) = tmp_path.rglob("*.h5")
    for words in (["show", result], ["table", result], ["table", result, "--to", "loss=0.69"], ["plot", result, "-o", tmp_path / "of.png"]):
        assert main([*map(str, words)]) == 0
        assert says in "".join(capsys.readouterr()), words


def test_a_file_that_changed_since_it_was_imported_is_read_as_it_was(tmp_path):
    file = written(tmp_path, compressor(f"time.time(); {SORTED}").replace("@mc", "import time\n\n@mc", 1))
    job = mc.load_job(file)
    file.with_suffix(".py").write_text(file.with_suffix(".py").read_text().replace("time.time()", "t.k"))
    (found,) = findings_in_job("mine", job).values()
    assert "mine calls time.time() (" in found[0].text


def test_calls_that_return_the_same_each_time_are_named_by_nobody(tmp_path):
    job = mc.load_job(written(tmp_path, DRAWS + compressor("\n        ".join([*SAME_EACH_TIME, SORTED]))))
    (found,) = findings_in_job("mine", job).values()
    assert [each for each in found if each.what == "draws" and each.holds], found


def test_the_parts_of_this_package_draw_from_what_they_are_given():
    held = [value for registry in registries for part in registry.values() if is_ours(part) for value in vars(part).values()]
    functions = [*filter(None, map(function_of, held))]
    assert len(functions) > 500
    assert not unrepeatable(functions)


ONE_NORM = """
@mc.compressors.register("mine")
@dataclass(frozen=True)
class Mine(mc.Compressor):
    makes = mc.Dense
    share: float = 1.0

    def compress(self, v, t):
        norm, out = np.abs(v).sum(), np.zeros(v.size)
        if norm > 0:
            i = t.rng.choice(v.size, p=np.abs(v) / norm)
            out[i] = np.sign(v[i]) * norm
        return mc.Dense(out)

    def omega(self, dim):
        return self.share * (dim - 1)
"""


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_run_says_of_a_false_omega_what_few_draws_prove(share, tmp_path):
    """C(v) is ‖v‖₁ sign(v_i) at one i: its ω = d − 1 is met by a vector of ones, and half of it is false."""
    file = written(tmp_path, ONE_NORM, algorithm="diana", compressor=f'{{ name = "mine", share = {share} }}', codec="dense")
    said = here("run", file, "--out", tmp_path).stderr
    lines = [line for line in said.splitlines() if "does not hold what it states" in line]
    assert len(lines) == (share < 1)
    table = here("table", file, "--out", tmp_path, "--to", "loss=0.69").stdout
    assert ("mine does not hold what it states: ω" in table) == (share < 1), "a result keeps it"
    assert said.count("check-part mine --job") == 1
    if lines:
        right = r"mpi-compress: mine does not hold what it states: ω, 9\.5 is stated for d = 20; at worst 19 was found with a vector of equal numbers\. "
        assert re.match(rf"{right}check-part tries more vectors \(.*\.py, line \d+\)$", lines[0])


def test_what_compressors_state_is_tried_once_for_all_seeds_and_not_for_long_vectors(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(executing, "contradicted", lambda link: tried.append(link.dim) or contradicted(link))
    file = written(tmp_path, ONE_NORM, algorithm="diana", codec="dense", more="\n[grid]\nseed = [0, 1, 2]\n")
    assert len(mc.run(file, out=tmp_path)) == 3
    assert tried == [20]
    c = mc.compressors["mine"](share=0.5)
    monkeypatch.setattr(type(c), "compress", lambda *_: pytest.fail("a vector is drawn"))
    assert contradicted(Link(c, mc.codecs["dense"](), 60_000)) == {}


@pytest.mark.slow
def test_a_verification_names_what_differs_what_is_kept_and_what_is_refused_and_writes_no_result(tmp_path):
    """The codec writes no floats of 32 bits. On several ranks the process ends with the run that is refused."""
    late = f"type(self).calls += 1; v = v * (1 + (type(self).calls > 5000)); {SORTED}"  # the first rounds are the same
    source = compressor(SORTED) + compressor(late, field="calls = 0", name='"late"').replace("Mine", "Late")
    source += compressor(f"v = v * (1 + hash('top') % 97); {SORTED}", name='"hashed"').replace("Mine", "Hashed")
    source += CODEC.format(encoded="out", decoded="out, end").replace("Mine", "Written")
    file = written(tmp_path, source, algorithm="gd", more='''
[[run]]
label = "first"
[[run]]
label = "refused"
up = { compressor = { name = "top-k", k = 3 }, codec = { name = "mine", float = 32 } }
[[run]]
label = "late"
up.compressor = "late"
[[run]]
label = "hashed"
up.compressor = "hashed"
[[run]]
label = "last"
seed = 1
''')
    done = here("run", file, "--verify", "2", "--out", tmp_path / "out")
    assert done.returncode == 1, done.stderr
    first, refused, kept, hashed, last = done.stdout.splitlines()
    assert first.startswith("first: 2 rounds are the same with")
    assert refused.startswith("refused: cannot be run: up.codec: float = 32 changes nothing: Written.encode writes the same bytes"), refused
    assert re.search(naming("late keeps something in Late.calls from call to call memory comes from start(dim)"), kept), kept
    assert "worker 0's message differs in round 0, run with another PYTHONHASHSEED" in hashed
    assert last.startswith("last: 2 rounds are the same with")
    assert not (tmp_path / "out").exists()


def test_check_part_names_a_kind_that_the_class_does_not_say_once(tmp_path):
    source = compressor("i = np.arange(3); return mc.SignSparse(v.size, i, v[i] < 0, 1.0)")
    (found,) = findings_in_job("mine", mc.load_job(written(tmp_path, source))).values()
    (wrong,) = (each.text for each in found if not each.holds)
    assert "a SignSparse was given, and receivers read a Sparse; makes = SignSparse in the class says otherwise" in wrong
    assert wrong.endswith(", Mine.compress)"), wrong


def test_a_compressor_without_a_delta_is_told_how_to_state_it_or_to_do_without(tmp_path):
    file = written(tmp_path, compressor(SORTED), algorithm="ef21")
    with pytest.raises(UserError, match=naming("mine states none: define delta(self, dim), or give algorithm.step a number")):
        mc.run(mc.load_job(file), out=tmp_path)
    (run,) = mc.run(mc.load_job(file, {"algorithm.step": 0.1}), out=tmp_path)
    assert run.status == "complete"


@pytest.mark.parametrize("ranks", [None, pytest.param(3, marks=pytest.mark.slow)])
def test_a_run_says_once_what_its_parts_keep_also_of_workers_on_other_ranks_than_a_dedicated_master(ranks, tmp_path):
    file = written(tmp_path, MODULE + compressor(f"type(self).calls += 1; {SORTED}", field="calls = 0"))
    job = file.read_text().replace("count = 4", 'count = 4, master = "dedicated"')
    file.write_text(f'{job}[[run]]\nlabel = "A"\n[[run]]\nlabel = "B"\nseed = 1\n')
    for i in range(2):
        done = command("run", file, "--out", tmp_path, ranks=ranks)
        (line,) = (line for line in done.stderr.splitlines() if "keeps something" in line)
        assert "Mine.calls from call to call, which makes results depend on the layout" in line
        assert ("memory comes from start(dim)" in line) == (i == 0), "else the summary has it"
        assert line.endswith("layout: A; B") == (i == 1)
        assert done.stderr.splitlines()[-1] == f"next: mpi-compress check-part mine --job {file}"
    done = here("plot", file, "--out", tmp_path, "-o", tmp_path / "figure.svg")
    (line,) = (line for line in done.stderr.splitlines() if "keeps something in Mine.calls" in line)
    assert "keeps something in Mine.calls" in (tmp_path / "figure.svg").read_text()


def test_a_run_says_nothing_of_a_part_that_keeps_nothing(tmp_path, capsys):
    mc.run(mc.load_job(written(tmp_path, compressor(SORTED, field="shares = [1, 2]"), compressor='"mine"')), out=tmp_path)
    assert "keeps something" not in capsys.readouterr().err


@pytest.mark.parametrize(("source", "says"), WITH_THE_JOB, ids=[says for _, says in WITH_THE_JOB])
def test_what_is_no_part_is_refused_with_the_job(source, says, tmp_path):
    compressed = {"compressor": '{ name = "mine", share = 0.25 }'} if "(mc.Compressor)" in source or "no compressor" in says else TOP
    with pytest.raises(UserError, match=naming(says)):
        mc.load_job(written(tmp_path, source, **compressed))


@pytest.mark.parametrize("made", ["return a.tolist(), y.tolist()", "yield a[:7], y[:7]\n        yield a[7:], y[7:]"])
def test_a_generator_may_give_lists_and_chunks(made, tmp_path):
    expected = played(tmp_path, GENERATOR.format(made="return a, y"), **OWN_DATA)
    assert np.array_equal(played(tmp_path, GENERATOR.format(made=made), **OWN_DATA).x, expected.x)


@pytest.mark.parametrize(("source", "old", "new", "parts"), [
    (compressor(SORTED), "[-3:]", "[-2:]", {}),
    (algorithm(), "-0.1", "-0.05", TOP),
    (GENERATOR.format(made="return a, y"), "return a, y", "return 2 * a, y", OWN_DATA),
], ids=["compressor", "algorithm", "generator"])  # fmt: skip
def test_a_part_that_was_changed_is_run_again_and_one_that_was_not_is_not(source, old, new, parts, tmp_path):
    file = written(tmp_path, source, **parts)
    (first,) = mc.run(mc.load_job(file), out=tmp_path)
    module = file.with_suffix(".py")
    module.write_text('"""Described."""\n# a comment\n\n' + module.read_text())
    (same,) = mc.run(mc.load_job(file), out=tmp_path)
    assert same.attrs["run_id"] == first.attrs["run_id"]
    module.write_text(module.read_text().replace(old, new) + "# changed\n")
    (changed,) = mc.run(mc.load_job(file), out=tmp_path)
    assert changed.attrs["run_id"] != first.attrs["run_id"]
    assert not np.array_equal(changed.x, first.x)


def test_runs_that_do_not_use_a_part_do_not_follow_its_source(tmp_path):
    file = written(tmp_path, compressor(SORTED), compressor='{ name = "top-k", k = 3 }')
    before = mc.load_job(file).runs[0].run_id
    file.with_suffix(".py").write_text(HEAD + compressor(SORTED) + "CHANGED = 1")
    assert mc.load_job(file).runs[0].run_id == before


def test_the_modules_beside_a_plugin_that_it_uses_count_too(tmp_path):
    (tmp_path / "helper_of_mine.py").write_text("MANY = 3\n")
    file = written(tmp_path, "import helper_of_mine\n" + compressor(SORTED.replace("-3", "-helper_of_mine.MANY")))
    (first,) = mc.run(mc.load_job(file), out=tmp_path)
    (tmp_path / "helper_of_mine.py").write_text("MANY = 4  # now\n")
    (second,) = mc.run(mc.load_job(file), out=tmp_path)
    assert [r.trace["elements_up"][-1] for r in (first, second)] == [5 * 4 * 3, 5 * 4 * 4]


def test_what_was_imported_and_not_what_was_saved_since_decides_the_id(tmp_path):
    file = written(tmp_path, compressor(SORTED))
    job = mc.load_job(file)
    before = job.runs[0].run_id
    file.with_suffix(".py").write_text(HEAD + compressor(SORTED.replace("-3", "-12")))
    assert job.runs[0].run_id == before
    assert mc.run(job, out=tmp_path)[0].trace["elements_up"][-1] == 5 * 4 * 3
    assert mc.run(mc.load_job(file), out=tmp_path)[0].trace["elements_up"][-1] == 5 * 4 * 12


def test_a_module_of_parts_that_two_plugins_bring_in_is_one(tmp_path):
    (tmp_path / "shared_parts.py").write_text(HEAD + compressor(SORTED))
    through = []
    for name in ("by_a", "by_b"):
        (tmp_path / f"{name}.py").write_text(f"import shared_parts  # {name}\n")
        (tmp_path / f"{name}.toml").write_text(JOB.format(name=name, **OURS))
        through.append(mc.load_job(tmp_path / f"{name}.toml").runs[0].run_id)
    assert through[0] == through[1]


def test_a_name_that_a_plugin_gave_up_is_unknown(tmp_path):
    file = written(tmp_path, compressor(SORTED, name='"once"'), compressor='"once"')
    mc.load_job(file)
    file.with_suffix(".py").write_text(HEAD + compressor(SORTED, name='"renamed"'))
    with pytest.raises(UserError, match="no compressor called 'once'"):
        mc.load_job(file)


def test_parts_of_a_session_are_played_anew_in_the_next(tmp_path):
    """What stands in a notebook has no source that could be compared."""
    file = tmp_path / "session.toml"
    file.write_text(JOB.format(name="x", **OURS).replace('plugins = ["x"]', ""))
    body = f"{HEAD}{compressor(SORTED)}\n(run,) = mc.run(mc.load_job('{file}'), out='{tmp_path}')\nprint(run.attrs['run_id'])"
    ids = [subprocess.run([sys.executable, "-"], input=body, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert ids[0] != ids[1]
    script = tmp_path / "script.py"
    script.write_text(body)
    ids = [subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert ids[0] == ids[1]


def test_the_job_of_a_result_names_its_plugins_and_runs_again(tmp_path):
    run = played(tmp_path, compressor(SORTED))
    again = tmp_path / "again.toml"
    again.write_text(run.attrs["job"])
    (same,) = mc.run(mc.load_job(again), out=tmp_path / "again")
    assert same.attrs["run_id"] == run.attrs["run_id"]
    assert np.array_equal(same.x, run.x)


def test_a_module_whose_earlier_file_is_gone_is_imported_from_where_it_is_now(tmp_path):
    """As when a frozen copy of it was removed once its runs had ended."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    file = written(here, compressor(SORTED))
    mc.load_job(file)
    shutil.copytree(here, there)
    shutil.rmtree(here)
    (run,) = mc.run(mc.load_job(there / file.name), out=tmp_path)
    assert run.status == "complete"


TAKEN = {
    "ef21-sgdm": "algorithm", "econtrol": "algorithm", "dasha": "algorithm", "page": "algorithm", "scaffnew": "algorithm",
    "double-squeeze": "algorithm", "power-sgd": "algorithm", "natural": "compressor", "block-sign": "compressor",
    "count-sketch": "compressor",
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_a_part_that_has_the_name_of_one_of_the_package_is_refused_and_both_are_named(name, tmp_path):
    own = algorithm() if TAKEN[name] == "algorithm" else compressor(SORTED)
    file = written(tmp_path, own.replace('register("mine")', f'register("{name}")'))
    says = rf"two classes are the {TAKEN[name]} '{name}': \w+ \(\S+/mpi_compress/\S+\.py, line \d+\) and Mine \({file.stem}, line \d+\)"
    with pytest.raises(UserError, match=says.replace(f"({file.stem}", f"({re.escape(str(file.with_suffix('.py')))}")):
        mc.load_job(file)
    assert mc.algorithms["gd"] is not None


def test_two_modules_with_parts_of_one_name_are_refused_and_both_are_named(tmp_path):
    for name in ("of_one", "of_other"):
        (tmp_path / f"{name}.py").write_text(HEAD + compressor(SORTED))
        (tmp_path / f"{name}.toml").write_text(JOB.format(name=name, **OURS))
    before = mc.load_job(tmp_path / "of_one.toml").runs[0].run_id
    with pytest.raises(UserError, match=r"two classes are the compressor 'mine': Mine \(\S+of_one\.py, line \d+\) and Mine \(\S+of_other\.py, line"):
        mc.load_job(tmp_path / "of_other.toml")
    assert mc.load_job(tmp_path / "of_one.toml").runs[0].run_id == before


def test_a_session_may_define_its_part_again_and_none_of_the_package_s_names(tmp_path):
    again = f"{HEAD}{compressor(SORTED)}{compressor(SORTED).replace('class Mine', 'class Again')}\nprint(mc.compressors['mine'].__name__)"
    assert subprocess.run([sys.executable, "-c", again], capture_output=True, text=True, check=True).stdout.strip() == "Again"
    taken = f"{HEAD}{compressor(SORTED, name=repr('natural'))}"
    said = subprocess.run([sys.executable, "-c", taken], capture_output=True, text=True, check=False).stderr
    assert "two classes are the compressor 'natural': Natural (" in said


@pytest.mark.parametrize("within", ["server", "of"])
def test_the_source_of_a_part_within_a_part_is_in_the_id_too(within, tmp_path):
    server = """
from mpi_compress.algorithms import servers, Server
@servers.register("mine")
@dataclass(frozen=True)
class Mine(Server):
    def move(self, s, g, γ, k):
        self.along(s.x, g, 0.5 * γ)
"""
    if within == "server":
        source, parts = server, {"compressor": '{ name = "top-k", k = 3 }', "algorithm": 'ef", server = "mine", step = "0.1/L'}
    else:
        source, parts = compressor(SORTED), {"compressor": '{ name = "blocks", of = "mine", slices = 2 }', "codec": "blocks"}
    file = written(tmp_path, source, **parts)
    before = mc.load_job(file).runs[0].run_id
    file.with_suffix(".py").write_text(HEAD + source.replace("0.5 * γ", "0.4 * γ").replace("[-3:]", "[-2:]"))
    assert mc.load_job(file).runs[0].run_id != before


USED = """
import used_by_mine
from used_by_mine import SHIFT as BY, shift

KEEP = 3
OTHER = 4

def kept(v):
    return np.sort(np.argpartition(np.abs(v), -KEEP)[-KEEP:])

class Base(mc.Compressor):
    def compress(self, v, t):
        i = kept(shift(v, BY))
        return mc.Sparse(v.size, i, v[i])

@mc.compressors.register("mine")
@dataclass(frozen=True)
class Mine(Base):
    share: float = 0.5

def unused(v):
    return OTHER
"""
HELPER = "SHIFT = 0.0\nFACTOR = 1.0\nUNUSED = 2\n\ndef shift(v, by):\n    return FACTOR * v + by\n"


@pytest.mark.parametrize(("where", "old", "new", "reruns"), [
    ("module", "KEEP = 3", "KEEP = 2", True), ("module", "return mc.Sparse(v.size, i, v[i])", "return mc.Sparse(v.size, i, v[i] + 0)", True),
    ("module", "OTHER = 4", "OTHER = 5", False), ("module", "return OTHER", "return 0", False), ("module", "-0.1", "-0.2", False),
    ("module", "np.abs(v)", "np.abs(v + 0)", True), ("helper", "FACTOR = 1.0", "FACTOR = 2.0", True), ("helper", "v + by", "v - by", True),
    ("helper", "SHIFT = 0.0", "SHIFT = 0.1", True),
])  # fmt: skip
def test_an_edit_reruns_the_runs_that_use_what_was_edited_and_no_others(where, old, new, reruns, tmp_path):
    texts = {"module": USED.replace("import used_by_mine\n", "") + algorithm().replace("mine", "my-descent").replace("Mine", "Descent"), "helper": HELPER}
    texts["module"] = "from used_by_mine import SHIFT as BY, shift\n" + texts["module"]
    (tmp_path / "used_by_mine.py").write_text(texts["helper"])
    file = written(tmp_path, texts["module"])
    job = tmp_path / "of_both.toml"
    job.write_text(JOB.format(name=file.stem, **OURS) + '[[run]]\nlabel = "1"\n[[run]]\nlabel = "2"\nalgorithm = { name = "my-descent" }\nup = { compressor = { name = "top-k", k = 3 } }\n')
    before = [run.run_id for run in mc.load_job(job).runs]
    assert old in texts[where]
    texts[where] = texts[where].replace(old, new)
    (tmp_path / "used_by_mine.py").write_text(texts["helper"])
    file.with_suffix(".py").write_text(HEAD + texts["module"])
    after = [run.run_id for run in mc.load_job(job).runs]
    assert [a != b for a, b in zip(before, after, strict=True)] == [reruns, old == "-0.1"]


def test_a_plain_import_finds_a_module_of_ones_own_package(tmp_path):
    package = tmp_path / "my_package"
    (package / "inner").mkdir(parents=True)
    for name, text in (("__init__", ""), ("sub", "MANY = 3\n"), ("neighbour", "MORE = 0\n"), ("inner/__init__", ""), ("inner/deep", "LESS = 0\n")):
        (package / f"{name}.py").write_text(text)
    imports = "from my_package.sub import MANY\nimport neighbour\nfrom .inner.deep import LESS\nfrom . import sub\n"
    body = SORTED.replace("-3", "-(MANY + neighbour.MORE + LESS)")
    (package / "parts.py").write_text(imports + HEAD + compressor(body))
    (tmp_path / "job.toml").write_text(JOB.format(name="my_package.parts", **OURS))
    (run,) = mc.run(mc.load_job(tmp_path / "job.toml"), out=tmp_path)
    assert run.trace["elements_up"][-1] == 5 * 4 * 3
    for file, text in (("sub", "MANY = 4  # now\n"), ("neighbour", "MORE = 10  # now\n"), ("inner/deep", "LESS = -2  # now\n")):
        (package / f"{file}.py").write_text(text)
    (second,) = mc.run(mc.load_job(tmp_path / "job.toml"), out=tmp_path)
    assert second.trace["elements_up"][-1] == 5 * 4 * 12


@pytest.mark.parametrize("line", ["from mpi_compress.problem import Nothing", "import mpi_compress.nothing", "mc.Nothing"])
def test_what_the_package_does_not_have_is_named_with_the_line(line, tmp_path):
    file = written(tmp_path, f"\n{line}\n" + compressor(SORTED))
    number = (HEAD + "\n").count("\n") + 1
    with pytest.raises(UserError, match=naming(f"({file.with_suffix('.py')}, line {number}: {line})")):
        mc.load_job(file)


def test_a_method_of_ones_own_that_is_called_may_have_any_name(tmp_path):
    source = algorithm("return self.worker_send(f.gradient(node.x), t)")
    source += "\n    def worker_send(self, g, t):\n        return self.up.pack(g, t)\n"
    assert played(tmp_path, source, **TOP).status == "complete"


@pytest.mark.parametrize(("sends", "says"), [
    ("return self.up.pack(f.gradient(node.x)[:5], t)", "pack: coordinates have shape (5,); it should be (20,)"),
    ("return self.up.pack(self.gamma(t.k) * f.gradient(node.x), t)", "step = None is no number; a class with steps has the field"),
])  # fmt: skip
def test_an_error_of_a_plugin_names_its_file_and_its_line(sends, says, tmp_path):
    file = written(tmp_path, algorithm(sends), **TOP)
    with pytest.raises(UserError, match=naming(says)) as caught:
        mc.run(mc.load_job(file), out=tmp_path)
    assert re.search(rf"\({re.escape(str(file.with_suffix('.py')))}, line \d+", str(caught.value))


@pytest.mark.parametrize(("was", "now"), [
    ("x0):", "):"), ("worker, f, t):", "f, t):"), ("ups, t):", "ups, t, more):"), ("    def start", "    def iterate(self, node):\n        pass\n\n    def start"),
    ("    def start", "    def uplink(self, node, k):\n        pass\n\n    def start"),
])  # fmt: skip
def test_what_cannot_be_called_or_taken_of_a_part_is_one_line_that_names_its_file(was, now, tmp_path, capfd):
    source = algorithm().replace(was, now, 1)
    main(["run", str(written(tmp_path, source, **TOP)), "--out", str(tmp_path)])
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "TRACEBACK=1" in line]
    assert re.search(r"(Type|Attribute)Error: .* \(\S+\.py, line \d+", line)


@pytest.mark.parametrize("stated", ["needs = None", "log = None"])
def test_a_constant_of_another_type_than_its_contract_says_is_refused_with_its_file(stated, tmp_path, capfd):
    job = written(tmp_path, algorithm().replace("Algorithm):", f"Algorithm):\n    {stated}", 1), **TOP)
    assert main(["run", str(job), "--out", str(tmp_path)]) == 2
    assert re.search(rf"'mine': {stated} was given; it should be a \w+ \(\S+\.py, line \d+\)$", capfd.readouterr().err)


STATED = """
@mc.algorithms.register("mine")
class Mine(mc.algorithms["ef21"]):
    {}
"""


@pytest.mark.parametrize(("bare", "given"), [
    ("step = '0.1/L'\n    server = 'heavy-ball'\n    first = 'compressed'", 'step = "0.1/L", server = "heavy-ball", first = "compressed"'),
    ("step = 0.5\n    server = {'name': 'heavy-ball', 'beta': 0.5}", 'step = 0.5, server = { name = "heavy-ball", beta = 0.5 }'),
    ("step = [[0, 0.5], [2, 0.1]]\n    batch = 4", 'step = [[0, 0.5], [2, 0.1]], batch = 4'),
])  # fmt: skip
@pytest.mark.parametrize("decorated", ["", "@dataclass(frozen=True)\n"])
def test_what_a_class_states_bare_is_what_a_job_would_give(bare, given, decorated, tmp_path):
    expected = played(tmp_path, "", algorithm=f'ef21", {given}, sampling = "with-replacement', compressor=TOP["compressor"])
    source = STATED.format(bare).replace("class Mine", f"{decorated}class Mine")
    found = played(tmp_path, source, algorithm="mine", compressor=TOP["compressor"])
    for column in ("loss", "grad_norm", "wire_bits_up"):
        assert np.array_equal(found.trace[column], expected.trace[column])
    assert np.array_equal(found.x, expected.x)


def test_every_field_of_every_built_part_is_in_the_result_and_shown(tmp_path, capsys):
    source = STATED.format("server = 'heavy-ball'\n    step = 0.1") + compressor(SORTED, field="share: float = 0.25")
    run = played(tmp_path, source, algorithm="mine")
    built = json.loads(run.attrs["built"])
    assert built["algorithm"]["step"] == 0.1
    assert built["algorithm"]["server"]["name"] == "heavy-ball"
    assert {"beta", "average"} <= built["algorithm"]["server"].keys()
    assert built["up.compressor"] == {"name": "mine", "share": 0.25}
    assert built["up.codec"]["float"] == 64
    assert {"down.by", "down.compressor", "down.codec", "cost", "objective.loss", "workers.partition"} <= built.keys()
    main(["show", str(run.file)])
    assert "built     up.compressor: mine, share = 0.25" in capsys.readouterr().out


def test_a_job_s_value_wins_over_what_a_class_states(tmp_path):
    expected = played(tmp_path, "", algorithm='ef21", step = "0.2/L', compressor=TOP["compressor"])
    found = played(tmp_path, STATED.format("step = '0.1/L'"), algorithm='mine", step = "0.2/L', compressor=TOP["compressor"])
    assert np.array_equal(found.x, expected.x)


def test_a_bare_parameter_of_a_base_of_ones_own_is_one_too(tmp_path):
    base = "class Base(mc.Algorithm):\n    step = 0.1\n    tempo = 2\n"
    own = algorithm().replace("(mc.Algorithm)", "(Base)").replace("-0.1)", "-self.gamma(t.k))")
    expected = played(tmp_path, algorithm(), **TOP)
    assert np.array_equal(played(tmp_path, base + own, **TOP).x, expected.x)


@pytest.mark.parametrize(("stated", "says"), [
    ("step = 'much/L'", "much"), ("batch = 1.5", "algorithm.batch: 1.5 whole number"), ("first = 'later'", "algorithm.first: 'later' 'gradient' 'compressed'"),
    ("server = 'hevy-ball'", "no server called 'hevy-ball'; did you mean 'heavy-ball'?"),
    ("partial_mean = 'over-all'", "partial_mean = 'over-all' was given; it should be '' or 'over all' or 'over participants'"),
    ("compressor = 'topk'", "up: the compressor of mine: no compressor called 'topk'; did you mean 'top-k'?"),
    ("stpe = '0.1/L'", "Mine.stpe is used by nothing; did you mean step?"), ("Step = 0.1", "Mine.Step is used by nothing; did you mean step?"),
    ("compresor = 'top-k'", "Mine.compresor is used by nothing; did you mean compressor?"),
    ("downlink = 'ef21-p'", "Mine.downlink is a value, and parts of this kind have a method downlink: give the value another name"),
    ("theorm = '1/L'", "Mine.theorm is used by nothing; did you mean theor"), ("by = 'ef21-p'", "parts in the class names its downlink"),
])  # fmt: skip
def test_what_a_class_states_that_would_say_nothing_is_refused(stated, says, tmp_path):
    with pytest.raises(UserError, match=naming(says) if "theor" not in says else says):
        mc.run(mc.load_job(written(tmp_path, STATED.format(stated), **TOP)), out=tmp_path)


def test_a_class_may_have_constants_of_its_own(tmp_path):
    assert played(tmp_path, STATED.format("tempo = 3\n    MANY = (1, 2)"), **TOP).status == "complete"


def test_the_advice_for_an_unknown_compressor_of_a_class_names_another_one(tmp_path):
    job = JOB.format(name=module_in(tmp_path, STATED.format("compressor = 'topk'")), **{**OURS, **TOP}).partition("[up]")[0]
    (tmp_path / "bare.toml").write_text(job)
    with pytest.raises(UserError, match=naming("up: the compressor of mine: no compressor called 'topk'; did you mean 'top-k'?")):
        mc.load_job(tmp_path / "bare.toml")


def test_a_warm_up_says_nothing_and_leaves_the_errors_of_a_users_algorithm_to_the_run(tmp_path, capfd):
    source = ALGORITHM.format(sends=SENDS, answers="assert len(ups) == 4; " + ANSWERS)
    needy = algorithm("assert len(f.rows) == 10 and node.x[0] != 1e-3; " + SENDS)
    for each in (source, needy):
        (run,) = mc.run(mc.load_job(written(tmp_path, each, **TOP)), out=tmp_path, quiet=False)
        assert run.status == "complete"
        assert "AssertionError" not in capfd.readouterr().err
    mc.run(mc.load_job(written(tmp_path, algorithm("node.there; " + SENDS), **TOP)), out=tmp_path, quiet=False)
    assert capfd.readouterr().err.count("AttributeError") == 1


HELPED = "import helper_of_two\n" + compressor(SORTED.replace("-3", "-helper_of_two.MANY"))


@pytest.mark.parametrize("names", [("same", "same"), ("one", "two")], ids=["plugins of one name", "of two names"])
def test_modules_of_one_name_in_two_folders_are_refused_and_both_are_named(tmp_path, names):
    for k, name in zip((3, 2), names, strict=True):
        folder = tmp_path / str(k)
        folder.mkdir()
        (folder / "helper_of_two.py").write_text(f"MANY = {k}\n")
        (folder / f"helped_{name}.py").write_text(HEAD + HELPED.replace('"mine"', f'"mine-{k}"'))
        (folder / "job.toml").write_text(JOB.format(name=f"helped_{name}", **OURS | {"compressor": f'"mine-{k}"'}))
    first = mc.load_job(tmp_path / "3" / "job.toml")
    name = "helper_of_two" if names[0] != names[1] else "helped_same"
    both = f"two modules are called '{name}': {tmp_path}/3/{name}.py and {tmp_path}/2/{name}.py; give one of them another name"
    with pytest.raises(UserError, match=re.escape(both)):
        mc.load_job(tmp_path / "2" / "job.toml")
    (run,) = mc.run(first, out=tmp_path / "results", fresh=True)
    assert run.trace["elements_up"][-1] == 5 * 4 * 3


def test_a_module_beside_the_job_comes_before_another_in_the_current_folder(tmp_path, monkeypatch):
    beside = tmp_path / "jobs"
    beside.mkdir()
    for folder, k in ((tmp_path, 2), (beside, 3)):
        (folder / "in_two_places.py").write_text(HEAD + compressor(SORTED.replace("-3", f"-{k}")))
    (beside / "job.toml").write_text(JOB.format(name="in_two_places", **OURS))
    monkeypatch.chdir(tmp_path)
    (run,) = mc.run(mc.load_job("jobs/job.toml"), out=tmp_path / "results", fresh=True)
    assert run.trace["elements_up"][-1] == 5 * 4 * 3


def test_a_file_beside_a_job_does_not_hide_a_module_of_python_and_is_no_plugin(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('this is not Python's')")
    source = compressor(SORTED.replace("-3", "-int(colorsys.rgb_to_hsv(1, 1, 3)[2])"))
    assert played(tmp_path, "import colorsys\n" + source).trace["elements_up"][-1] == 5 * 4 * 3
    with pytest.raises(UserError, match="plugins: 'colorsys' is a module of Python; give the file another name"):
        mc.load_job({"plugins": ["colorsys"]})


def test_a_job_of_a_dict_keeps_its_plugins_in_another_folder(tmp_path, monkeypatch):
    for k in (3, 2):
        (tmp_path / str(k)).mkdir()
        (tmp_path / str(k) / f"moving_{k}.py").write_text(HEAD + compressor(SORTED.replace("-3", f"-{k}"), name=f'"mine-{k}"'))
    jobs = []
    for k in (3, 2):
        monkeypatch.chdir(tmp_path / str(k))
        jobs.append(mc.load_job(tomllib.loads(JOB.format(name=f"moving_{k}", **OURS | {"compressor": f'"mine-{k}"'}))))
    monkeypatch.chdir(tmp_path)
    for job, k in zip(jobs, (3, 2), strict=True):
        assert mc.run(job, out=tmp_path)[0].trace["elements_up"][-1] == 5 * 4 * k


TOP_OF_16 = """
@mc.compressors.register("mine")
@dataclass(frozen=True)
class Mine(mc.Compressor):
    k: int = 16

    def compress(self, v, t):
        indices = np.sort(np.argsort(-np.abs(v), kind="stable")[:self.k]).astype(np.uint32)
        return mc.Sparse(v.size, indices, v[indices])

    def delta(self, dim):
        return {delta}
"""


@pytest.mark.parametrize(("delta", "right"), [("self.k / dim", True), ("2 * self.k / dim", False)])
def test_a_delta_that_small_d_do_not_go_with_is_checked_for_larger_ones(delta, right, tmp_path):
    """16/d is above 1 for d = 12, and for the problems of --theorem, whose d is at most 11."""
    file = written(tmp_path, TOP_OF_16.format(delta=delta), algorithm="ef21", data='generator = "gspar", samples = 40, dim = 64')
    said = here("check-part", "mine", "--job", file)
    assert said.returncode == (0 if right else 1)
    assert re.search(r"d = 60, 1000, 64" if right else r"WRONG  δ: 0.5 is stated for d = 64; at worst 0.25", said.stdout), said
    if right:
        theorem = here("check-part", "ef21", "--job", file, "--theorem")
        assert (theorem.returncode, "no problem of" in theorem.stdout) == (0, False), theorem
