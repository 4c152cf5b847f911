"""Examples of every part, one line each: tests that go over all parts build them from here. A part without an example fails a test."""

from typing import Any

from fixtures import messages

COMPRESSORS = [
    *(spec for spec in messages.COMPRESSORS if spec.get("then") != "terngrad"),  # whose largest errors are too rare for tests of means
    {"name": "clip", "threshold": 1.5},
    {"name": "pattern", "s": 3, "n": 50},
    {"name": "blocks", "of": {"name": "qsgd", "levels": 4}, "sizes": [4, 1, 7]},
    {"name": "blocks", "of": {"name": "hard-threshold", "threshold": 0.5}, "slices": 3, "joined": True},
    {"name": "chain", "first": {"name": "random-k", "k": 3}, "then": "natural", "codec_of_first": "rice", "codec_of_then": "entropy"},
    {"name": "chain", "first": {"name": "hard-threshold", "threshold": 0.5}, "then": {"name": "qsgd", "levels": 1}, "shrunk": True},
    {"name": "chain", "first": {"name": "perm-k", "n": 3}, "then": "terngrad"},
    {"name": "chain", "first": {"name": "unisp", "kappa": 0.3, "shared_seed": True}, "then": "block-sign"},
]

GENERATED = {
    "seed": 5,
    "data": {"generator": "gspar", "samples": 90, "dim": 40},
    "objective": {"mu": "1e-3 L"},
    "workers": {"count": 3},
    "stop": {"rounds": 25},
    "log": {"every": 5},
}  # the job that ALGORITHMS are runs of


def run_of(
    algorithm: dict[str, Any], up: dict[str, Any] | None = None, down: dict[str, Any] | None = None, **tables: Any
) -> dict[str, Any]:
    """The tables of a [[run]]; `up` and `down` are compressors."""
    links = {key: {"compressor": compressor} for key, compressor in (("up", up), ("down", down)) if compressor}
    return {"algorithm": algorithm, **links, **tables}


_FALLING = {"form": "1/t", "a": "4/mu", "b": "16 L/mu"}
_WARM_UP = {"form": "warm-up", "over": 0.5, "falls": [1]}
_TOP = {"name": "top-k", "k": 3}
_BOUND = {"name": "lattice", "range": "bound"}
_MANY = {"workers": {"count": 20}}  # of 90 samples: shards of unequal length, most of them on one rank with others
_DIRICHLET = {"name": "dirichlet", "alpha": 0.5, "least": 3}
_DOUBLE: dict[str, Any] = {"objective": {"mu": "1e-2 L"}, "stop": {"rounds": 40}, "log": {"every": 3}}
CHANGING = {
    "model": "trace",
    "of_workers": [[[0, "5 ms", "20 kbit/s"], ["0.5 s", "20 ms", "2 kbit/s"]], [[0, "1 ms", "8 kbit/s"]]],
    "period": "1 s",
    "compute": "2 us",
}

ALGORITHMS: dict[str, dict[str, Any]] = {
    "ef top": run_of({"name": "ef", "batch": 1}, _TOP, **_MANY),
    "ef hard, falling": run_of(
        {"name": "ef", "batch": 1, "average": "linear", "step": _FALLING}, {"name": "hard-threshold", "accuracy": 1e-3}, **_MANY
    ),
    "ef master": run_of({"name": "ef", "batch": 2, "sampling": "epoch", "regularizer": "master"}, {"name": "qsgd", "levels": 4}),
    "accordion": run_of({"name": "ef", "batch": 1}, {"name": "accordion", "k_min": 1, "k_max": 5, "every": 2}),
    "ef hard": run_of({"name": "ef"}, {"name": "hard-threshold", "threshold": 1.0}),
    "gdstar hard": run_of({"name": "ef-gdstar"}, {"name": "hard-threshold", "accuracy": 100.0}, **_MANY),
    "gdstar": run_of({"name": "ef-gdstar"}, {"name": "top-k", "k": 1}),
    "gradient": run_of({"name": "ef", "batch": 1, "momentum": 0.5, "step": "0.2/L"}, _TOP),
    "update": run_of({"name": "ef", "batch": 1, "momentum": 0.5, "form": "update", "masking": True, "step": "0.2/L"}, _TOP),
    "adam": run_of({"name": "adam", "batch": 2, "step": 0.02, "feedback": False}, {"name": "gspar", "kappa": 0.3}, **_MANY),
    "nesterov momentum": run_of(
        {"name": "ef", "batch": 2, "momentum": 0.9, "direction": "nesterov", "step": {**_WARM_UP, "a": "0.1/L", "from": "0.01/L"}},
        {"name": "blocks", "of": {"name": "top-k", "k": "10%"}, "sizes": [7, 30, 3], "joined": True},
        log={"every": 5, "evaluate": 3},
    ),
    "sgd": run_of(
        {"name": "sgd", "batch": 1, "regularizer": "master", "step": [[0, "1/L"], [10, "0.1/L"]]},
        {"name": "random-k", "k": 9},
        **_MANY,
    ),
    "nesterov": run_of({"name": "nesterov"}, {"name": "identity"}),
    "ef21": run_of({"name": "ef21"}, _TOP),
    "ef21, dirichlet": run_of({"name": "ef21", "step": "0.3/L"}, _TOP, workers={"count": 7, "partition": _DIRICHLET}),
    "ef, uneven": run_of({"name": "ef", "batch": 1}, _TOP, workers={"count": 7, "partition": {"name": "shuffled", "sizes": 1.0}}),
    "diana": run_of({"name": "diana"}, {"name": "random-k", "k": 3}),
    "marina": run_of({"name": "marina"}, {"name": "random-k", "k": 9}, **_MANY),
    "ef21, l1": run_of(
        {"name": "ef21", "batch": 2, "first": "gradient"},
        _TOP,
        objective={"penalty": {"name": "l1", "weight": 0.01}, "f_star": "skip"},
    ),
    "ef21-sgdm": run_of({"name": "ef21-sgdm", "batch": 1}, _TOP),
    "econtrol": run_of({"name": "econtrol", "batch": 2, "sampling": "epoch"}, _TOP),
    "double-squeeze": run_of({"name": "double-squeeze", "batch": 1}, _TOP, {"name": "random-k", "k": 5, "scaled": False}),
    "dasha": run_of({"name": "dasha", "step": "4 theory"}, {"name": "random-k", "k": 9}, **_MANY),
    "dasha-page": run_of({"name": "dasha-page", "sampling": "epoch"}, {"name": "qsgd", "levels": 4}),
    "dasha-mvr": run_of({"name": "dasha-mvr", "batch": 2}, {"name": "random-k", "k": 9}),
    "page": run_of({"name": "page", "batch": 2}, {"name": "random-k", "k": 9}),
    "marina-pp": run_of({"name": "marina-pp"}, {"name": "random-k", "k": 9}, workers={"count": 7, "participate": 3}),
    "dasha-pp": run_of({"name": "dasha-pp"}, {"name": "qsgd", "levels": 4}, workers={"count": 7, "participate": 3}),
    "ef21-p": run_of({"name": "ef21-p"}, down=_TOP),
    "ef-bv": run_of({"name": "ef-bv"}, {"name": "random-k", "k": 3}),
    "ef21-w": run_of({"name": "ef21-w"}, _TOP),
    "rand-diana": run_of({"name": "rand-diana"}, {"name": "random-k", "k": 3}, **_MANY),
    "ef21-p-diana": run_of({"name": "ef21-p-diana"}, {"name": "random-k", "k": 3}, _TOP),
    "ef21, some workers": run_of({"name": "ef21"}, _TOP, workers={"count": 7, "participate": 0.3}),
    "ef, some workers": run_of({"name": "ef", "batch": 1}, _TOP, workers={"count": 7, "participate": 4}),
    "diana, some workers": run_of({"name": "diana"}, {"name": "random-k", "k": 3}, workers={"count": 7, "participate": 2}),
    "3pc": run_of({"name": "3pc", "zeta": 1.0}, _TOP, workers={"count": 7}),
    "clag": run_of({"name": "clag"}, _TOP, workers={"count": 7, "partition": _DIRICHLET}),
    "lag": run_of({"name": "lag"}),
    "laq": run_of({"name": "laq"}, workers={"count": 7}),
    "cafe": run_of({"name": "cafe", "batch": 2}, _TOP, workers={"count": 7, "participate": 3}),
    "sparse-loco": run_of({"name": "sparse-loco", "local_steps": 3, "batch": 2}, _TOP, workers={"count": 7, "participate": 3}),
    "ef21-norm": run_of({"name": "ef21-norm"}, _TOP, **_MANY),
    "ef21, tight": run_of({"name": "ef21", "step": "tight"}, _TOP),
    "marina, correlated": run_of({"name": "marina"}, {"name": "correlated-dithering", "levels": 3}, workers={"count": 7}),
    "adacgd": run_of({"name": "adacgd"}, workers={"count": 7}),
    "local-sgd": run_of({"name": "local-sgd", "local_steps": 3, "batch": 2}, _TOP, workers={"count": 7, "participate": 3}),
    "scaffnew": run_of({"name": "scaffnew"}, stop={"rounds": 14}, log={"every": 2}),
    "compressed-scaffnew": run_of({"name": "compressed-scaffnew"}, stop={"rounds": 14}, log={"every": 2}),
    "ef21, clip": run_of({"name": "ef21", "step": "1/L"}, {"name": "clip", "threshold": 0.1, "noise": 0.01}),
    "locodl": run_of({"name": "locodl"}, {"name": "random-k", "k": 9}, stop={"rounds": 14}, log={"every": 2}),
    "adiana": run_of({"name": "adiana"}, {"name": "random-k", "k": 9}),
    "adef": run_of({"name": "adef", "batch": 2}, _TOP, workers={"count": 7}),
    "adef, random": run_of({"name": "adef", "step": "0.1/L"}, {"name": "random-k", "k": 9, "scaled": False}, **_MANY),
    "diana-plus": run_of({"name": "diana-plus"}, {"name": "random-k", "k": 3}, workers={"count": 7, "partition": _DIRICHLET}),
    "diana-plus, diagonal": run_of({"name": "diana-plus", "matrix": "diagonal", "step": "0.3/L"}, {"name": "random-k", "k": 3}, **_MANY),
    "diana-plus, by ef21-p": {
        **run_of({"name": "diana-plus", "step": "0.1/L"}, {"name": "natural"}),
        "down": {"compressor": _TOP, "by": "ef21-p"},
    },
    "adiana-plus": {**run_of({"name": "adiana-plus"}), "up": {"compressor": {"name": "random-k", "k": 9}, "codec": {"name": "auto", "float": 32}}},
    "adiana-plus, diagonal": run_of({"name": "adiana-plus", "matrix": "diagonal", "step": "0.1/L"}, {"name": "random-k", "k": 3}, **_MANY),
    "power-sgd, of a model": {
        **run_of({"name": "power-sgd", "rank": 1}, objective={"model": "softmax", "mu": 0.1}),
        "up": {"compressor": {"name": "natural", "fraction": 2}, "codec": {"name": "entropy", "float": 32}},
    },
    "power-sgd": run_of({"name": "power-sgd", "shapes": [[5, 6], [10]], "batch": 2, "momentum": 0.5, "step": "0.1/L"}, workers={"count": 7}),
    "cat": run_of({"name": "cat"}, {"name": "sq"}),
    "cat, block signs": run_of({"name": "cat"}, {"name": "block-sign"}, **_MANY),
    "cat, natural": run_of({"name": "cat"}, {"name": "natural"}),
    "ef, tuned": run_of({"name": "ef", "batch": 1, "budget": "cat"}, {"name": "top-k"}, **_MANY),
    "ef21, tuned": run_of({"name": "ef21", "budget": "cat", "step": "0.5/L"}, {"name": "block-sign"}),
    "marina, perm-k": run_of({"name": "marina"}, {"name": "perm-k"}, **_MANY),
    "sketches of blocks": run_of({"name": "gd"}, {"name": "blocks", "of": {"name": "count-sketch", "columns": 5}, "slices": 3}),
    "ef21, chain": run_of({"name": "ef21"}, {"name": "chain", "first": _TOP, "then": "natural"}, **_MANY),
    "marina, chain of perm-k": run_of({"name": "marina"}, {"name": "chain", "first": "perm-k", "then": {"name": "dithering", "levels": 3}}),
    "marina-p": run_of({"name": "marina-p"}, workers={"count": 7}),
    "marina-p, independent": run_of({"name": "marina-p", "p": 0.4}, down={"name": "random-k", "k": 9}),
    "cat, changing links": {**run_of({"name": "cat"}, cost=CHANGING), "up": {"compressor": "top-k", "codec": "fixed"}},
    "ef, tuned on changing links": {
        **run_of({"name": "ef", "batch": 1, "budget": "cat"}, cost=CHANGING, workers={"count": 7, "participate": 3}),
        "up": {"compressor": "top-k", "codec": "bitmap"},
    },
    "ef21, tuned on changing links": run_of(
        {"name": "ef21", "budget": "cat", "step": "0.5/L"}, {"name": "block-sign"}, cost=CHANGING, workers={"count": 7}
    ),
    "kimad": {
        **run_of({"name": "kimad", "deadline": "0.2 s"}, cost=CHANGING, workers={"count": 7}),
        "up": {"compressor": "top-k", "codec": "fixed"},
    },
    "floats of 16 bits": {
        "algorithm": {"name": "ef", "batch": 1},
        "up": {"compressor": _TOP, "codec": {"name": "fixed", "float": 16}},
        **_MANY,
    },
    "bf16 both ways": {
        "algorithm": {"name": "cat"},
        "up": {"compressor": "stochastic", "codec": {"name": "auto", "float": "bf16"}},
        "down": {"compressor": "identity", "codec": {"name": "dense", "float": "bf16"}},
    },
    "averages": run_of({"name": "gd", "average": "uniform"}, {"name": "random-k", "k": 3}),
    "iade": run_of({"name": "iade"}, **_DOUBLE),
    "iade bound": run_of({"name": "iade", "level": 0.1}, _BOUND, _BOUND, **_DOUBLE, workers={"count": 7}),
    "aiade": run_of({"name": "aiade"}, **_DOUBLE, workers={"count": 7}),
    "aiade bound": run_of({"name": "aiade"}, _BOUND, _BOUND, **_DOUBLE),
    "dqgd": run_of({"name": "dqgd"}, **_DOUBLE),
    "iade-sgd": run_of({"name": "iade-sgd", "batch": 2, "sampling": "epoch"}, **_DOUBLE),
    "svrg": run_of({"name": "svrg", "batch": 3, "regularizer": "master"}, {"name": "qsgd", "levels": 4}, **_DOUBLE),
    "ef21, nesterov": run_of({"name": "ef21", "server": {"name": "nesterov", "momentum": 0.5}, "step": "0.2/L"}, _TOP, **_MANY),
    "ef21, heavy ball, by ef21-p": {
        **run_of({"name": "ef21", "server": "heavy-ball", "step": "0.05/L"}, _TOP),
        "down": {"compressor": _TOP, "by": "ef21-p"},
    },
    "ef21, l-bfgs, by ef21-p": {
        **run_of({"name": "ef21", "first": "gradient", "server": {"name": "l-bfgs", "memory": 3}, "step": 0.1}, _TOP),
        "down": {"compressor": _TOP, "by": "ef21-p"},
    },
    "ef21, muon": run_of({"name": "ef21", "server": "muon", "step": 0.01}, _TOP),
    "diana, adam": run_of({"name": "diana", "server": "adam", "step": 0.01}, {"name": "random-k", "k": 3}),
    "ef, by marina-p": {
        **run_of({"name": "ef", "batch": 1, "step": "0.1/L"}, _TOP, workers={"count": 7}),
        "down": {"by": {"name": "marina-p", "p": 0.4}},
    },
    "marina, by double-squeeze": {
        **run_of({"name": "marina", "step": "0.1/L"}, {"name": "random-k", "k": 9}),
        "down": {"compressor": _TOP, "by": "double-squeeze"},
    },
    "local-sgd, heavy ball": run_of({"name": "local-sgd", "server": "heavy-ball", "local_steps": 3, "step": "0.1/L"}, _TOP, workers={"count": 7, "participate": 3}),
    "econtrol, tuned": {**run_of({"name": "econtrol", "batch": 2}), "up": {"compressor": "top-k", "budget": "cat"}},
    "ship-data": run_of({"name": "ship-data"}, workers={"count": 7}),
    "ship-data, bf16 down": {**run_of({"name": "ship-data"}, workers={"count": 7}), "down": {"codec": {"float": "bf16"}}},
    "ef21, bf16 down": {**run_of({"name": "ef21"}, _TOP, **_MANY), "down": {"codec": {"float": "bf16"}}},
    "rand-diana, bf16 down": {**run_of({"name": "rand-diana"}, {"name": "random-k", "k": 3}), "down": {"codec": {"float": "bf16"}}},
    "adef, bf16 down": {**run_of({"name": "adef"}, _TOP), "down": {"codec": {"float": "bf16"}}},
    "median of flipped signs": run_of(
        {"name": "gd"}, workers={"count": 7, "robust": "median", "byzantine": {"count": 3, "attack": {"name": "sign-flip", "scale": 4.0}}}
    ),
    "marina, mixed": run_of(
        {"name": "marina", "step": "0.1/L"},
        {"name": "qsgd", "levels": 4},
        workers={"count": 7, "robust": {"name": "nearest-neighbour-mixing", "then": "trimmed-mean"}, "byzantine": {"count": 2, "attack": "alie"}},
    ),
    "ef21, clipped": run_of(
        {"name": "ef21"}, _TOP, workers={"count": 7, "robust": "centred-clipping", "byzantine": {"count": 2, "attack": "ipm"}}
    ),
    "fednl": run_of({"name": "fednl"}, _TOP, stop={"rounds": 12}),
    "fednl, searched": run_of(
        {"name": "fednl", "search": True, "start_at": "zero", "hessian": {"compressor": {"name": "top-k", "k": "10%"}}}, stop={"rounds": 16}, log={"every": 3}
    ),
    "fednl-pp": run_of(
        {"name": "fednl-pp", "hessian": {"compressor": "natural"}}, workers={"count": 7, "participate": 3}, stop={"rounds": 12}
    ),
    "bfgs": run_of({"name": "bfgs"}, stop={"rounds": 20}),
    "floor": run_of({"name": "iade", "rate": "1 - 0.99*step*mu", "level": "1e-12*g0"}, **_DOUBLE),
}

SHARED_MEMORY: dict[str, dict[str, Any]] = {  # of these, the updates of several ranks come in any order
    "async-sgd": run_of({"name": "async-sgd", "step": "0.1/L", "pool": 500}, {"name": "gspar", "kappa": 0.3}, stop={"rounds": 60}),
}
