"""What a job's formulas name, as its runs compute it, against dense matrices: on shards that are unlike and of unequal sizes."""

import json
from itertools import pairwise

import numpy as np
import pytest

import mpi_compress as mc

MU = 0.02
SIZES = {"two by label": [14, 34], "three by label": [14, 20, 14]}  # 14 rows have the label −1


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """The folder of a file, its rows and labels: rows of one label are alike, and those of the other ten times as large."""
    rng = np.random.default_rng(3)
    labels = np.where(np.arange(48) % 24 < 7, -1.0, 1.0)
    a = np.round(rng.standard_normal((48, 6)) * np.where(labels > 0, 0.4, 4.0)[:, None], 3)
    folder = tmp_path_factory.mktemp("samples")
    lines = (f"{y:+.0f} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) + "\n" for y, row in zip(labels, a, strict=True))
    (folder / "uneven.svm").write_text("".join(lines))
    return folder, a, labels


def known(a, labels, sizes):
    """The quantities by their definitions, of logistic regression with the regulariser at the workers."""
    N, n = len(a), len(sizes)
    shards = [a[np.argsort(labels, kind="stable")[start:stop]] for start, stop in pairwise(np.cumsum([0, *sizes]))]
    each = np.array([n / N * np.linalg.eigvalsh(shard.T @ shard)[-1] / 4 + MU for shard in shards])
    L = np.linalg.eigvalsh(a.T @ a)[-1] / (4 * N) + MU
    return {
        **{"L": L, "L_max": each.max(), "L_rms": np.sqrt(np.mean(each**2)), "mu": MU, "n": n, "d": a.shape[1], "N": N},
        "L_row": max(n / N * len(shard) * np.max(np.sum(shard**2, axis=1)) / 4 for shard in shards) + MU,
        **{"g0": np.linalg.norm(a.T @ (labels / 2)) / N, "kappa": L / MU},
    }


@pytest.mark.parametrize("split", SIZES)
@pytest.mark.parametrize("name", ["L", "L_max", "L_rms", "L_row", "g0", "kappa", "mu", "n", "d", "N"])
def test_what_formulas_name_is_what_its_definition_says(name, split, samples, tmp_path):
    folder, a, labels = samples
    job = {
        "data": {"path": str(folder / "uneven.svm")},
        "objective": {"mu": MU},
        "workers": {"count": len(SIZES[split]), "partition": {"name": "by-label", "sizes": SIZES[split]}},
        "algorithm": {"name": "gd", "step": f"1e-4 {name}"},
        "stop": {"rounds": 1},
    }
    (run,) = mc.run(job, out=tmp_path)
    wanted = known(a, labels, SIZES[split])
    assert run.split["rows"].tolist() == SIZES[split]
    assert json.loads(run.attrs["settled"])["step"] == pytest.approx(1e-4 * wanted[name], rel=1e-10)
    for attribute in {"L", "L_max"} & set(run.attrs):
        assert run.attrs[attribute] == pytest.approx(wanted[attribute], rel=1e-10)
