"""Methods are declared and bound: a declared one never changes, and a bound one is a new object of one run."""

import copy

import pytest
from helpers.plays import bound, play, problem

import mpi_compress as mc
from mpi_compress.algorithms import algorithms, downlinks, servers
from mpi_compress.algorithms.log import Log
from mpi_compress.algorithms.parts import PartOfMethod
from mpi_compress.core.registry import Part

TOP, RANDOM = {"name": "top-k", "k": 3}, {"name": "random-k", "k": 3}
DECLARED = [
    ({"name": "ef"}, {"name": "hard-threshold", "accuracy": 0.1}),
    ({"name": "ef", "momentum": 0.5}, TOP),
    ({"name": "ef21", "server": {"name": "nesterov"}, "step": "0.1/L"}, TOP),
    ({"name": "diana"}, RANDOM),
    ({"name": "ef21-p-diana"}, RANDOM, TOP),
    ({"name": "marina-p"}, {"name": "identity"}, RANDOM),
]


def attributes(part):
    return dict(vars(part))


@pytest.mark.parametrize("tables", DECLARED, ids=lambda tables: tables[0]["name"])
def test_binding_leaves_the_declared_method_and_its_parts_as_they_are(tables):
    table, up, *down = tables
    declared = algorithms.build(table, "algorithm")
    before = copy.deepcopy(attributes(declared))
    one, two = (bound(problem(mu=mu), declared, up, down=next(iter(down), None)) for mu in (1e-2, 1e-1))
    assert attributes(declared) == before
    assert type(one) is type(two) is type(declared)
    assert (one.setting.numbers["mu"], two.setting.numbers["mu"]) == (1e-2, 1e-1)
    assert one.server is not two.server


def test_a_declared_method_knows_no_run():
    declared = algorithms.build({"name": "gd"}, "algorithm")
    for what in ("setting", "numbers"):
        with pytest.raises(AttributeError):
            getattr(declared, what)
    assert (declared.step, bound(problem(), declared, TOP).step) == ("1/L", 1 / problem().numbers["L"])


@pytest.mark.parametrize("kind", ["algorithm", "server", "downlink"])
def test_no_part_of_a_method_stands_more_than_three_classes_below_its_contract(kind):
    contracts = (*mc.Algorithm.__mro__, PartOfMethod)

    def depth(cls):
        return 0 if cls in contracts else 1 + max(depth(base) for base in cls.__bases__ if issubclass(base, Part))

    parts = {"algorithm": algorithms, "server": servers, "downlink": downlinks}
    assert {name: depth(cls) for name, cls in parts[kind].items() if depth(cls) > 3} == {}


def test_two_step_sizes_of_ef21_p_diana_are_one_number():
    """β of the paper is DIANA's α."""
    method = bound(problem(), {"name": "ef21-p-diana", "beta": "0.5/(1 + omega)"}, RANDOM, down=TOP)
    assert method.alpha == method.beta == 0.5 * 3 / 30


def test_columns_come_from_the_log_of_the_nearest_class():
    class Heights(mc.Estimator):
        step: float = 0.1
        log = Log(("height",), lambda worker: (2.0,))

        def worker_sends(self, node, worker, f, t):
            return self.up.pack(f.gradient(node.x), t)

    class Doubled(Heights):
        log = Log(("height",), lambda worker: (3.0,), lambda means, node: {"twice": 2 * means["height"]})

    of_ef = type("OfEF", (algorithms["ef"],), {"log": Heights.log})
    columns = [play(problem(), cls(), TOP, 1).rows[-1].trace for cls in (Heights, Doubled, of_ef)]
    names = ("height", "twice", "height")
    assert [own[name] for own, name in zip(columns, names, strict=True)] == [2.0, 6.0, 2.0]


@pytest.mark.parametrize(("name", "instead"), {"lyapunov": "mc.Theorem", "lyapunov_terms": "mc.Theorem", "logs": "mc.Log", "worker_logs": "mc.Log"}.items())
def test_what_a_class_of_a_method_stated_once_is_refused_by_a_line_that_says_what_to_write(name, instead):
    with pytest.raises(TypeError, match=rf"Mine\.{name} was removed: .*{instead}"):
        type("Mine", (mc.Estimator,), {name: ()})


@pytest.mark.parametrize("name", ["up", "down", "codec"])
def test_a_class_states_its_links_in_one_way(name):
    with pytest.raises(TypeError, match=rf"Mine\.{name}: a class states its links as links = "):
        type("Mine", (mc.Estimator,), {name: "top-k"})
