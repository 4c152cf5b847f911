"""Columns and labels that [figure] and claims name are checked as a job is loaded, by all that its runs may log."""

import pytest

import mpi_compress as mc
from mpi_compress.core.errors import UserError

PLUGIN = """
from dataclasses import dataclass
import numpy as np
import mpi_compress as mc

@mc.metrics.register("my-share")
@dataclass(frozen=True)
class MyShare(mc.Metric):
    def value(self, x, problem):
        return float(np.mean(x > 0))

from mpi_compress.algorithms.estimators.gd import GD

@mc.algorithms.register("logs-height")
@dataclass(frozen=True)
class LogsHeight(GD):
    log = mc.Log(("height",), lambda worker: [1.0])

@mc.algorithms.register("logs-any")
@dataclass(frozen=True)
class LogsAny(GD):
    log = mc.Log(("height",), lambda worker: [1.0], lambda means, node: {"depth": -means["height"]})
"""
CLAIM = {"id": "A", "says": "it is small", "holds": "< 1"}


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asked_columns.py").write_text(PLUGIN)


def job(method="gd", log=None, **tables):
    return {
        "title": "asked", "plugins": ["asked_columns"], "data": {"generator": "gspar", "samples": 40, "dim": 6},
        "objective": {"mu": 0.1}, "workers": {"count": 2}, "stop": {"rounds": 2}, "log": log or {"metrics": ["my-share"]},
        "run": [
            {"label": "A", "algorithm": {"name": method, "step": 0.1}},
            {"label": "EF21, top", "algorithm": {"name": "ef21"}, "up": {"compressor": {"name": "top-k"}},
             "grid": {"up.compressor.k": [1, 2]}},
        ],
    } | tables  # fmt: skip


NAMED = [
    ({"figure": {"y": "my_shar"}}, "figure.y: no column called 'my_shar'; did you mean 'my_share'?"),
    ({"figure": {"x": "wire_bit_up"}}, "figure.x: no column called 'wire_bit_up'; did you mean 'wire_bits_up'?"),
    ({"figure": {"at": {"los": 0.4}}}, "figure.at: no column called 'los'; did you mean 'loss'?"),
    ({"figure": {"to": {"grad_nrm": 0.4}}}, "figure.to: no column called 'grad_nrm'; did you mean 'grad_norm'?"),
    ({"figure": {"to": {"loss": 0.4}, "by": "wire_bitsup"}}, "figure.by: no column called 'wire_bitsup'"),
    ({"figure": {"bounds": ["bund"]}}, "figure.bounds: no column called 'bund'; did you mean 'bound'?"),
    ({"figure": {"panel": [{"runs": ["A"], "y": "los"}]}}, "figure.panel 1.y: no column called 'los'"),
    ({"figure": {"y": "nonzeros"}}, "figure.y: 'nonzeros' is a metric that the runs do not log; [log] metrics = [\"nonzeros\"] adds it"),
    ({"figure": {"y": "test_loss"}}, "figure.y: this run does not log 'test_loss': test_loss needs a test set"),
    ({"figure": {"x": "model_seconds"}}, "figure.x: this run does not log 'model_seconds'"),
    ({"figure": {"x": "up.compressor.q"}}, "figure.x: no column called 'up.compressor.q'"),
    ({"figure": {"methods": ["B"]}}, "figure.methods: no run called 'B'"),
    ({"figure": {"methods": ["A", "DIANA*"]}}, "figure.methods: no run called 'DIANA*'"),
    ({"claim": [CLAIM | {"value": "my_shar('A')"}]}, "no column called 'my_shar'; did you mean 'my_share'?"),
    ({"claim": [CLAIM | {"value": "wire_bits_up('A', los=0.4)"}]}, "no column called 'los'"),
    ({"claim": [CLAIM | {"value": "largest('loss / bund', 'A')"}]}, "no column called 'bund'"),
    ({"claim": [CLAIM | {"value": "largest('loss', 'A', epock=(0, 1))"}]}, "no column called 'epock'; did you mean 'epoch'?"),
    ({"claim": [CLAIM | {"value": "nonzeros('EF21*')"}]}, "'nonzeros' is a metric that the runs do not log"),
]


@pytest.mark.parametrize(("tables", "said"), NAMED, ids=lambda given: given if isinstance(given, str) else "")
def test_a_name_that_no_run_logs_is_refused_with_what_would_do(plugin, tables, said):
    with pytest.raises(UserError) as refused:
        mc.load_job(job(**tables))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "figure",
    [
        {"y": "my_share"}, {"y": "loss, grad_norm", "x": "seconds"}, {"x": "up.compressor.k", "rows": "last"}, {"x": "algorithm.step"},
        {"x": "step", "rows": "last"}, {"y": "error_norm"}, {"at": {"my_share": 0.4}, "x": "epoch"}, {"methods": ["EF21*", "A"]},
        {"methods": ["EF21, top", "A"]},
    ],
)  # fmt: skip
def test_what_runs_log_is_drawn(plugin, figure):
    assert mc.load_job(job(figure=figure)).figure


def test_columns_that_a_method_of_ones_own_logs_pass(plugin):
    mc.load_job(job("logs-height", figure={"y": "height"}))
    mc.load_job(job("logs-any", figure={"y": "depth"}, claim=[CLAIM | {"value": "depth('A')"}]))


def test_methods_are_in_the_order_of_the_patterns_that_take_them(plugin):
    assert mc.load_job(job(figure={"methods": ["EF21*", "A"]})).figure.methods == ["EF21, top, k = 1", "EF21, top, k = 2", "A"]


def test_a_run_without_a_column_by_what_is_set_from_outside_is_run(plugin):
    tables = job(figure={"y": "suboptimality"})
    assert mc.load_job(tables, {"log.evaluate": 5})
    with pytest.raises(UserError, match=r"figure\.y: this run does not log 'suboptimality'"):
        mc.load_job(tables | {"log": {"evaluate": 5}})
