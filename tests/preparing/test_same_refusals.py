"""What `run` refuses, `plan` and `submit` refuse with its line and status 2, once a job's data are parsed or a moment's work; and
they refuse nothing else."""

import random

import pytest

from mpi_compress.cli.main import main

SETS = {
    "sound": "1 1:1 3:0.5\n-1 2:1\n1 1:0.5 2:2\n-1 3:1\n1 2:0.25\n-1 1:1 2:1\n" * 4,
    "one-class": "1 1:1\n1 2:1\n" * 9,
    "three-classes": "1 1:1\n2 2:1\n3 1:1 2:1\n" * 6,
    "no-features": "1\n-1\n" * 8,
    "all-zero": "1 1:0\n-1 2:0\n" * 8,
    "huge": "1 1:1e308\n-1 2:1e308\n" * 6,
    "tiny": "1 1:1e-310\n-1 2:1e-310\n" * 6,
    "one-sample": "1 1:1\n",
    "two-columns": "1 1:1\n-1 2:1\n" * 8,
    "reals": "0.5 1:1\n-2.25 2:1\n1e300 1:1 2:1\n" * 6,
}
DATA = [*(f'path = "{name}"' for name in SETS), *['path = "sound"'] * 12, 'path = "sound"\nrows = 2', 'path = "three-classes"\npositive = [3]',
        'path = "sound"\npositive = [7]', 'path = "sound"\ndim = 2', 'path = "sound"\nnormalize = "rows"', 'path = "all-zero"\nnormalize = "rows"',
        'generator = "gspar"\nsamples = 30\ndim = 6', 'generator = "gspar"\nsamples = 1\ndim = 6']  # fmt: skip
OBJECTIVES = ["", "", "", 'mu = "1e-2 L"', 'mu = "1/(L-L)"', "mu = -1", 'loss = "hinge"', 'loss = "hinge"\nmu = 0.1', 'loss = "least-squares"',
              'model = { name = "softmax" }', 'f_star = "skip"', "smoothness = 3.2", 'mu = "kappa"', 'penalty = { name = "l1", weight = 0.1 }',
              'penalty = { name = "ratio", weight = "0.1 L" }']  # fmt: skip
WORKERS = ["count = 2", "count = 3", "count = 1", "count = 1000", 'count = 4\npartition = { name = "dirichlet", alpha = 0.01, least = 2 }',
           'count = 6\npartition = "by-label"', "count = 4\nparticipate = 0.5", 'count = 2\npartition = { name = "dirichlet", alpha = 1e-9, least = 90 }',
           "count = 2\nparticipate = 5"]  # fmt: skip
ALGORITHMS = ['name = "gd"', 'name = "gd"\nstep = "1/(L-L)"', 'name = "gd"\nstep = "1/L_max"', 'name = "ef21"', 'name = "diana"', 'name = "marina"',
              'name = "adiana"', 'name = "svrg"\nbatch = 500', 'name = "sgd"\nbatch = 99\nstep = 0.1', 'name = "cat"', 'name = "fednl"', 'name = "bfgs"',
              'name = "ef"\nstep = 0.1\nserver = { name = "l-bfgs" }', 'name = "ef21"\nstep = 0.1\nserver = { name = "l-bfgs" }', 'name = "gd"\nstep = "1/mu"',
              'name = "ship-data"', 'name = "iade"', 'name = "ef-gdstar"', 'name = "gd"\nstep = "g0"', 'name = "sparse-loco"',
              'name = "async-sgd"\nstep = 0.1']  # fmt: skip
UPS = ["", "", 'compressor = { name = "top-k", k = 2 }', 'compressor = { name = "top-k", k = 9 }', 'compressor = { name = "random-k", k = 1 }',
       'compressor = { name = "qsgd", levels = 4 }', 'compressor = { name = "hard-threshold", accuracy = 1e-3 }', 'compressor = { name = "top-k" }\nbudget = "cat"',
       'compressor = { name = "perm-k" }', 'compressor = "natural"\ncodec = { float = 16 }', 'compressor = { name = "low-rank", rank = 1 }',
       'compressor = { name = "unisp", kappa = 0.5 }']  # fmt: skip
STARTS = ["", "", "", "", 'at = "optimum"', 'at = "random"\nscale = 1.0', "offset = 1e300"]
STOPS = [
    "rounds = 1",
    "rounds = 1",
    "rounds = 1",
    "rounds = 1\nsuboptimality = 1e-3",
    "rounds = 1\ndistance = 0.1",
    "rounds = 1\ncost_up = 100",
]


def odd_job(number: int) -> str:
    """A job whose tables are sound by half, and else odd."""
    draw = random.Random(number)

    def one_of(values: list[str]) -> str:
        return values[0] if draw.random() < 0.55 else draw.choice(values)

    tables = {"data": DATA, "objective": OBJECTIVES, "workers": WORKERS, "start": STARTS, "stop": STOPS}
    text = "".join(f"[{key}]\n{one_of(values)}\n" for key, values in tables.items())
    for label in ("one", "two")[: draw.choice([1, 1, 2])]:
        text += f'[[run]]\nlabel = "{label}"\n[run.algorithm]\n{one_of(ALGORITHMS)}\n[run.up]\n{one_of(UPS)}\n'
    return text


def ended(capsys, *line: str) -> tuple[int, str]:
    """The status of a command, and what it refuses."""
    status = main([*line])
    said = [one for one in capsys.readouterr().err.splitlines() if one.startswith("mpi-compress: ")]
    return status, said[-1] if status == 2 else ""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    for name, text in SETS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("number", [*range(0, 40, 10), *(pytest.param(number, marks=pytest.mark.slow) for number in range(40, 100, 10))])
def test_ten_odd_jobs_are_refused_alike_by_plan_submit_and_run(number, folder, capsys):
    refused = 0
    for n in range(number, number + 10):
        (folder / "odd.toml").write_text(odd_job(n))
        found = {
            verb: ended(capsys, verb, "odd.toml", *more)
            for verb, more in (("plan", []), ("submit", ["--dry-run"]), ("run", ["--quiet"]))
        }
        assert found["plan"] == (found["run"] if found["run"][0] == 2 else (0, "")), (n, odd_job(n))
        assert found["submit"] == found["plan"], (n, odd_job(n))
        refused += found["run"][0] == 2
    assert refused > 0


def test_a_plan_says_what_it_could_not_check(folder, capsys):
    (folder / "odd.toml").write_text(
        'data = { generator = "gspar", samples = 100000, dim = 100 }\nalgorithm = { name = "gd", step = "1/(L-L)" }\nstop.rounds = 1\n'
    )
    assert main(["plan", "odd.toml"]) == 0
    assert "data: gspar: what its labels, its values or L decide is not checked yet" in capsys.readouterr().out


@pytest.mark.parametrize(("tables", "says"), [
    ('name = "diana"|compressor = { name = "top-k", k = 2 }', "diana needs an unbiased compressor up: natural or random-k would do, or ef21 with"),
    ('name = "diana"\nalpha = "1/(1 + omega)"\nstep = "omega/L"|compressor = { name = "top-k", k = 2 }', "step = 'omega/L' needs the ω of a bounded"),
    ('name = "ef"\nstep = 0.1\nserver = { name = "l-bfgs" }|compressor = "natural"', "the direction of ef is no gradient"),
    ('name = "sparse-loco"\nserver = { name = "l-bfgs" }\nstep = 0.1|compressor = { name = "top-k", k = 1 }', "the direction of sparse-loco is no gradient"),
])  # fmt: skip
def test_a_refusal_speaks_of_what_the_user_wrote(tables, says, folder, capsys):
    algorithm, up = tables.split("|")
    (folder / "odd.toml").write_text(
        f'data.path = "sound"\nobjective.mu = 0.1\nstop.rounds = 1\n[algorithm]\n{algorithm}\n[up]\n{up}\n'
    )
    assert says in ended(capsys, "run", "odd.toml", "--quiet")[1]
    assert says in ended(capsys, "plan", "odd.toml")[1]
