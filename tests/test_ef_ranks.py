"""One seed gives one set of bytes: 20 workers, batch 1, on any ranks."""

import pytest
from conftest import command

import mpi_compress as mc

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
def in_one_process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    job = folder / "ef.toml"
    runs = "".join(
        f'[[run]]\nlabel = "{n}"\nalgorithm = {{ {a} }}\nup = {{ compressor = {{ {c} }} }}\n' for n, (a, c) in RUNS.items()
    )
    job.write_text(JOB + runs)
    done = command("run", job, "--out", folder, "--quiet")
    assert done.returncode == 0, done.stderr
    return job, folder / "ef"


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (3, []),
        (3, ["--set", "workers.exchange=allgather"]),
        pytest.param(1, [], marks=pytest.mark.slow),
        pytest.param(2, [], marks=pytest.mark.slow),
        pytest.param(5, ["--set", "workers.master=worker"], marks=pytest.mark.slow),
        pytest.param(21, [], marks=pytest.mark.slow),
    ],
    ids=lambda v: str(v) if isinstance(v, int) else "".join(v[1:]) or "dedicated",
)
def test_results_are_equal_byte_for_byte(ranks, options, in_one_process, tmp_path):
    job, reference = in_one_process
    done = command("run", job, "--out", tmp_path, "--quiet", *options, ranks=ranks, timeout=580)
    assert done.returncode == 0, done.stderr
    files = sorted(reference.glob("*.h5"))
    assert len(files) == len(RUNS)
    left_out = {"wire_bits_down", "paper_bits_down", "cost_down"} if "workers.exchange=allgather" in options else set()
    for file in files:
        one, other = mc.read(file), mc.read(tmp_path / "ef" / file.name)
        for table in ("trace", "workers"):
            for column, values in getattr(one, table).items():
                assert column in left_out or values.tobytes() == getattr(other, table)[column].tobytes(), f"{file.name}: {column}"
        assert one.x.tobytes() == other.x.tobytes()
