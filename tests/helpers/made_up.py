"""Results that no run wrote, with all columns that a job's figure asks for: they fall, at a rate of each run's own, and some are noise."""

from pathlib import Path

import numpy as np

from mpi_compress.results.columns import named
from mpi_compress.results.reader import Run

ROWS = 240
FALLING = ("loss", "suboptimality", "grad_norm", "distance", "error_norm", "bound", "corrected_norm", "lower_up", "density")
RISING = ("epoch", *named("counter", "convention", "model"))
SCORES = ("test_accuracy", "perplexity", "hit_rate")
OTHERS = ("variance", "spa", "total_error", "gap", "upper_up")
BUDGETS = np.unique(np.geomspace(1, 1000, 40).astype(int))


def made_up_results(job, seeds=2):
    """A result for each run of a job; of runs that differ in their seed alone, `seeds` of them."""
    left: dict[str, int] = {}
    runs = []
    for spec in job.runs:
        left[spec.label] = left.get(spec.label, 0) + 1
        if left[spec.label] <= seeds:
            runs.append(_result(spec, len(left)))
    return runs


def _result(spec, number):
    rng = np.random.default_rng(number)
    k = np.arange(ROWS)
    noisy = "sgd" in spec.algorithm.name or "ef" in spec.algorithm.name
    rough = np.exp(rng.normal(0, 0.6, ROWS)) if noisy else 1.0
    fall = np.exp(-k / (15 + 3 * (number % 9))) + 1e-3 * (number % 5 + 1)
    trace = {"round": k * 10} | dict.fromkeys(FALLING, fall * rough * (1 + 0.1 * spec.seed))
    if reached := [target.level for target in spec.stop.targets if target.column == "relative_distance"]:
        trace["relative_distance"] = np.append(trace["distance"][:-1], reached)
    trace |= dict.fromkeys(OTHERS, 0.5 + 0.2 * fall)
    trace["loss"] = 0.1 + 0.59 * fall / fall[0]
    trace |= dict.fromkeys(RISING, k * 10.0 ** (2 + number % 4))
    trace |= dict.fromkeys(SCORES, 0.9 - 0.5 * fall / fall[0])
    given = spec.written.get("algorithm", {}).get("budget", number)
    budget = float(number if isinstance(given, str) else given)
    trace["budget"] = np.full(ROWS, budget)
    timing = dict.fromkeys(("seconds", "compute", "pack", "exchange", "update", "evaluate"), 0.01 * k * (1 + number % 3))
    attrs = {
        "label": spec.label, "status": "complete", "job": spec.toml(), "run_id": spec.run_id, "data": spec.data_shown, "dim": 1000,
        "n_workers": spec.workers.count, "L": 4.0 * number, "L_max": 5.0, "mu": 0.1, "f_star": 0.1,
        "settled": f'{{"step": 0.1, "rho": 2.0, "rate": {0.98 + 0.0007 * number}}}', "curve": "alpha",
        "theory_T": BUDGETS, "theory_payload": BUDGETS * 42.0, "theory_cost": BUDGETS * 50.0 + 900,
    }  # fmt: skip
    least = np.tile((BUDGETS / 1000.0) ** 0.4, (ROWS, 1))
    theory = {"alpha": least, "beta": least, "omega": least, "variance": fall}
    return Run(Path(f"results/{job_file(spec)}.h5"), attrs, trace, {"budget": np.full((ROWS, 2), budget)}, timing, None, theory)


def job_file(spec):
    return f"{spec.index}-{spec.seed}"
