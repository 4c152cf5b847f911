"""One seed gives one set of bytes: 20 workers, batch 1, on any ranks."""

import pytest
from helpers.layouts import assert_equal_on, layouts, played_in_one_process

JOB = """
title = "ef"
seed = 5
[data]
generator = "gspar"
samples = 90
dim = 40
[objective]
mu = "1e-3 L"
[workers]
count = 20
[stop]
rounds = 25
[log]
every = 5
"""
RUNS = {
    "ef top": ('name = "ef", batch = 1', 'name = "top-k", k = 3'),
    "ef hard, falling": ('name = "ef", batch = 1, average = "linear", step = { form = "1/t", a = "4/mu", b = "16 L/mu" }', 'name = "hard-threshold", accuracy = 1e-3'),
    "ef master": ('name = "ef", batch = 2, sampling = "epoch", regularizer = "master"', 'name = "qsgd", levels = 4'),
    "accordion": ('name = "ef", batch = 1', 'name = "accordion", k_min = 1, k_max = 5, every = 2'),
    "ef hard": ('name = "ef"', 'name = "hard-threshold", threshold = 1.0'),
    "gdstar hard": ('name = "ef-gdstar"', 'name = "hard-threshold", accuracy = 100.0'),
    "gdstar": ('name = "ef-gdstar"', 'name = "top-k", k = 1'),
    "gradient": ('name = "ef", batch = 1, momentum = 0.5, step = "0.2/L"', 'name = "top-k", k = 3'),
    "update": ('name = "ef", batch = 1, momentum = 0.5, form = "update", masking = true, step = "0.2/L"', 'name = "top-k", k = 3'),
    "sgd": ('name = "sgd", batch = 1, regularizer = "master", step = [[0, "1/L"], [10, "0.1/L"]]', 'name = "random-k", k = 9'),
    "nesterov": ('name = "nesterov"', 'name = "identity"'),
    "ef21": ('name = "ef21"', 'name = "top-k", k = 3'),
    "diana": ('name = "diana"', 'name = "random-k", k = 3'),
    "marina": ('name = "marina"', 'name = "random-k", k = 9'),
}  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    runs = "".join(
        f'[[run]]\nlabel = "{n}"\nalgorithm = {{ {a} }}\nup = {{ compressor = {{ {c} }} }}\n' for n, (a, c) in RUNS.items()
    )
    return played_in_one_process(tmp_path_factory.mktemp("one"), "ef", JOB + runs)


@layouts(1, 2, 21)
def test_results_are_equal_byte_for_byte(ranks, options, played, tmp_path):
    assert_equal_on(ranks, options, played, tmp_path)
