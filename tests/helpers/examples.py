"""Examples of every part, one line each: tests that go over all parts build them from here. A part without an example fails a test."""

from typing import Any

from fixtures import messages
from fixtures.runs import BOUND, CHANGING, COMPUTING, FALLING, TOP, of, workers

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
    "seed": 5, "data": {"generator": "gspar", "samples": 90, "dim": 40}, "objective": {"mu": "1e-3 L"}, "workers": {"count": 3},
    "stop": {"rounds": 25}, "log": {"every": 5},
}  # fmt: skip
"""The job that ALGORITHMS are runs of."""

_WARM_UP = {"form": "warm-up", "over": 0.5, "falls": [1]}
_RANDOM_3, _RANDOM_9 = {"name": "random-k", "k": 3}, {"name": "random-k", "k": 9}
_MANY = {"workers": {"count": 20}}  # of 90 samples: shards of unequal length, most of them on one rank with others
_DIRICHLET = {"name": "dirichlet", "alpha": 0.5, "least": 3}
_DOUBLE: dict[str, Any] = {"objective": {"mu": "1e-2 L"}, "stop": {"rounds": 40}, "log": {"every": 3}}

ALGORITHMS: dict[str, dict[str, Any]] = {
    "ef top": of("ef", TOP, batch=1, **_MANY),
    "ef hard, falling": of("ef", {"name": "hard-threshold", "accuracy": 1e-3}, batch=1, average="linear", step=FALLING, **_MANY),
    "ef master": of("ef", {"name": "qsgd", "levels": 4}, batch=2, sampling="epoch", regularizer="master"),
    "accordion": of("ef", {"name": "accordion", "k_min": 1, "k_max": 5, "every": 2}, batch=1),
    "ef hard": of("ef", {"name": "hard-threshold", "threshold": 1.0}),
    "gdstar hard": of("ef-gdstar", {"name": "hard-threshold", "accuracy": 100.0}, **_MANY),
    "gdstar": of("ef-gdstar", {"name": "top-k", "k": 1}),
    "gradient": of("ef", TOP, batch=1, momentum=0.5, step="0.2/L"),
    "update": of("ef", TOP, batch=1, momentum=0.5, form="update", masking=True, step="0.2/L"),
    "adam": of("adam", {"name": "gspar", "kappa": 0.3}, batch=2, step=0.02, feedback=False, **_MANY),
    "nesterov momentum": of(
        "ef", {"name": "blocks", "of": {"name": "top-k", "k": "10%"}, "sizes": [7, 30, 3], "joined": True}, batch=2,
        momentum=0.9, direction="nesterov", step={**_WARM_UP, "a": "0.1/L", "from": "0.01/L"}, log={"every": 5, "evaluate": 3}
    ),
    "sgd": of("sgd", _RANDOM_9, batch=1, regularizer="master", step=[[0, "1/L"], [10, "0.1/L"]], **_MANY),
    "nesterov": of("nesterov", {"name": "identity"}),
    "ef21": of("ef21", TOP),
    "ef21, dirichlet": of("ef21", TOP, step="0.3/L", workers=workers(7, partition=_DIRICHLET)),
    "ef, uneven": of("ef", TOP, batch=1, workers=workers(7, partition={"name": "shuffled", "sizes": 1.0})),
    "diana": of("diana", _RANDOM_3),
    "marina": of("marina", _RANDOM_9, **_MANY),
    "ef21, l1": of("ef21", TOP, batch=2, first="gradient", objective={"penalty": {"name": "l1", "weight": 0.01}, "f_star": "skip"}),
    "ef21-sgdm": of("ef21-sgdm", TOP, batch=1),
    "econtrol": of("econtrol", TOP, batch=2, sampling="epoch"),
    "double-squeeze": of("double-squeeze", TOP, batch=1, down={"compressor": {"name": "random-k", "k": 5, "scaled": False}}),
    "dasha": of("dasha", _RANDOM_9, step="4 theory", **_MANY),
    "dasha-page": of("dasha-page", {"name": "qsgd", "levels": 4}, sampling="epoch"),
    "dasha-mvr": of("dasha-mvr", _RANDOM_9, batch=2),
    "page": of("page", _RANDOM_9, batch=2),
    "marina-pp": of("marina-pp", _RANDOM_9, workers=workers(7, participate=3)),
    "dasha-pp": of("dasha-pp", {"name": "qsgd", "levels": 4}, workers=workers(7, participate=3)),
    "ef21-p": of("ef21-p", down={"compressor": TOP}),
    "ef-bv": of("ef-bv", _RANDOM_3),
    "ef21-w": of("ef21-w", TOP),
    "rand-diana": of("rand-diana", _RANDOM_3, **_MANY),
    "ef21-p-diana": of("ef21-p-diana", _RANDOM_3, down={"compressor": TOP}),
    "ef21, some workers": of("ef21", TOP, workers=workers(7, participate=0.3)),
    "ef, some workers": of("ef", TOP, batch=1, workers=workers(7, participate=4)),
    "diana, some workers": of("diana", _RANDOM_3, workers=workers(7, participate=2)),
    "3pc": of("3pc", TOP, zeta=1.0, workers=workers(7)),
    "clag": of("clag", TOP, workers=workers(7, partition=_DIRICHLET)),
    "lag": of("lag"),
    "laq": of("laq", workers=workers(7)),
    "cafe": of("cafe", TOP, batch=2, workers=workers(7, participate=3)),
    "sparse-loco": of("sparse-loco", TOP, local_steps=3, batch=2, workers=workers(7, participate=3)),
    "ef21-norm": of("ef21-norm", TOP, **_MANY),
    "ef21, tight": of("ef21", TOP, step="tight"),
    "marina, correlated": of("marina", {"name": "correlated-dithering", "levels": 3}, workers=workers(7)),
    "adacgd": of("adacgd", workers=workers(7)),
    "local-sgd": of("local-sgd", TOP, local_steps=3, batch=2, workers=workers(7, participate=3)),
    "scaffnew": of("scaffnew", stop={"rounds": 14}, log={"every": 2}),
    "compressed-scaffnew": of("compressed-scaffnew", stop={"rounds": 14}, log={"every": 2}),
    "ef21, clip": of("ef21", {"name": "clip", "threshold": 0.1, "noise": 0.01}, step="1/L"),
    "locodl": of("locodl", _RANDOM_9, stop={"rounds": 14}, log={"every": 2}),
    "adiana": of("adiana", _RANDOM_9),
    "adef": of("adef", TOP, batch=2, workers=workers(7)),
    "adef, random": of("adef", {"name": "random-k", "k": 9, "scaled": False}, step="0.1/L", **_MANY),
    "diana-plus": of("diana-plus", _RANDOM_3, workers=workers(7, partition=_DIRICHLET)),
    "diana-plus, diagonal": of("diana-plus", _RANDOM_3, matrix="diagonal", step="0.3/L", **_MANY),
    "diana-plus, by ef21-p": of("diana-plus", {"name": "natural"}, step="0.1/L", down={"compressor": TOP, "by": "ef21-p"}),
    "adiana-plus": of("adiana-plus", _RANDOM_9, {"name": "auto", "float": 32}),
    "adiana-plus, diagonal": of("adiana-plus", _RANDOM_3, matrix="diagonal", step="0.1/L", **_MANY),
    "power-sgd, of a model": of(
        "power-sgd", {"name": "natural", "fraction": 2}, {"name": "entropy", "float": 32}, rank=1,
        objective={"model": "softmax", "mu": 0.1},
    ),
    "power-sgd": of("power-sgd", shapes=[[5, 6], [10]], batch=2, momentum=0.5, step="0.1/L", workers=workers(7)),
    "cat": of("cat", {"name": "sq"}),
    "cat, block signs": of("cat", {"name": "block-sign"}, **_MANY),
    "cat, natural": of("cat", {"name": "natural"}),
    "ef, tuned": of("ef", {"name": "top-k"}, batch=1, budget="cat", **_MANY),
    "ef21, tuned": of("ef21", {"name": "block-sign"}, budget="cat", step="0.5/L"),
    "marina, perm-k": of("marina", {"name": "perm-k"}, **_MANY),
    "sketches of blocks": of("gd", {"name": "blocks", "of": {"name": "count-sketch", "columns": 5}, "slices": 3}),
    "ef21, chain": of("ef21", {"name": "chain", "first": TOP, "then": "natural"}, **_MANY),
    "marina, chain of perm-k": of("marina", {"name": "chain", "first": "perm-k", "then": {"name": "dithering", "levels": 3}}),
    "marina-p": of("marina-p", workers=workers(7)),
    "marina-p, independent": of("marina-p", p=0.4, down={"compressor": _RANDOM_9}),
    "cat, changing links": of("cat", "top-k", "fixed", cost=CHANGING, time=COMPUTING),
    "ef, tuned on changing links": of(
        "ef", "top-k", "bitmap", batch=1, budget="cat", cost=CHANGING, time=COMPUTING, workers=workers(7, participate=3)
    ),
    "ef21, tuned on changing links": of(
        "ef21", {"name": "block-sign"}, budget="cat", step="0.5/L", cost=CHANGING, time=COMPUTING, workers=workers(7)
    ),
    "kimad": of("kimad", "top-k", "fixed", deadline="0.2 s", cost=CHANGING, time=COMPUTING, workers=workers(7)),
    "floats of 16 bits": of("ef", TOP, {"name": "fixed", "float": 16}, batch=1, **_MANY),
    "bf16 both ways": of(
        "cat", "stochastic", {"name": "auto", "float": "bf16"},
        down={"compressor": "identity", "codec": {"name": "dense", "float": "bf16"}},
    ),
    "averages": of("gd", _RANDOM_3, average="uniform"),
    "iade": of("iade", **_DOUBLE),
    "iade bound": of("iade", BOUND["compressor"], level=0.1, **_DOUBLE, down=BOUND, workers=workers(7)),
    "aiade": of("aiade", **_DOUBLE, workers=workers(7)),
    "aiade bound": of("aiade", BOUND["compressor"], **_DOUBLE, down=BOUND),
    "dqgd": of("dqgd", **_DOUBLE),
    "iade-sgd": of("iade-sgd", batch=2, sampling="epoch", **_DOUBLE),
    "svrg": of("svrg", {"name": "qsgd", "levels": 4}, batch=3, regularizer="master", **_DOUBLE),
    "ef21, nesterov": of("ef21", TOP, server={"name": "nesterov", "momentum": 0.5}, step="0.2/L", **_MANY),
    "ef21, heavy ball, by ef21-p": of("ef21", TOP, server="heavy-ball", step="0.05/L", down={"compressor": TOP, "by": "ef21-p"}),
    "ef21, l-bfgs, by ef21-p": of(
        "ef21", TOP, first="gradient", server={"name": "l-bfgs", "memory": 3}, step=0.1,
        down={"compressor": TOP, "by": "ef21-p"},
    ),
    "ef21, muon": of("ef21", TOP, server="muon", step=0.01),
    "diana, adam": of("diana", _RANDOM_3, server="adam", step=0.01),
    "ef, by marina-p": of("ef", TOP, batch=1, step="0.1/L", workers=workers(7), down={"by": {"name": "marina-p", "p": 0.4}}),
    "marina, by double-squeeze": of("marina", _RANDOM_9, step="0.1/L", down={"compressor": TOP, "by": "double-squeeze"}),
    "local-sgd, heavy ball": of(
        "local-sgd", TOP, server="heavy-ball", local_steps=3, step="0.1/L", workers=workers(7, participate=3)
    ),
    "econtrol, tuned": {**of("econtrol", batch=2), "up": {"compressor": "top-k", "budget": "cat"}},
    "ship-data": of("ship-data", workers=workers(7)),
    "ship-data, bf16 down": of("ship-data", workers=workers(7), down={"codec": {"float": "bf16"}}),
    "ef21, bf16 down": of("ef21", TOP, **_MANY, down={"codec": {"float": "bf16"}}),
    "rand-diana, bf16 down": of("rand-diana", _RANDOM_3, down={"codec": {"float": "bf16"}}),
    "adef, bf16 down": of("adef", TOP, down={"codec": {"float": "bf16"}}),
    "fednl": of("fednl", TOP, stop={"rounds": 12}),
    "fednl, searched": of(
        "fednl", search=True, start_at="zero", hessian={"compressor": {"name": "top-k", "k": "10%"}}, stop={"rounds": 16},
        log={"every": 3}
    ),
    "fednl-pp": of("fednl-pp", hessian={"compressor": "natural"}, workers=workers(7, participate=3), stop={"rounds": 12}),
    "bfgs": of("bfgs", stop={"rounds": 20}),
    "floor": of("iade", rate="1 - 0.99*step*mu", level="1e-12*g0", **_DOUBLE),
}  # fmt: skip

SHARED_MEMORY: dict[str, dict[str, Any]] = {  # of these, the updates of several ranks come in any order
    "async-sgd": of("async-sgd", {"name": "gspar", "kappa": 0.3}, step="0.1/L", pool=500, stop={"rounds": 60}),
}
