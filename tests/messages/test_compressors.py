"""Each compressor keeps to the theorem that it states, for every vector."""

from contextlib import suppress

import numpy as np
import pytest
from helpers.examples import COMPRESSORS
from helpers.refusals import naming
from helpers.vectors import fixed, hard, real
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_compress.algorithms.tuning.search import alistarh_budget
from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Pool, Role, Round, Streams
from mpi_compress.messages.batch import batch_of
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.compressors.among_workers import Pattern, PermK
from mpi_compress.messages.compressors.at_random import RandomK, UniSp
from mpi_compress.messages.compressors.base import Sized, coordinates_sent
from mpi_compress.messages.compressors.largest import Accordion, HardThreshold, TopK
from mpi_compress.messages.compressors.levels import Rounding
from mpi_compress.messages.compressors.signs import LQ, SQ
from mpi_compress.messages.compressors.whole import Identity, LatticeQuantizer
from mpi_compress.messages.kinds import Sparse
from mpi_compress.messages.link import Link

STREAMS = Streams(0)
FAST = settings(max_examples=25, deadline=None, derandomize=True)
DRAWS = 400
OVERFLOW = "grid of .* is finer|steps of"  # how a grid that floats cannot hold is refused


def at(k=0) -> Round:
    return Round(k, STREAMS, Role.WORKER)


def built(spec) -> Compressor:
    return compressors.build(spec, "up.compressor")


def every(states) -> pytest.MarkDecorator:
    """All examples whose compressor says so for d = 12."""
    chosen = [spec for spec in COMPRESSORS if states(built(spec))]
    return pytest.mark.parametrize("spec", chosen, ids=str)


def fitting(spec, d) -> Compressor | None:
    """The compressor, where it can be meant for d coordinates."""
    C = built(spec)
    try:
        C.check(d)
    except ValueError:
        return None
    return C


def losses(C, v, draws=DRAWS):
    """C(v) − v for many rounds, over ‖v‖'s scale: (draws, d)."""
    scale = np.max(np.abs(v)) or 1.0
    return np.array([C.compress(v, at(k)).dense() / scale - v / scale for k in range(draws)])


def relative_norm(v):
    return np.linalg.norm(v / (np.max(np.abs(v)) or 1.0))


def test_every_compressor_has_an_example():
    assert {spec["name"] for spec in COMPRESSORS} == set(compressors)


def test_every_compressor_names_its_paper_but_the_identity():
    assert all(cls.paper for cls in compressors.values() if cls is not Identity)


@every(lambda C: True)
def test_the_same_address_gives_the_same_message(spec):
    C, v = built(spec), fixed()["normal"]
    np.testing.assert_array_equal(C.compress(v, at(3)).dense(), C.compress(v.copy(), at(3)).dense())


@every(lambda C: True)
@given(v=hard())
@FAST
def test_messages_are_of_the_stated_kind_and_size_and_leave_the_vector_alone(spec, v):
    C = fitting(spec, v.size)
    if C is None:
        return
    before = v.copy()
    try:
        c = C.compress(v, at())
    except OverflowError:
        assert np.max(np.abs(v)) > 1e10  # a fixed grid and a huge vector
        return
    assert type(c) is C.makes
    assert c.dim == v.size
    assert c.dense().dtype == np.float64
    np.testing.assert_array_equal(v, before)


@every(lambda C: True)
def test_what_goes_beyond_floats_is_refused_in_a_line_and_never_infinite(spec):
    """Near 1.7e308 the d/k of random-k, or a sum, goes beyond floats."""
    v, C = np.where(np.arange(12) % 3, 1.7, -1.6) * 1e308, built(spec)
    with suppress(OverflowError), np.errstate(over="ignore"):
        assert Link(C, codecs.build(C.codec, "codec"), 12).compress(v, at()).is_finite()


@every(lambda C: True)
def test_vectors_of_single_precision_and_slices_are_compressed_as_their_copies_in_double(spec):
    short = np.random.default_rng(3).standard_normal(600).astype(np.float32)
    for given_as in (short, short.astype(float)[::-1], np.asfortranarray(short.astype(float).reshape(200, 3))[:, 1]):
        double = np.array(given_as, dtype=float)
        if (C := fitting(spec, double.size)) is not None:
            a, b = C.compress(given_as, at()).dense(), C.compress(double, at()).dense()
            np.testing.assert_allclose(a, b, rtol=1e-7 * (given_as.dtype == np.float32))


@every(lambda C: C.delta(12) is not None and C.omega(12) in (None, 0.0))
@given(v=hard())
@FAST
def test_contractive_compressors_lose_at_most_their_stated_share(spec, v):
    C = fitting(spec, v.size)
    if C is None:
        return
    few = losses(C, v, 8)
    lost = few[:1] if np.array_equal(few, np.tile(few[0], (8, 1))) else losses(C, v, DRAWS // 4)  # in the mean, where it draws
    squares = np.sum(lost**2, axis=1)
    slack = 5 * np.std(squares) / np.sqrt(squares.size)
    slack += v.size * (2.0**-1074 / np.max(np.abs(v), initial=1e-323)) ** 2 * (1 + 1e-9)  # floats below 2⁻¹⁰²² have this distance
    assert np.mean(squares) <= (1 - C.delta(v.size) + 1e-28) * relative_norm(v) ** 2 * (1 + 1e-12) + slack  # 1e-28: rounding


@every(lambda C: C.unbiased(12))
@pytest.mark.parametrize("name", fixed())
def test_unbiased_compressors_have_the_vector_as_mean(spec, name):
    """Each coordinate within 5 standard errors."""
    C, v = built(spec), fixed()[name]
    if name in ("huge", "tiny") and C.omega(v.size) is None:
        return  # a grid of fixed size would have to be drawn from for longer
    lost = losses(C, v)
    error = np.maximum(np.std(lost, axis=0) / np.sqrt(DRAWS), relative_norm(v) / DRAWS)  # what is too rare to have been seen
    assert np.all(np.abs(np.mean(lost, axis=0)) <= 5 * error)


@every(lambda C: (C.omega(12) or 0.0) > 0)
def test_an_unbiased_compressor_is_contractive_where_it_loses_less_than_all(spec):
    """Its loss in the mean is what the test of variances compares."""
    C = built(spec)
    for d in (12, 400):
        if (ω := C.omega(d)) < 1:
            assert C.delta(d) == pytest.approx(1 - ω)
        else:
            assert C.delta(d) is None


@every(lambda C: C.omega(12) is not None)
@given(v=hard())
@FAST
def test_unbiased_compressors_have_at_most_their_stated_variance(spec, v):
    C = fitting(spec, v.size)
    if C is None:
        return
    squares = np.sum(losses(C, v, 40) ** 2, axis=1)
    slack = 5 * np.std(squares) / np.sqrt(squares.size)
    rounding = np.sqrt(v.size) * 0.5 * (5e-324 / (np.max(np.abs(v)) or 1.0))  # of denormals, whose spacing is no share of them
    stated = (np.sqrt(C.omega(v.size)) * relative_norm(v) + rounding) ** 2
    assert np.mean(squares) <= stated * (1 + 1e-12) + slack


@every(lambda C: C.variance(12) is not None)
@given(v=hard(largest_exponent=3))
@FAST
def test_absolute_compressors_lose_at_most_their_stated_amount(spec, v):
    C = fitting(spec, v.size)
    if C is None:
        return
    squares = [np.sum((C.compress(v, at(k)).dense() - v) ** 2) for k in range(40)]
    slack = 5 * np.std(squares) / np.sqrt(len(squares))
    assert np.mean(squares) <= C.variance(v.size) * (1 + 1e-9) + slack


@every(lambda C: True)
def test_theorems_hold_on_real_gradients(spec):
    for name, g in real().items():
        if (C := fitting(spec, g.size)) is None:
            return
        v = g / np.max(np.abs(g))
        squares = np.array([np.sum((C.compress(v, at(k)).dense() - v) ** 2) for k in range(5)])
        bounds = {
            "contractive": None if C.delta(v.size) is None else (1 - C.delta(v.size)) * np.sum(v**2),
            "unbiased": None if C.omega(v.size) is None else C.omega(v.size) * np.sum(v**2),
            "absolute": C.variance(v.size),
        }
        for theorem, bound in bounds.items():
            if bound is not None:
                assert np.mean(squares) <= bound * (1 + 1e-9) + 5 * np.std(squares), f"{theorem}, {name}"


@every(lambda C: not isinstance(getattr(C, "outer", C), RandomK | UniSp | PermK | Pattern))  # these pass on what they draw
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_passed_on(spec, bad):
    C = built(spec)
    for v in (np.r_[np.ones(11), bad], np.r_[bad, np.zeros(11)], np.r_[bad, bad, np.arange(10.0)]):
        c = C.compress(v, at())
        assert not c.is_finite()
        assert not np.all(np.isfinite(c.dense()))


@every(lambda C: True)
def test_a_compressed_vector_is_compressed_like_a_dense_one(spec):
    C = built(spec)
    link, held = Link(C, codecs[C.codec](), 12), Sparse(12, np.array([1, 4, 5, 9], dtype=np.uint32), np.array([0.2, -3.0, 0.7, 1.0]))
    np.testing.assert_array_equal(link.compressed(held, at()).dense(), C.compress(held.dense(), at()).dense())


@every(lambda C: True)
def test_what_a_compressor_makes_goes_through_the_codec_that_its_paper_counts(spec):
    C, codec = built(spec), codecs.build(built(spec).codec, "up.codec")
    assert codec.writes(C.makes)
    for name, v in fixed(40).items():
        if name != "huge" or C.variance(v.size) is None:  # a fixed grid does not reach that far
            c = C.compress(v, at())
            link = Link(C, codec, v.size)
            received = link.unpack(batch_of(link.encode(c).raw))
            np.testing.assert_array_equal(received.dense(), c.dense(), err_msg=name)
            assert received.elements == c.elements


@given(v=hard(), k=st.integers(1, 30))
@FAST
def test_top_k_sends_exactly_k_and_the_largest_by_magnitude(v, k):
    k = min(k, v.size)
    c = TopK(k).compress(v, at())
    assert c.elements == c.indices.size == c.values.size == k
    left = np.delete(np.abs(v), c.indices)
    assert left.size == 0 or np.max(left) <= np.min(np.abs(c.values))
    assert c.paper_bits(32) == k * ((v.size - 1).bit_length() + 32)


def test_a_percentage_is_of_the_dimension():
    v = np.arange(1000.0)
    assert TopK("0.2%").compress(v, at()).elements == 2
    assert TopK("0.2%").compress(v[-10:], at()).elements == 1
    assert Accordion(1, "5%").compress(v, at()).elements == 50
    assert [coordinates_sent(TopK(k), 1000) for k in (7, "0.2%")] == [7, 2]


@given(v=hard(largest_exponent=3), threshold=st.floats(1e-6, 10))
@FAST
def test_hard_threshold_keeps_what_reaches_it_by_magnitude_and_loses_at_most_d_lambda_squared(v, threshold):
    C = HardThreshold(threshold)
    c = C.compress(v, at())
    np.testing.assert_array_equal(c.indices, np.flatnonzero(np.abs(v) >= threshold))
    assert np.sum((v - c.dense()) ** 2) <= v.size * threshold**2


def test_hard_threshold_sends_nothing_of_a_negative_vector_below_it_and_all_of_one_above():
    """A threshold on the signed maximum keeps the first whole."""
    assert HardThreshold(1.0).compress(np.full(5, -0.5), at()).elements == 0
    assert HardThreshold(1.0).compress(np.full(5, -1.0), at()).elements == 5


def test_hard_threshold_follows_from_the_accuracy_and_the_step_of_madelon():
    """HT §C.3.2: dγ²λ² = 5e-12 is λ = 2.98."""
    assert HardThreshold(accuracy=5e-12).in_run(500, step=3.3564e-8, regime=False).level == pytest.approx(2.979, abs=1e-3)
    assert HardThreshold(like_k=25).level == 0.1


def test_hard_threshold_follows_from_k_and_the_noise_of_gradients():
    """HT §D: (2/√k)√((2d/k + M)ζ² + σ²), whose short form takes ζ = 0 and σ = 1/4."""
    full = HardThreshold(like_k=4, estimate=True)
    assert full.in_run(100, noise=(0.0, 1 / 16)).level == HardThreshold(like_k=4).level == 0.25
    assert full.in_run(10, noise=(2.0, 3.0)).level == pytest.approx(np.sqrt(5 * 2 + 3))
    with pytest.raises(ValueError, match="no noise"):
        full.in_run(10, noise=(0.0, 0.0))
    with pytest.raises(ValueError, match="not finite"):
        full.in_run(10, noise=(np.inf, np.inf))


@given(v=hard(), k=st.integers(1, 30))
@FAST
def test_sq_sends_the_norm_of_the_whole_vector_with_the_signs_of_the_largest(v, k):
    k = min(k, v.size)
    c = SQ(k).compress(v, at())
    chosen = TopK(k).compress(v, at())
    scale = np.max(np.abs(v)) or 1.0
    assert c.magnitude == pytest.approx(scale * np.linalg.norm(v / scale), rel=1e-12, abs=1e-323)
    np.testing.assert_array_equal(c.dense(), c.magnitude * np.sign(chosen.dense()))
    assert c.elements == np.count_nonzero(chosen.values)


@given(v=hard())
@FAST
def test_alistarhs_budget_is_the_smallest_whose_sum_reaches_the_norm(v):
    T = alistarh_budget(v)
    if not np.any(v):
        assert T == 1
        return
    a = np.sort(np.abs(v / np.max(np.abs(v))))[::-1]
    reached = np.cumsum(a) >= np.linalg.norm(a) * (1 - 1e-12)
    assert np.argmax(reached) + 1 == T
    assert np.ceil(np.sqrt(v.size)) >= T


@given(v=hard(largest_exponent=3), ratio=st.floats(-10, 1), stochastic=st.booleans())
@FAST
def test_lattice_error_is_at_most_sigma_always_and_twice_that_where_it_is_random(v, ratio, stochastic):
    scale = np.max(np.abs(v)) or 1.0
    norm = scale * relative_norm(v)
    sigma = max(norm, 1e-290) * 10.0**ratio
    c = LatticeQuantizer(sigma, stochastic).compress(v, at())
    error = scale * np.linalg.norm((v - c.dense()) / scale)
    assert error <= sigma * (1 + stochastic) * (1 + 1e-12) + norm * 2**-52
    assert c.radius >= norm * (1 - 1e-15)


def test_the_lattice_is_exact_to_sigma_where_every_coordinate_is_half_way():
    d, sigma = 10_000, 1e-3
    v = 2 * sigma / np.sqrt(d) * (np.random.default_rng(0).integers(-(10**6), 10**6, d) + 0.5)
    error = np.linalg.norm(v - LatticeQuantizer(sigma).compress(v, at()).dense())
    assert error <= sigma * (1 + 1e-12) + np.linalg.norm(v) * 2**-52


def test_a_lattice_coarser_than_the_vector_says_nothing_unless_it_must_be_unbiased():
    v = np.full(9, 0.1)
    certain = LatticeQuantizer(1.0).compress(v, at())
    assert not np.any(certain.integers)
    assert certain.radius == pytest.approx(np.linalg.norm(v), rel=1e-12), "random rounding alone needs a radius above σ"
    c = LatticeQuantizer(1.0, stochastic=True).compress(v, at())
    assert c.radius > c.sigma


def test_grids_finer_than_floats_are_refused():
    with pytest.raises(OverflowError, match=OVERFLOW):
        LatticeQuantizer(1e-20).compress(np.ones(4), at())
    with pytest.raises(OverflowError, match=OVERFLOW):
        Rounding(1e-20).compress(np.ones(4), at())


@pytest.mark.parametrize("step", [1.0, 0.25])
def test_rounding_has_room_for_2_31_minus_2_steps(step):
    for stochastic in (False, True):
        most = Rounding(step, stochastic).compress(np.array([(2**31 - 2) * step, -1.0]), at())
        assert most.levels[0] == 2**31 - 2
        with pytest.raises(OverflowError, match="steps of"):
            Rounding(step, stochastic).compress(np.array([(2**31 - 1) * step, -1.0]), at())


def test_rounding_is_to_the_nearest_point():
    v = np.array([0.26, -0.26, 0.74, 0.0, -1.1])
    np.testing.assert_array_equal(Rounding(0.5).compress(v, at()).levels, [1, -1, 1, 0, -2])


TOP = {"name": "top-k", "k": 3}


@pytest.mark.parametrize(("spec", "says"), [
    ({"name": "top-k", "k": 0}, "at least 1"),
    ({"name": "top-k", "k": "200%"}, "up to 100"),
    ({"name": "hard-threshold"}, "needs one of"),
    ({"name": "hard-threshold", "threshold": 1.0, "like_k": 3}, "needs one of"),
    ({"name": "hard-threshold", "threshold": -1.0}, "above 0"),
    ({"name": "gspar"}, "needs one of"),
    ({"name": "gspar", "kappa": 2.0}, "0 1"),
    ({"name": "gspar", "epsilon": -1.0}, "at least 0"),
    ({"name": "gspar", "epsilon": 1.0, "passes": -1}, "passes"),
    ({"name": "unisp", "kappa": 0.0}, "above 0"),
    ({"name": "qsgd", "levels": 0}, "levels"),
    ({"name": "qsgd", "levels": 1, "bucket": 0}, "bucket"),
    ({"name": "lq", "q": 0.0}, "above 0"),
    ({"name": "rounding", "step": 0.0}, "above 0"),
    ({"name": "lattice", "sigma": float("nan")}, "above 0"),
    ({"name": "accordion", "k_min": 1, "k_max": 2, "every": 0}, "at least 1"),
    ({"name": "natural", "fraction": 17}, "from 0 to 16"),
    ({"name": "block-sign", "block": 0}, "at least 1"),
    ({"name": "dithering", "levels": 0}, "from 1 to"),
    ({"name": "dithering", "levels": 1, "p": 0.5}, "at least 1, or inf"),
    ({"name": "perm-k", "n": 0}, "at least 1"),
    ({"name": "count-sketch", "columns": 3, "rows": 0}, "at least 1"),
    ({"name": "count-sketch", "columns": 0}, "at least 1"),
    ({"name": "blocks", "of": "natural"}, "needs one of slices, sizes"),
    ({"name": "blocks", "of": "natural", "sizes": [2, 0]}, "at least 1"),
    ({"name": "blocks", "of": "naturl", "slices": 2}, "natural"),
    ({"name": "blocks", "of": "natural", "slices": 2, "codec_of_block": "rice"}, "cannot write what 'natural' makes"),
    ({"name": "blocks", "of": {"name": "hard-threshold", "accuracy": 1.0}, "slices": 2}, "follows the run"),
    ({"name": "chain", "first": "sq", "then": "natural"}, "first = 'sq' sends no value of its own"),
    ({"name": "chain", "first": TOP, "then": TOP}, "then = 'top-k' does not send all"),
    ({"name": "chain", "first": TOP, "then": {"name": "hard-threshold", "accuracy": 1.0}}, "follows the run"),
    ({"name": "chain", "first": TOP, "then": "natural", "codec_of_first": "dense"}, "codec_of_first = 'dense'"),
    ({"name": "chain", "first": TOP, "then": "natural", "codec_of_then": "rice"}, "codec_of_then = 'rice'"),
    ({"name": "blocks", "of": TOP, "sizes": "layers"}, "sizes: 'layers' was given"),
    ({"name": "blocks", "of": {"name": "gspar", "kappa": 0.1}, "sizes": [50], "joined": True}, "with their values, and not 'gspar'"),
    ({"name": "blocks", "of": TOP, "sizes": [50], "joined": True, "codec_of_block": "rice"}, "choose [up] codec"),
], ids=str)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused(spec, says):
    with pytest.raises(UserError, match=naming(says)):
        built(spec)


@pytest.mark.parametrize(("spec", "says"), [
    ({"name": "top-k"}, "needs k"),
    ({"name": "sq"}, "needs k"),
    ({"name": "stochastic", "k": 13}, "d 12"),
    ({"name": "hard-threshold", "accuracy": 1e-3}, "accuracy needs the step size"),
    ({"name": "lattice"}, "needs sigma"),
    ({"name": "lattice", "sigma": 1.0, "range": "bound"}, "needs radius"),
    ({"name": "accordion", "k_min": 5, "k_max": 4}, "more than k_max"),
    ({"name": "lq", "q": 0.002}, "q = 0.002 is too small for d = 12"),
    ({"name": "lq", "q": 5e-324}, "d 12"),
], ids=str)  # fmt: skip
def test_what_only_an_algorithm_can_set_or_d_cannot_hold_is_refused_without_it(spec, says):
    with pytest.raises(ValueError, match=naming(says)):
        built(spec).check(12)


def test_a_shared_seed_costs_64_bits_and_no_index():
    """GSpar §3: the receiver redraws the coordinates."""
    v = np.random.default_rng(0).standard_normal(1000)
    link = Link(UniSp(0.2, shared_seed=True), codecs.build({"name": "fixed", "float": 32}, "up"), 1000)
    message = link.pack(v, at())
    got = link.unpack(batch_of(message.raw))
    assert message.raw.size == 8 + 4 * got.elements
    assert link.paper_bits(got) == 32 * got.elements
    assert 140 < got.elements < 260
    kept = got.sparse().indices
    np.testing.assert_array_equal(got.dense()[kept], (v[kept] / 0.2).astype(np.float32))


@pytest.mark.parametrize("q", [0.0036, 0.01, 0.5])
def test_an_lq_norm_that_floats_can_hold_is_not_refused(q):
    C = LQ(q)
    C.check(12)
    assert C.omega(12) < np.inf
    assert C.compress(np.arange(1.0, 13.0), at()).is_finite()


@pytest.mark.parametrize("kappa", [1e-15, 1e-18, 1e-19, 1e-300, 5e-324])
@pytest.mark.parametrize("shared_seed", [False, True])
def test_a_tiny_kappa_sends_nothing(kappa, shared_seed):
    C = UniSp(kappa, shared_seed)
    link = Link(C, codecs.build("fixed", "up"), 1000)
    pool = Pool(np.random.default_rng(0).integers(0, 2**64, 3000, dtype=np.uint64))
    for k in range(100):
        for t in (at(k), Round(k, STREAMS, Role.WORKER, own=pool)):
            got = link.unpack(batch_of(link.pack(np.ones(1000), t).raw))
            assert got.elements == got.sparse().indices.size == 0


@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_lattice_points_of_a_known_range_pass_on_what_is_not_finite(bad, stochastic):
    quantizer = LatticeQuantizer(sigma=0.1, stochastic=stochastic, range="bound", radius=10.0)
    link = Link(quantizer, codecs.build("lattice", "up"), 5)
    got = link.unpack(batch_of(link.pack(np.array([1.0, bad, 0.0, 2.0, 3.0]), at()).raw))
    assert not got.is_finite()
    assert np.isnan(got.dense()).all()


@pytest.mark.parametrize("name", ["top-k", "random-k", "sq", "stochastic"])
@pytest.mark.parametrize("k", [-3, 0, 2.5, "0%", "many"])
def test_a_wrong_k_is_refused_in_python_as_in_a_job(name, k):
    with pytest.raises(ValueError, match=r"^k = .* was given; it should be (a count|a percentage|at least 1)"):
        compressors[name](k=k)


@pytest.mark.parametrize("name", [name for name in compressors if issubclass(compressors[name], Sized)])
@pytest.mark.parametrize("dim", [1, 7, 12, 100])
def test_the_payload_that_a_size_states_is_what_its_message_counts(name, dim):
    """A size s states the paper's bits before there is a message, so that s can be tuned; `sizes` are what s may be."""
    (spec, *_) = [spec for spec in COMPRESSORS if spec["name"] == name]
    for size in built(spec).sizes(dim):
        C = built(spec).at_size(size)
        message = C.compress(np.random.default_rng(dim).standard_normal(dim), at())
        for fpp in (16, 32, 64):
            assert C.payload(dim, fpp) == message.paper_bits(fpp), (size, fpp)
