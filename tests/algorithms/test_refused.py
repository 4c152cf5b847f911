"""What does not go together is refused in one line, as a method is bound, or with the job."""

import pytest
from helpers.plays import bound, problem
from helpers.refusals import naming
from helpers.running import run_of

from mpi_compress import UserError

NOTHING, TOP, RANDOM, AUTO, PERM = {"name": "identity"}, {"name": "top-k", "k": 3}, {"name": "random-k", "k": 3}, {"name": "top-k"}, {"name": "perm-k", "n": 4}
LATTICE, HARD = {"name": "lattice"}, {"name": "hard-threshold", "threshold": 1.0}
CHANGING = {"codec": "fixed", "cost": {"name": "trace", "rows": [[0, "50 ms", "20 kbit/s"], [1, "5 ms", "500 kbit/s"]]}}
FACTORS = {"name": "power-sgd", "rank": 1, "step": 0.1, "shapes": [[3, 5], [15]]}

BOUND = [
    ({"name": "adef", "step": [[0, 0.1], [5, 0.01]]}, TOP, {}, "adef takes one step size for all rounds"),
    ({"name": "adef"}, TOP, {"down": TOP}, "adef adds up what comes down, so that must be exact"),
    ({"name": "adiana", "p": 0.5, "step": 0.1}, TOP, {}, "adiana needs an unbiased compressor, such as random-k or qsgd"),
    ({"name": "adiana"}, RANDOM, {"mu": 0.0}, "adiana needs mu > 0"),
    ({"name": "adiana", "p": 2}, RANDOM, {}, "p = 2.0 must be above 0 and at most 1"),
    ({"name": "marina-p", "step": 0.1, "p": 0.5}, NOTHING, {"down": TOP}, "needs an unbiased compressor down"),
    ({"name": "marina-p", "step": 0.1}, RANDOM, {"down": PERM}, "sends whole gradients up"),
    ({"name": "marina-p", "step": 0.1, "p": 0}, NOTHING, {"down": PERM}, "p 0.0 0"),
    ({"name": "gd", "step": 1, "server": "l-bfgs", "batch": 2}, NOTHING, {}, "l-bfgs takes differences of gradients of one f"),
    ({"name": "gd", "step": 1, "server": "l-bfgs"}, NOTHING, {"participants": 2}, "l-bfgs gradients"),
    ({"name": "local-sgd", "step": 1, "server": "l-bfgs"}, NOTHING, {}, "local-sgd sends local steps"),
    ({"name": "gd", "step": 1, "server": {"name": "l-bfgs", "least": 0.0}}, NOTHING, {}, "least = 0.0 must be above 0"),
    ({"name": "gd", "step": 1, "server": {"name": "l-bfgs", "least": "2*L"}}, NOTHING, {}, "at most L"),
    ({"name": "clag", "zeta": -1}, TOP, {}, "zeta = -1.0 must be 0 or more"),
    ({"name": "lag"}, TOP, {}, "lag sends whole gradients: leave up.compressor out, or take clag"),
    ({"name": "adacgd"}, RANDOM, {}, "adacgd chooses the k of top-k, and up.compressor = random-k was given"),
    ({"name": "adacgd", "levels": [3, 2]}, AUTO, {}, "levels = [3, 2] must increase"),
    ({"name": "adacgd", "levels": [31]}, AUTO, {}, "k 31 d 30"),
    ({"name": "kimad", "deadline": 1}, TOP, CHANGING, "kimad sets k itself"),
    ({"name": "kimad", "deadline": 1}, RANDOM, CHANGING, "kimad k"),
    ({"name": "kimad", "deadline": 1}, AUTO, CHANGING | {"codec": "auto"}, "auto"),
    ({"name": "kimad", "deadline": float("nan")}, AUTO, CHANGING, "deadline = nan must be 0 or more"),
    ({"name": "kimad", "deadline": 1, "least": 31}, AUTO, CHANGING, "k 31 d 30"),
    ({"name": "cat"}, AUTO, CHANGING | {"codec": "rice"}, 'the cost model "trace" cannot be planned for'),
    ({"name": "cat"}, {"name": "natural"}, CHANGING | {"codec": "packed"}, "trace"),
    (FACTORS | {"shapes": "model"}, NOTHING, {}, "a loss of a margin has no blocks; give shapes = [[n, m], …]"),
    (FACTORS | {"shapes": [[3, 5]]}, NOTHING, {}, "shapes = [[3, 5]] must have axes of at least 1, and d = 30 coordinates in all"),
    (FACTORS | {"shapes": [[30, 0], [30]]}, NOTHING, {}, "[[30, 0], [30]]"),
    (FACTORS | {"rank": 0}, NOTHING, {}, "0 1"),
    (FACTORS | {"momentum": 1.0}, NOTHING, {}, "1.0 0 1"),
    (FACTORS, TOP, {}, "[up] has a compressor such as qsgd or natural, or none"),
    (FACTORS, NOTHING, {"down": TOP}, "leave the compressor of [down] out"),
    ({"name": "local-sgd", "local_steps": 0}, NOTHING, {}, "local_steps 0 1"),
    ({"name": "local-sgd", "server_step": 0}, NOTHING, {}, "server_step: 0 above 0"),
    ({"name": "scaffnew"}, RANDOM, {}, "scaffnew sends whole vectors: leave up.compressor out, or take locodl"),
    ({"name": "scaffnew", "p": 0}, NOTHING, {}, "p = 0.0 must be above 0 and at most 1"),
    ({"name": "scaffnew", "step": [[0, 0.1], [5, 0.01]]}, NOTHING, {}, "scaffnew step"),
    ({"name": "compressed-scaffnew"}, RANDOM, {}, "sends by a pattern that has each coordinate at several workers: leave up"),
    ({"name": "compressed-scaffnew"}, {"name": "pattern", "s": 1, "n": 4}, {}, "≥ 2"),
    ({"name": "locodl", "p": 0.5}, TOP, {}, "locodl unbiased random-k"),
    ({"name": "iade", "rate": 0.5}, LATTICE, {"down": LATTICE}, "above c = 1 − ηµ"),
    ({"name": "iade", "rate": 1.0}, LATTICE, {"down": LATTICE}, "below 1"),
    ({"name": "iade", "level": 0.0}, LATTICE, {"down": LATTICE}, "level = 0"),
    ({"name": "iade", "step": -1.0}, LATTICE, {"down": LATTICE}, "step = -1"),
    ({"name": "iade"}, {"name": "lattice", "sigma": 0.1}, {"down": LATTICE}, "sets the sigma"),
    ({"name": "iade"}, {"name": "lattice", "stochastic": True}, {"down": LATTICE}, "deterministic lattice"),
    ({"name": "iade-sgd", "convexity": 0.1}, {"name": "lattice", "range": "bound"}, {"down": LATTICE}, 'range = "sent"'),
    ({"name": "aiade"}, TOP, {"down": LATTICE}, "quantiser of a given precision"),
    ({"name": "aiade", "convexity": 0.0}, LATTICE, {"down": LATTICE}, "µ = 0"),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "up", "more", "text"), BOUND)
def test_settings_that_do_not_go_together_are_refused_as_they_are_bound(algorithm, up, more, text):
    setting = dict(more)
    with pytest.raises(ValueError, match=naming(text)):
        bound(problem(mu=setting.pop("mu", 0.1)), algorithm, up, **setting).check()


BATCHES = [(name, batch, sampling) for name in ("sgd", "svrg", "iade-sgd", "async-sgd", "cat", "ef") for batch in (10**12, 10**19) for sampling in ("with-replacement", "epoch")]
OF_JOBS = [
    ({"name": "sgd", "batch": 0}, TOP, "batch = 0"),
    *(({"name": name, "batch": batch, "sampling": sampling}, NOTHING, f"batch = {batch} must be from 1 to") for name, batch, sampling in BATCHES),
    ({"name": "ef", "momentum": 1.0}, TOP, "momentum: 1.0"),
    ({"name": "ef", "masking": True}, TOP, "needs momentum"),
    ({"name": "ef", "reset": 0}, TOP, "reset: 0"),
    ({"name": "ef", "average": "linear"}, TOP, '"linear" goes with step'),
    ({"name": "ef-gdstar", "batch": 1}, TOP, "takes full gradients"),
    ({"name": "ef-gdstar", "regularizer": "master"}, TOP, 'regularizer = "worker"'),
    ({"name": "ef21"}, HARD, "ef21 needs a contraction up"),
    ({"name": "diana"}, TOP, "diana unbiased compressor up natural random-k ef21"),
    ({"name": "marina", "p": 2.0, "step": 0.1}, RANDOM, "p = 2"),
    ({"name": "gd"}, {"name": "hard-threshold", "accuracy": 1e-3}, "accuracy needs the step"),
    ({"name": "ef21", "batch": 0}, TOP, "batch = 0"),
    ({"name": "ef21-sgdm", "eta": 0.0, "step": 0.1}, TOP, "eta 0.0 0"),
    ({"name": "econtrol", "eta": 2.0}, TOP, "eta 2.0 0 1"),
    ({"name": "dasha", "step": 0.1, "a": 0.5}, TOP, "dasha unbiased"),
    ({"name": "dasha", "a": 1.5}, RANDOM, "a 1.5 0"),
    ({"name": "dasha-page", "p": 0.0, "step": 0.1}, RANDOM, "p 0.0 0"),
    ({"name": "dasha-mvr", "b": 2.0}, RANDOM, "b 2.0 0"),
    ({"name": "page", "batch": 0, "p": 1.0, "step": 0.1}, NOTHING, "batch = 0"),
    ({"name": "ef21-p"}, RANDOM, "ef21-p sends whole gradients up"),
    ({"name": "ef21-p-diana", "beta": 3.0}, RANDOM, "beta = 3.0 must be above 0"),
    ({"name": "double-squeeze", "batch": 10**9}, TOP, "batch = 1000000000 1"),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "up", "text"), OF_JOBS)
def test_what_a_method_cannot_work_with_is_refused_with_the_job(algorithm, up, text, tmp_path):
    with pytest.raises(UserError, match=naming(text)):
        run_of(tmp_path, algorithm, up)


ADD_UP = {"ef21": TOP, "diana": RANDOM, "marina": RANDOM, "ef21-sgdm": TOP, "econtrol": TOP, "dasha": RANDOM, "dasha-page": RANDOM, "dasha-mvr": RANDOM, "page": NOTHING}


@pytest.mark.parametrize("name", ADD_UP)
def test_methods_that_add_up_what_they_hear_refuse_a_lossy_downlink(name, tmp_path):
    with pytest.raises(UserError, match="must be exact"):
        run_of(tmp_path, {"name": name}, ADD_UP[name], down={"compressor": TOP})


LOSSY = [
    ({"name": "qsgd", "levels": 1}, "levels", 3, "qsgd with levels = 3, would do"),
    ({"name": "dithering", "levels": 1, "p": 1.0}, "levels", 16, "dithering with levels = 16, would do"),
    ({"name": "random-k", "k": 3}, "scaled", False, "random-k with scaled = false, would do"),
    ({"name": "chain", "first": {"name": "top-k", "k": 30}, "then": {"name": "qsgd", "levels": 1}}, "shrunk", True, "chain with shrunk = true, would do"),
]


@pytest.mark.parametrize(("up", "key", "value", "would_do"), LOSSY)
@pytest.mark.parametrize("name", ["ef21", "econtrol", "3pc"])
def test_a_method_that_needs_a_contraction_says_by_which_value_the_compressor_is_one(name, up, key, value, would_do):
    with pytest.raises(ValueError, match=naming(f"{name} needs a compressor that is a contraction up: top-k, or {would_do}")):
        bound(problem(), {"name": name}, up)
    bound(problem(), {"name": name}, {**up, key: value})
    if key == "levels":
        with pytest.raises(ValueError, match=naming(would_do)):
            bound(problem(), {"name": name}, {**up, key: value - 1})


def test_a_compressor_that_no_value_makes_contractive_is_not_named():
    with pytest.raises(ValueError, match=r"contraction up: top-k would do$"):
        bound(problem(), {"name": "ef21"}, {"name": "unisp", "kappa": 0.1})
