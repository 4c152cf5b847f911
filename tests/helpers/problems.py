"""Jobs of problems of every kind, for tests that compare layouts: losses, penalties and models, built-in and of one's own."""

from typing import Any

import numpy as np

OWN_PROBLEMS = '''
from dataclasses import dataclass
import numpy as np
import mpi_compress as mc

@mc.losses.register("cauchy")
@dataclass(frozen=True)
class Cauchy(mc.Loss):
    formula = "log(1 + (y - m)^2 / 2)"
    curvature = 1.0
    real_labels = True

    def value_and_slope(self, y, m):
        r = m - y
        return np.log1p(r * r / 2), r / (1 + r * r / 2)

@mc.penalties.register("log-sum")
@dataclass(frozen=True)
class LogSum(mc.Penalty):
    curvature = 2.0

    def value(self, x):
        return self.λ * np.log1p(x * x).sum()

    def gradient(self, x):
        return 2 * self.λ * x / (1 + x * x)

@mc.models.register("dropped-out")
@dataclass(frozen=True)
class DroppedOut(mc.Model):
    """One hidden layer, whose units are dropped at random in training."""

    hidden: int = 4
    random = True

    @property
    def blocks(self):
        return {"in": (self.outline.features, self.hidden), "out": (self.hidden, self.outline.classes)}

    def start(self, rng):
        return 0.5 * rng.standard_normal(self.dim)

    def loss_and_gradient(self, x, rows, draw):
        first, last = self.split(x).values()
        kept = np.ones(self.hidden) if draw is None else 2.0 * (draw.random(self.hidden) < 0.5)
        a = rows.dense()
        h = np.tanh(a @ first) * kept
        s = h @ last
        p = np.exp(s - s.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        at = np.arange(len(rows)), rows.labels.astype(int)
        loss = -np.log(p[at]).mean()
        p[at] -= 1
        p /= len(rows)
        below = (p @ last.T) * kept * (1 - np.tanh(a @ first) ** 2)
        return loss, np.concatenate([(a.T @ below).ravel(), (h.T @ p).ravel()])
'''

_FEEDBACK = {"algorithm": {"name": "ef", "step": 0.1, "batch": 2}, "up": {"compressor": {"name": "top-k", "k": 3}}}
_EF21 = {"algorithm": {"name": "ef21", "step": 0.05}, "up": {"compressor": {"name": "top-k", "k": 2}}}
_GD = {"algorithm": {"name": "gd", "step": 0.1}}
_METHODS = {"ef": _FEEDBACK, "ef21": _EF21}  # of some samples, and of all
_PROXIMAL = {
    "gd": _GD,
    "nesterov": {"algorithm": {"name": "nesterov", "step": 0.1}},
    "sgd": {"algorithm": {"name": "sgd", "step": 0.1, "batch": 2}},
}
_CLASSES, _SIGNS = {"path": "classes.svm"}, {"generator": "gspar", "samples": 24, "dim": 8}
_NUMBERS = {"generator": "least-squares", "samples": 24, "dim": 8}
_PROBLEMS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "softmax": (_CLASSES, {"model": {"name": "softmax", "bias": True}, "mu": 0.01}, _METHODS),
    "factorisation": ({"path": "ratings.svm"}, {"model": {"name": "matrix-factorisation", "rank": 2}}, _METHODS),
    "quadratic": (
        {"generator": "tridiagonal", "samples": 6},
        {"model": {"name": "quadratic", "dim": 9, "noise": 0.1}},
        {"gd": _GD, "ef": {**_FEEDBACK, "algorithm": {"name": "ef", "step": 0.1, "batch": 1}}, "ef21": _EF21},
    ),
    "dropped out": (_CLASSES, {"model": {"name": "dropped-out", "hidden": 3}}, _METHODS),
    "cauchy": (_NUMBERS, {"loss": "cauchy", "mu": 0.1}, _METHODS),
    "huber": (_NUMBERS, {"loss": {"name": "huber", "delta": 0.1}}, _METHODS),
    "smooth hinge": (_SIGNS, {"loss": "smooth-hinge", "smoothness": "estimate"}, _METHODS),
    "squared sigmoid": (_SIGNS, {"loss": "squared-sigmoid", "penalty": {"name": "log-sum", "weight": 0.1}}, _METHODS),
    "ratio": (_SIGNS, {"penalty": {"name": "ratio", "weight": "1/N"}, "f_star": "lowest seen"}, _METHODS),
    "ratio, master": (_SIGNS, {"penalty": {"name": "ratio", "weight": 0.1}, "mu": 0.1, "regularizer": "master"}, _PROXIMAL),
    "l1": (_SIGNS, {"penalty": {"name": "l1", "weight": 0.01}, "f_star": "lowest seen"}, _PROXIMAL),
    "group": (_SIGNS, {"penalty": {"name": "group", "weight": 0.01, "size": 3}}, _PROXIMAL),
}


def problems_job(rounds: int = 8) -> dict[str, Any]:
    """The tables of a job of all of them, with the plugin own_problems and two files beside it."""
    runs = [
        {"label": f"{problem}: {name}", "data": data, "objective": objective, **method}
        for problem, (data, objective, methods) in _PROBLEMS.items()
        for name, method in methods.items()
    ]
    shared = {"plugins": ["own_problems"], "workers": {"count": 3}, "stop": {"rounds": rounds}, "log": {"every": 3}}
    return {**shared, "start": {"at": "random", "scale": 0.5}, "run": runs}


def problem_files() -> dict[str, str]:
    """The plugin and the files of the job, by name."""
    rng = np.random.default_rng(0)
    classes = "".join(
        f"{j % 4} "
        + " ".join(f"{i + 1}:{v:.3f}" for i, v in enumerate(rng.standard_normal(7)) if rng.random() < 0.3 or i == j % 7)
        + "\n"
        for j in range(24)
    )
    ratings = "".join(f"{rng.integers(1, 6)} {user}:1 {item}:1\n" for user in range(1, 7) for item in range(7, 12))
    return {"own_problems.py": OWN_PROBLEMS, "classes.svm": classes, "ratings.svm": ratings}
