"""What `import mpi_compress as mc` gives, and how little it imports."""

import subprocess
import sys
from importlib import import_module, metadata

import pytest

import mpi_compress as mc

NAMES = {
    "Algorithm", "Codec", "Compressed", "Compressor", "CorruptMessage", "CostModel", "Dense", "Generator", "Job", "Round", "Run",
    "Sparse", "UserError", "algorithms", "codecs", "compressors", "costs", "datasets", "load_job", "plot", "read", "run",
    "Batches", "Coder", "Drawn", "Hybrid", "Lattice", "Levels", "Link", "Loss", "Message", "Metric", "Model", "Partition", "Penalty",
    "SignSparse", "Step", "Ternary", "WithScalar", "coder", "generators", "kinds", "load", "losses", "metrics", "models", "partitions",
    "penalties", "step_at",
}  # fmt: skip
HEAVY = ("numba", "scipy", "numpy", "h5py", "mpi4py", "matplotlib", "importlib.metadata")


def in_a_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_all_names_are_there():
    assert set(mc.__all__) >= NAMES
    assert set(mc.__all__) <= set(dir(mc))
    for name in mc.__all__:
        assert getattr(mc, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mc.nothing  # noqa: B018


def test_the_version_is_the_installed_one():
    assert mc.__version__ == metadata.version("mpi-compress")


def test_a_star_import_brings_the_names():
    assert in_a_new_process("from mpi_compress import *\nprint(run.__name__, Sparse.__name__, codecs.__name__)").split() == [
        "run", "Sparse", "mpi_compress.messages.codecs",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["algorithms", "messages.codecs", "messages.compressors", "messages.costs", "problem.datasets", "problem.partitions"])
def test_a_room_of_parts_is_the_module_of_that_name(name):
    assert getattr(mc, name.rpartition(".")[2]) is import_module(f"mpi_compress.{name}")


@pytest.mark.parametrize(("room", "part"), [
    ("algorithms", "ef"), ("compressors", "top-k"), ("codecs", "rice"), ("costs", "packet"), ("losses", "logistic"),
    ("models", "softmax"), ("penalties", "l2"), ("partitions", "shuffled"), ("metrics", "accuracy"), ("generators", "gspar"),
    ("datasets", "gspar"),
])  # fmt: skip
def test_a_room_of_parts_is_a_mapping_as_its_registry_is(room, part):
    parts = getattr(mc, room)
    assert parts[part].name == part
    assert part in parts
    assert "nothing" not in parts
    assert (parts.get(part), parts.get("nothing")) == (parts[part], None)
    assert list(parts) == sorted(parts.keys())
    assert len(parts) == len(list(parts)) == len(dict(parts))
    assert parts == parts
    assert callable(parts.register)
    with pytest.raises(KeyError, match=f"called '{part}x'; did you mean '{part}'"):
        parts[part + "x"]


def test_the_first_use_of_a_name_imports_it_whatever_was_imported_before():
    said = in_a_new_process("import mpi_compress.algorithms, mpi_compress as mc\nprint(mc.algorithms.algorithms['ef'], mc.load_job)")
    assert "EF" in said


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, mpi_compress\nassert mpi_compress.__all__\nprint(*sys.modules)"
    assert not set(HEAVY) & set(in_a_new_process(code).split())


@pytest.mark.parametrize("line", [["--help"], ["--version"], ["wrong"], ["run"], ["run", "--help"], ["data", "--help"]], ids=" ".join)
def test_help_the_version_and_a_wrong_command_import_nothing_heavy(line):
    code = (
        f"import sys\nfrom mpi_compress.__main__ import main\ntry:\n main({line})\nexcept SystemExit:\n pass\nprint()\nprint(*sys.modules)"
    )
    imported = set(in_a_new_process(code).splitlines()[-1].split())
    assert "mpi_compress.cli.main" in imported
    assert not set(HEAVY[:-1]) & imported


def test_what_is_done_is_seen_without_numba_and_scipy(tmp_path):
    job = {"data": {"generator": "gspar", "samples": 20, "dim": 6}, "objective": {"mu": "1e-2 L"}, "stop": {"rounds": 1}}
    job |= {"run": [{"label": "GD", "algorithm": {"name": "gd", "step": "1/L"}}]}
    assert mc.run(job, out=tmp_path)[0].status == "complete"
    code = "import sys, mpi_compress as mc\nruns = mc.run({!r}, out={!r}, quiet=False)\nprint(runs[0].label)\nprint(*sys.modules)"
    label, imported = in_a_new_process(code.format(job, str(tmp_path))).splitlines()
    assert label == "GD"
    assert not {"numba", "llvmlite", "scipy.sparse", "scipy.linalg", "matplotlib"} & set(imported.split())


def test_a_command_imports_no_other_command():
    code = "import sys\nfrom mpi_compress.__main__ import main\ntry:\n main(['show', 'none.h5'])\nfinally:\n print()\nprint(*sys.modules)"
    imported = in_a_new_process(code).splitlines()[-1].split()
    commands = {name for name in imported if name.startswith("mpi_compress.cli.")}
    assert commands == {"mpi_compress.cli.main", "mpi_compress.cli.arguments", "mpi_compress.cli.show"}
