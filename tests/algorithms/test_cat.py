"""CAT: its lemmas, its search against brute force over all T, its runs against plain loops, and what the paper says of T."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.plays import play, problem
from helpers.refusals import naming
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mpi_compress as mc
from mpi_compress.algorithms.estimators.cat import CAT
from mpi_compress.algorithms.tuning.schemes import Stochastically, scaled
from mpi_compress.algorithms.tuning.search import TIE, BudgetSearch, Improvement
from mpi_compress.job.loading import parse_job
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.costs.formulas import IEEE802154, Affine, Packet, Payload, UDPEthernet
from mpi_compress.messages.kinds import Sparse, index_bits
from mpi_compress.messages.link import Link

FPP = 64
COSTS = {
    "payload": Payload(),
    "affine": Affine(c0="54 B"),
    "affine, dear start": Affine(c0="1 MB"),
    "affine, start only": Affine(c0=3.0, c1=0.0),
    "packet": Packet(c1="128 B", pmax="128 B", c0="64 B"),
    "small packets": Packet(c1="20 B", pmax="16 B"),
    "udp": UDPEthernet(),
    "radio": IEEE802154(overhead=50),
    "sawtooth": SimpleNamespace(cost=lambda bits: 1000.0 + bits + 2 * (bits % 640)),  # it falls where a packet is full
}


def alpha(a):
    return np.cumsum(a**2) / np.sum(a**2)


def beta(a):
    return np.cumsum(a) ** 2 / (np.arange(1, a.size + 1) * np.sum(a**2))


def omega(a):
    """ω(T) = ‖g‖²/Σg²/p, p the best for T: the largest saturated one by one until no p exceeds 1."""
    out = np.ones(a.size)
    for T in range(1, np.count_nonzero(a) + 1):
        k = next(k for k in range(T) if a[k] * (T - k) <= a[k:].sum() * (1 + 1e-15))
        p = np.r_[np.ones(k), np.minimum(1.0, a[k:] * (T - k) / a[k:].sum())]
        out[T - 1] = np.sum(a**2) / np.sum(a[p > 0] ** 2 / p[p > 0])
    return out


SCHEMES = {
    "top-k": (Improvement.ALPHA, alpha, lambda T, d: T * (index_bits(d) + FPP)),
    "sq": (Improvement.BETA, beta, lambda T, d: FPP + T * index_bits(d)),
    "stochastic": (Improvement.OMEGA, omega, lambda T, d: FPP + T * (index_bits(d) + FPP)),
}


def falling(g):
    """Magnitudes over the largest, falling, and the order; ties by lowest index."""
    order = np.argsort(-np.abs(g), kind="stable")
    a = np.abs(g[order])
    return (a / a[0] if a[0] > 0 else a), order


def brute_force(g, scheme, cost):
    """Ratios for all T, and the smallest T within 1e-12 of the best."""
    _, improvement, payload = SCHEMES[scheme]
    a, _ = falling(g)
    gains = improvement(a) if a[0] > 0 else np.zeros(g.size)
    ratios = gains / cost.cost(payload(np.arange(1.0, g.size + 1), g.size))
    return ratios, int(np.argmax(ratios >= ratios.max() * (1 - TIE))) + 1


def searched(scheme, cost, d):
    improvement, _, payload = SCHEMES[scheme]
    return BudgetSearch(improvement, lambda T: cost.cost(payload(T, d)), d)


def search(g, scheme, cost, hint=np.inf):
    """I_T(g), and the hint for the next search."""
    top, hints = searched(scheme, cost, g.size).best(g[None], np.array([hint]))
    return top.indices, hints[0]


values = st.one_of(
    st.floats(-1e3, 1e3, allow_subnormal=True),
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 1e-300, 5e-324, 1e300]),
)
gradients = st.integers(1, 300).flatmap(
    lambda d: st.one_of(
        arrays(np.float64, d, elements=values),
        arrays(np.float64, d, elements=st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.0])),  # sparse, tied
        st.floats(-1e3, 1e3).map(lambda a: np.full(d, a)),  # constant
        st.integers(0, 2**32).map(lambda s: np.random.default_rng(s).standard_cauchy(d)),
        st.integers(0, 2**32).map(lambda s: np.random.default_rng(s).normal(size=d) ** 7),
        st.integers(0, 2**32).map(lambda s: np.random.default_rng(s).normal(size=d) * 1e-200),
    )
)


@settings(max_examples=300, deadline=None)
@given(g=gradients, name=st.sampled_from(sorted(COSTS)), scheme=st.sampled_from(["top-k", "sq"]), share=st.floats(0, 1.5))
def test_budget_equals_brute_force_over_all_budgets(g, name, scheme, share):
    ratios, T = brute_force(g, scheme, COSTS[name])
    indices, _ = search(g, scheme, COSTS[name], hint=share * np.abs(g).max())  # whatever the hint
    if indices.size != T:  # rounding alone may decide between ratios that are equal to 1e-12
        assert abs(ratios[indices.size - 1] / ratios.max() - (1 - TIE)) < 1e-14
    else:
        assert np.array_equal(indices, np.sort(falling(g)[1][:T]))


@settings(max_examples=150, deadline=None)
@given(g=gradients, name=st.sampled_from(sorted(COSTS)))
def test_budget_of_stochastic_sparsification_is_as_good_as_that_of_brute_force(g, name):
    ratios, T = brute_force(g, "stochastic", COSTS[name])
    indices, _ = search(g, "stochastic", COSTS[name])
    assert ratios[indices.size - 1] >= ratios.max() * (1 - 1e-9)
    assert indices.size <= T or ratios[T - 1] >= ratios.max() * (1 - 1e-9)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", sorted(COSTS))
def test_budget_equals_brute_force_where_the_search_looks_more_than_once(name, scheme):
    d = 700 if scheme == "stochastic" else 3000
    rng = np.random.default_rng(d)
    for g in (
        rng.normal(size=d),
        rng.normal(size=d) * np.geomspace(1, 1e-3, d),
        np.ones(d),
        np.r_[np.ones(500), np.zeros(d - 500)],
    ):
        ratios, T = brute_force(g, scheme, COSTS[name])
        found = search(g, scheme, COSTS[name])[0].size
        assert ratios[found - 1] >= ratios.max() * (1 - 2 * TIE)
        assert found == T or abs(ratios[found - 1] / ratios.max() - (1 - TIE)) < 1e-14 or scheme == "stochastic"


@pytest.mark.parametrize("d", [1, 20, 123, 700])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_have_the_budgets_of_each_alone_and_hints_that_change_nothing(scheme, d):
    rng = np.random.default_rng(d)
    G = np.array([
        rng.normal(size=d), rng.normal(size=d) ** 7, np.ones(d), rng.integers(-2, 3, d) * 1.0, np.zeros(d), rng.normal(size=d) * 1e-200,
        np.r_[np.zeros(d - 1), 1.0], np.where(np.arange(d) == d // 2, np.nan, 1.0), rng.standard_cauchy(d),
    ])  # fmt: skip
    for name, cost in COSTS.items():
        C, each = searched(scheme, cost, d), [search(g, scheme, cost)[0] for g in G]
        hints, usual = np.full(len(G), np.inf), np.array([0, 1, 2, 3, 6, 8])
        for rows in (slice(None), usual, slice(None), usual):  # with rows whose squares are no floats, and without
            top, hints[rows] = C.best(G[rows], hints[rows])
            wanted = [each[i] for i in np.arange(len(G))[rows]]
            assert np.array_equal(top.indices, np.concatenate(wanted)), name
            assert top.counts.tolist() == [found.size for found in wanted]
            np.testing.assert_array_equal(top.values, np.concatenate([g[at] for g, at in zip(G[rows], wanted, strict=True)]))


@settings(max_examples=100, deadline=None)
@given(g=gradients)
def test_payload_cost_gives_one_coordinate_each_time(g):
    """CAT Proposition 2."""
    assert search(g, "top-k", Payload())[0].size == 1


@settings(max_examples=100, deadline=None)
@given(g=gradients)
def test_packets_are_full_but_for_the_last_nonzeros(g):
    """CAT Proposition 1: T = ⌊m·Pmax/bits⌋ for a whole m, or as many as there are nonzeros."""
    bits = index_bits(g.size) + FPP
    T = search(g, "top-k", Packet(c1="128 B", pmax="128 B", c0="64 B"))[0].size
    full = {m * 1024 // bits for m in range(1, 1 + (g.size * bits) // 1024 + 1)}
    everything = search(g, "top-k", Affine(c0=1.0, c1=0.0))[0].size  # where α has reached its end
    assert T in full or g.size == T or everything <= T


@settings(max_examples=100, deadline=None)
@given(g=gradients.filter(lambda g: np.abs(g).max() > 0), c0=st.floats(0, 1e6))
def test_over_affine_cost_the_ratio_of_sparsification_rises_and_then_falls(g, c0):
    """CAT Proposition 1: α/C is quasi-concave; so is ω/C."""
    a, _ = falling(g)
    for curve, bits in ((Improvement.ALPHA.curve(g), 70), (omega(a), 70)):
        ratios = curve / (bits * np.arange(1, g.size + 1) + c0)
        peak = int(np.argmax(ratios))
        assert np.all(np.diff(ratios[: peak + 1]) >= -1e-12 * ratios[peak])
        assert np.all(np.diff(ratios[peak:]) <= 1e-12 * ratios[peak])


@settings(max_examples=100, deadline=None)
@given(g=gradients.filter(lambda g: np.abs(g).max() > 0))
def test_beta_is_at_least_its_worst_case(g):
    """β(T) ≥ min(1/T, T/d): a single spike attains 1/T, equal magnitudes attain T/d."""
    T = np.arange(1, g.size + 1)
    assert np.all(Improvement.BETA.curve(g) >= np.minimum(1 / T, T / g.size) * (1 - 1e-12))
    assert np.allclose(Improvement.BETA.curve(np.ones(g.size)), T / g.size)
    assert np.allclose(Improvement.BETA.curve(np.r_[1.0, np.zeros(g.size - 1)]), 1 / T)


def test_equal_magnitudes_attain_the_worst_case():
    """CAT Lemmas 2 and 5: α(T) = ω(T) = T/d."""
    T = np.arange(1, 31)
    assert np.allclose(Improvement.ALPHA.curve(np.ones(30)), T / 30)
    assert np.allclose(Improvement.OMEGA.curve(np.ones(30)), T / 30)


@settings(max_examples=30, deadline=None)
@given(g=gradients.filter(lambda g: np.abs(g).max() > 0))
def test_alpha_and_omega_rise_concavely_above_their_worst_case(g):
    """CAT Lemmas 2 and 5: increasing, concave, at least T/d; what the search computes is what they say."""
    a, order = falling(g)
    T = np.arange(1, g.size + 1)
    np.testing.assert_allclose(Improvement.ALPHA.curve(g), alpha(a), rtol=1e-12)
    np.testing.assert_allclose(Improvement.BETA.curve(g), beta(a), rtol=1e-12)
    for curve in (Improvement.ALPHA.curve(g), omega(a)):
        rises = np.diff(np.r_[0.0, curve])
        assert np.all(rises >= -1e-12)
        assert np.all(np.diff(rises) <= 1e-12)
        assert np.all(curve >= T / g.size * (1 - 1e-12))
    for k in {1, g.size // 2 + 1, g.size}:
        if np.abs(g).max() > 1e-140:
            top = np.sort(order[:k]).astype(np.uint32)
            gained = Improvement.OMEGA.of(g[None], Sparse(g.size, top, g[top], np.array([k])))
            assert gained == pytest.approx(omega(a)[k - 1], rel=1e-9)


def test_sign_quantisation_over_affine_cost_is_not_quasi_concave():
    """The paper argues that β/C is; ⟨g, Q_T(g)⟩² is not concave. β/C falls from T = 1 to 2 and then rises to its largest value."""
    g = np.r_[10.0, np.ones(999)]
    ratios, T = brute_force(g, "sq", Affine(c0=1e5))
    assert ratios[1] < ratios[0] < ratios[-1]
    assert search(g, "sq", Affine(c0=1e5))[0].size == T > 100


def test_a_gradient_that_is_not_finite_is_passed_on():
    for bad in (np.nan, np.inf, -np.inf):
        for scheme in SCHEMES:
            assert search(np.array([1.0, bad, 2.0]), scheme, Payload())[0].tolist() == [1]


# Runs


def job(folder, algorithm, compressor, loss="logistic", data=None, rounds=60, count=1, cost=None, **tables):
    run = {
        "data": data or {"generator": "gspar", "samples": 120, "dim": 50, "c1": 0.01, "c2": 0.9},
        "objective": {"mu": "1e-3 L", "loss": loss}, "workers": {"count": count}, "stop": {"rounds": rounds},
        "algorithm": algorithm, "up": {"compressor": {"name": compressor}}, **({"cost": cost} if cost else {}), **tables,
    }  # fmt: skip
    return parse_job(run, "cat", folder, {})


THEORY = {"log": {"theory": True}}
PACKETS = {"model": "packet", "c1": "128 B", "c0": "64 B", "pmax": "128 B"}


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "least-squares"])
@pytest.mark.parametrize(("compressor", "budget"), [("top-k", "cat"), ("top-k", 3), ("sq", "cat"), ("sq", "alistarh"), ("sq", 4)])
def test_every_round_descends_by_its_improvement(compressor, budget, loss, tmp_path):
    """CAT Lemmas 1 and 3: F(x⁺) ≤ F(x) − improvement(T)·‖∇F‖²/2L, on one node."""
    (run,) = mc.run(job(tmp_path, {"name": "cat", "budget": budget}, compressor, loss, cost=PACKETS, **THEORY), out=tmp_path)
    falls = -np.diff(run.trace["loss"])
    squares = run.trace["grad_norm"][:-1] ** 2 / (2 * run.attrs["L"])
    gain = run.theory["improvement"][:-1]
    assert np.all(gain > 0)
    assert np.all(falls >= gain * squares * (1 - 1e-9) - 1e-15)
    curve = run.theory["alpha" if compressor == "top-k" else "beta"]
    T = run.trace["budget"][1:].astype(int)
    looked_at = np.isin(T, run.attrs["theory_T"])
    at = np.searchsorted(run.attrs["theory_T"], T[looked_at])
    assert np.allclose(gain[looked_at], curve[:-1][looked_at, at], rtol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("squared-hinge", "least-squares"))])
def test_stochastic_sparsification_descends_in_the_mean(loss, tmp_path):
    """CAT Lemma 4: E F(x⁺) ≤ F(x) − ω‖∇F‖²/2L in every round; the mean of 30 seeds within 4 standard errors, and over the run."""
    slack = []
    for seed in range(30):
        described = job(tmp_path, {"name": "cat"}, "stochastic", loss, rounds=25, cost=PACKETS, seed=seed, **THEORY)
        (run,) = mc.run(described, out=tmp_path)
        promised = run.theory["improvement"][:-1] * run.trace["grad_norm"][:-1] ** 2 / (2 * run.attrs["L"])
        slack.append(-np.diff(run.trace["loss"]) - promised)
    for each in (np.array(slack), np.sum(slack, axis=1, keepdims=True)):
        assert np.all(each.mean(axis=0) >= -4 * each.std(axis=0) / np.sqrt(30))


OFFSET = 1e-5  # of x0: at 0 the gradients of integer data have exact ties, which rounding would settle


def plain(samples, labels, mu, L, rounds, count, scheme, cost):
    """CAT written out with brute force over all T, full sorts and plain sums."""
    N, d = samples.shape
    x, losses, budgets = np.full(d, OFFSET), [], []
    for _ in range(rounds):
        margins = labels * (samples @ x)
        losses.append(np.logaddexp(0, -margins).mean() + mu / 2 * (x @ x))
        mean, T_of = np.zeros(d), []
        for i in range(count):
            rows = slice(i * N // count, (i + 1) * N // count)
            g = count / N * (samples[rows].T @ (-labels[rows] / (1 + np.exp(margins[rows])))) + mu * x
            T = alistarh_plain(g) if cost is None else brute_force(g, scheme, cost)[1]
            top = np.argsort(-np.abs(g), kind="stable")[:T]
            q = np.zeros(d)
            q[top] = g[top] if scheme == "top-k" else np.sign(g[top]) * np.abs(g[top]).mean()
            mean += q / count
            T_of.append(T)
        budgets.append(np.mean(T_of))
        x = x - mean / L
    return np.array(losses), np.array(budgets)


def alistarh_plain(g):
    return int(np.argmax(np.cumsum(np.sort(np.abs(g))[::-1]) >= np.linalg.norm(g) * (1 - TIE))) + 1


@pytest.mark.parametrize(("name", "rounds"), [pytest.param("a9a", 300, marks=pytest.mark.slow), ("madelon", 100)])
@pytest.mark.parametrize("scheme", ["top-k", "sq", "alistarh"])
def test_runs_equal_a_plain_implementation(name, rounds, scheme, real_data, tmp_path):
    import lzma

    from sklearn.datasets import load_svmlight_file

    algorithm = {"name": "cat", "budget": "alistarh" if scheme == "alistarh" else "cat"}
    compressor = "sq" if scheme == "alistarh" else scheme
    description = job(
        tmp_path, algorithm, compressor, data={"name": name}, rounds=rounds, count=4, cost=PACKETS, objective={"mu": "1e-4 L"},
        start={"offset": OFFSET},
    )  # fmt: skip
    (run,) = mc.run(description, out=tmp_path)
    with lzma.open(real_data / f"{name}.xz") as text:
        samples, labels = load_svmlight_file(text, n_features=run.attrs["dim"])
    cost = None if scheme == "alistarh" else Packet(c1="128 B", c0="64 B", pmax="128 B")
    samples = samples if name == "a9a" else samples.toarray()
    losses, budgets = plain(samples, labels, run.attrs["mu"], run.attrs["L"], rounds, 4, compressor, cost)
    assert np.allclose(run.trace["loss"][:-1], losses, rtol=1e-10, atol=0)
    assert np.allclose(run.trace["budget"][1:], budgets)


def test_on_a_round_bowl_sparsification_wins_nothing(tmp_path):
    """F = ‖x‖²/2 (least squares on the unit vectors): GD in one round with d floats, T-sparsified in d/T, and its indices on top."""
    d, T = 24, 4
    lines = "".join(f"{(-1) ** j * (j + 1)} {j + 1}:1\n" for j in range(d))
    (tmp_path / "bowl.txt").write_text(lines)
    bowl = {"data": {"path": str(tmp_path / "bowl.txt")}, "objective": {"loss": "least-squares", "mu": 0.0}}
    runs = [
        mc.run(job(tmp_path, {"name": "gd"}, "identity", rounds=1, **bowl), out=tmp_path)[0],
        mc.run(job(tmp_path, {"name": "cat", "budget": T}, "top-k", rounds=d // T, **bowl), out=tmp_path)[0],
    ]
    for run in runs:
        assert run.trace["loss"][-1] == pytest.approx(0, abs=1e-28)
        assert run.trace["elements_up"][-1] == d
    assert runs[1].trace["loss"][-2] > 0.1
    assert [r.trace["paper_bits_up"][-1] for r in runs] == [64 * d, (64 + 5) * d]


@pytest.mark.parametrize("codec", ["fixed", "bitmap"])
@pytest.mark.parametrize("scheme", ["top-k", "sq"])
def test_tuned_for_the_wire_it_charges_what_was_sent_and_no_fixed_budget_gains_more_for_it(scheme, codec, tmp_path):
    wire = {"cost": {"model": "wire"}, "up": {"compressor": {"name": scheme}, "codec": {"name": codec}}}
    (run,) = mc.run(job(tmp_path, {"name": "cat"}, scheme, rounds=20, count=3, **wire, **THEORY), out=tmp_path)
    assert run.trace["cost_up"].tolist() == run.trace["wire_bits_up"].tolist()
    assert run.trace["cost_down"].tolist() == run.trace["wire_bits_down"].tolist()
    (one,) = mc.run(job(tmp_path, {"name": "cat"}, scheme, rounds=20, **wire, **THEORY), out=tmp_path)
    curve = one.theory["alpha" if scheme == "top-k" else "beta"][:-1]
    T = one.attrs["theory_T"]
    link = Link(compressors.build(scheme, ""), codecs.build(codec, ""), 50)
    paid = np.diff(one.trace["wire_bits_up"])
    assert np.all(one.theory["improvement"][:-1] / paid >= (curve / link.planned_wire_bits(T)).max(axis=1) * (1 - 1e-9))


@pytest.mark.parametrize("sampling", ["with-replacement", "epoch"])
def test_with_a_budget_of_all_coordinates_minibatches_are_those_of_sgd(sampling, tmp_path):
    """Eq. 16 with nothing left out: the same rows, the same steps."""
    tables = {"workers": {"count": 3}, "up": {"compressor": {"name": "top-k"}}}
    batch = {"batch": 7, "sampling": sampling}
    (cat,) = mc.run(job(tmp_path, {"name": "cat", "budget": 50, **batch}, "top-k", **tables), out=tmp_path)
    (sgd,) = mc.run(
        job(tmp_path, {"name": "sgd", **batch}, "identity", **{**tables, "up": {"compressor": "identity"}}), out=tmp_path
    )
    assert np.allclose(cat.trace["loss"], sgd.trace["loss"], rtol=1e-13)
    assert np.allclose(cat.x, sgd.x, rtol=1e-11)
    assert cat.trace["epoch"].tolist() == sgd.trace["epoch"].tolist()


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
def test_unbiased_minibatches_descend_to_their_noise(loss, tmp_path):
    """Eq. 16: γ = min_j ω_j/L over stochastic gradients; the mean of the last hundred rounds is far below the start."""
    data = {"generator": "gspar", "samples": 120, "dim": 50}
    (run,) = mc.run(
        job(tmp_path, {"name": "cat", "batch": 10}, "stochastic", loss, data, rounds=400, count=4, cost=PACKETS), out=tmp_path
    )
    assert run.trace["suboptimality"][-100:].mean() < 0.1 * run.trace["suboptimality"][0]
    assert run.trace["epoch"][-1] == pytest.approx(400 * 40 / 120)


def test_the_common_step_of_stochastic_sparsification_is_on_the_wire_and_counted(tmp_path):
    (run,) = mc.run(job(tmp_path, {"name": "cat", "budget": 5}, "stochastic", rounds=1, count=3), out=tmp_path)
    sent = run.trace["elements_up"][-1]
    assert run.trace["paper_bits_up"][-1] == sent * (6 + 64) + 3 * 64
    assert run.trace["wire_bits_up"][-1] >= run.trace["paper_bits_up"][-1] + 3 * 8 * 5


def test_a_single_worker_folds_its_step_into_the_values_and_counts_eq_5_alone(tmp_path):
    one = job(tmp_path, {"name": "cat"}, "stochastic", rounds=30, count=1, cost={"model": "payload"})
    (run,) = mc.run(one, out=tmp_path)
    np.testing.assert_array_equal(run.trace["paper_bits_up"], run.trace["elements_up"] * (6 + 64))
    assert np.all(run.trace["budget"][1:] == 1)  # α(T)/P(T) is largest there: Proposition 2


def test_a_single_workers_rounds_are_those_of_the_common_step(monkeypatch):
    """Each is x − (ω/L) Q(g), whoever applies ω."""
    p = problem(count=1)
    alone = play(p, CAT(budget=5), {"name": "stochastic"}, 20)
    begin = Stochastically.__init__
    monkeypatch.setattr(Stochastically, "__init__", lambda scheme, link, cost, budget, n: begin(scheme, link, cost, budget, n=2))
    common = play(p, CAT(budget=5), {"name": "stochastic"}, 20)
    np.testing.assert_allclose(alone.x, common.x, rtol=1e-12)
    assert alone.trace["paper_bits_up"][-1] == common.trace["paper_bits_up"][-1] - 20 * 64


class OwnSteps(CAT):
    """Stochastic sparsification where every worker takes the step that its own ω_j allows."""

    def master_answers(self, node, master, ups, t):
        return self.down.pack(self.mean([scaled(u.vector, u.scalar) for u in ups]), t)


@pytest.mark.slow
def test_steps_of_ones_own_settle_off_the_minimiser():
    """The mean of ω_j ∇f_j is 0 elsewhere than the mean of ∇f_j, and there x settles: that is why the master applies one common step
    (eq. 16 has γ outside the sum)."""
    p = problem(count=3, loss="least-squares", mu=0.05, samples=30, dim=12)
    p.A[:10, 2:] *= 0.02  # the first worker's gradients have two large coordinates, so its ω is large
    p.labels[:10] *= 3
    x_star = np.linalg.solve(p.A.T @ p.A / p.N + p.mu * np.eye(p.dim), p.A.T @ p.labels / p.N)
    off = {}
    for kind in (CAT, OwnSteps):
        mean = np.zeros(p.dim)
        look = lambda k, node, _, mean=mean: np.add(mean, (k >= 500) * node.x / 1500, mean)  # noqa: E731
        play(p, kind(budget=2), {"name": "stochastic"}, 1999, look, x0=x_star)
        off[kind] = np.linalg.norm(mean - x_star) / np.linalg.norm(x_star)
    assert off[CAT] < 0.05
    assert off[OwnSteps] > 0.1


@pytest.mark.parametrize("compressor", ["top-k", pytest.param("sq", marks=pytest.mark.slow), "stochastic"])
def test_with_unlike_shards_the_unbiased_scheme_comes_close_to_the_minimiser_and_the_biased_ones_stall(compressor, tmp_path):
    description = job(
        tmp_path, {"name": "cat"}, compressor, rounds=3000, count=4, cost=PACKETS, log={"every": 1000}, objective={"mu": "1e-2 L"}
    )  # fmt: skip
    (run,) = mc.run(description, out=tmp_path)
    gap = run.trace["suboptimality"] / run.trace["suboptimality"][0]
    assert gap[-1] < 1e-3 if compressor == "stochastic" else gap[-1] > 0.9 * gap[-2] > 1e-2


@pytest.mark.parametrize(
    ("algorithm", "compressor", "complaint"),
    [
        ({"name": "cat"}, {"name": "top-k", "k": 3}, "cat sets k itself"),
        ({"name": "cat"}, {"name": "random-k", "k": 3}, 'one of "top-k", "sq", "stochastic"'),
        ({"name": "cat", "budget": "alistarh"}, {"name": "top-k"}, 'a rule for the compressor "sq"'),
        ({"name": "cat", "budget": 51}, {"name": "top-k"}, "from 1 to d = 50"),
        ({"name": "cat", "budget": 0}, {"name": "top-k"}, "from 1 to d = 50"),
        ({"name": "gd"}, {"name": "top-k"}, "needs k"),
    ],
)
def test_what_cat_cannot_do_is_refused(algorithm, compressor, complaint, tmp_path):
    refuses(job(tmp_path, algorithm, "top-k", up={"compressor": compressor}), complaint, tmp_path)


def test_a_codec_whose_messages_cannot_be_planned_is_refused(tmp_path):
    up = {"compressor": {"name": "top-k"}, "codec": "rice"}
    description = job(tmp_path, {"name": "cat"}, "top-k", up=up, cost={"model": "wire"})
    refuses(description, 'the codec "rice" writes as many bits as', tmp_path)
    (run,) = mc.run(job(tmp_path, {"name": "cat", "budget": 4}, "top-k", up=up, cost={"model": "wire"}, rounds=3), out=tmp_path)
    assert run.trace["cost_up"][-1] == run.trace["wire_bits_up"][-1]


def refuses(description, complaint, tmp_path):
    with pytest.raises(mc.UserError, match=naming(complaint)):
        mc.run(description, out=tmp_path)


@pytest.mark.parametrize("name", ["top-k", "sq"])
def test_the_best_size_of_a_vector_alone_has_the_largest_improvement_for_its_cost(name):
    v = np.random.default_rng(0).standard_normal(60) ** 3
    found, order = mc.best_size(name, v, {"model": "affine", "c1": 1, "c0": 500}), np.argsort(-np.abs(v))
    top = [np.abs(v[order[:T]]) for T in range(1, 61)]
    gains = [np.sum(a) ** 2 / a.size if name == "sq" else np.sum(a**2) for a in top]
    payloads = [T * (np.ceil(np.log2(60)) + 32) if name == "top-k" else T * np.ceil(np.log2(60)) + 32 for T in range(1, 61)]
    assert found == 1 + np.argmax(np.array(gains) / (500 + np.array(payloads)))
    with pytest.raises(mc.UserError, match="without k"):
        mc.best_size({"name": "top-k", "k": 3}, v)
