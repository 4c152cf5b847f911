"""Parts are checked against what they state, and played in other ways: what passed in silence is named."""

import importlib
import random
import re

import numpy as np
import pytest
from helpers.running import command
from helpers.unseen_parts import ALGORITHMS, COMPRESSORS, DEPENDENT, HELPER, NAMED, REFUSED, WRONG, job_of_twelve

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.engine.checking import findings_in_job
from mpi_compress.engine.verifying import verify
from mpi_compress.guard.of_messages import usual

pytestmark = pytest.mark.usefixtures("registered_for_one_test_only")
BY_THEMSELVES = [
    (kind, name) for kind in ("compressors", "codecs", "costs", "losses", "penalties", "models") for name in getattr(mc, kind)
]
PARAMETERS = {"affine": {"c0": 8.0}, "packet": {"c1": 128.0, "c0": 8.0, "pmax": 128.0}, "trace": {"rows": [[0, "5 ms", "20 kbit/s"]]}}
IN_A_JOB = {"table", "quadratic", "matrix-factorisation", "gspar-cnn", "lstm", "ncf", "resnet-8", "resnet-18"}


@pytest.mark.slow  # 25 s of sampling; those of one kind each are checked below
@pytest.mark.parametrize(("kind", "name"), [each for each in BY_THEMSELVES if each[1] not in IN_A_JOB])
def test_the_packages_parts_are_what_they_state(kind, name):
    part = getattr(mc, kind)[name]
    assert mc.testing.check(part(**PARAMETERS[name]) if name in PARAMETERS else part)


@pytest.mark.parametrize("part", ["compressors random-k", "codecs rice", "costs wire", "losses huber", "penalties group", "penalties ratio"])
def test_a_part_of_each_kind_is_what_it_states(part):
    kind, name = part.split()
    assert mc.testing.check(getattr(mc, kind)[name])


def test_a_model_is_checked_on_the_data_of_a_job(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(
        'data = { generator = "tridiagonal", samples = 6 }\nobjective = { model = { name = "quadratic", dim = 9 } }\n'
        'stop = { rounds = 2 }\nalgorithm = { name = "ef21", step = 0.1 }\nup = { compressor = { name = "top-k", k = 2 } }\n'
    )
    for name in ("quadratic", "top-k", "ef21", "fixed"):
        found = findings_in_job(name, mc.load_job(job))
        assert [each for of_run in found.values() for each in of_run if not each.holds] == []
        assert all(found.values())
    with pytest.raises(UserError, match="no part in this job called 'top'; did you mean 'top-k'"):
        findings_in_job("top", mc.load_job(job))


@pytest.fixture
def wrong_parts(tmp_path, monkeypatch):
    (tmp_path / "wrong_parts.py").write_text(WRONG)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("wrong_parts")


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.usefixtures("wrong_parts")
def test_a_part_that_is_not_what_it_states_is_named(name):
    kinds = ("losses", "models", "compressors", "penalties", "codecs")
    (part,) = (getattr(mc, kind)[name] for kind in kinds if name in getattr(mc, kind))
    with pytest.raises(AssertionError, match=f"WRONG  {NAMED[name]}: "):
        mc.testing.check(part)


def test_a_check_draws_and_keeps_nothing():
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    mc.testing.check(usual(mc.compressors["random-k"]))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_the_command_ends_with_1_where_something_is_wrong(tmp_path):
    (tmp_path / "wrong_of_job.py").write_text(WRONG)
    job = tmp_path / "job.toml"
    job.write_text(
        'plugins = ["wrong_of_job"]\ndata = { generator = "gspar", samples = 40, dim = 12 }\nobjective = { mu = 0.1 }\n'
        'stop = { rounds = 2 }\nalgorithm = { name = "ef", step = 0.1 }\nup = { compressor = "wrong-delta" }\n'
    )
    said = command("check-part", "wrong-delta", "--job", job)
    assert said.returncode == 1
    assert "WRONG  δ: 0.9 is stated; of a vector of ones 0.166667 was found" in said.stdout


@pytest.fixture
def twelve(tmp_path):
    (tmp_path / "helper_of_twelve.py").write_text(HELPER)
    (tmp_path / "twelve.py").write_text(DEPENDENT)

    def of(*names):
        file = tmp_path / "job.toml"
        file.write_text(job_of_twelve(*names))
        return file

    return of


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_run_can_see_of_a_part_that_depends_on_the_layout_is_refused_with_its_line(name, twelve, tmp_path):
    with pytest.raises(UserError, match=REFUSED[name]) as caught:
        mc.run(mc.load_job(twelve((name,))), out=tmp_path)
    assert re.search(r"twelve\.py, line \d+", str(caught.value))


@pytest.mark.slow
def test_verification_names_each_of_twelve_parts_that_depend_on_the_layout_and_no_other(twelve):
    found = {each.label: each for each in verify(mc.load_job(twelve()))}
    assert found.pop("steady").holds
    assert set(found) == {*COMPRESSORS, *ALGORITHMS}
    for name, each in found.items():
        assert not each.holds, each
        assert f"it comes from {name} (" in each.text
    assert "message differs in round 5, played" in found["from-round-5"].text


def test_the_command_verifies_and_keeps_nothing(twelve, tmp_path):
    said = command("run", twelve(("steady", "hash-of-text")), "--verify", "4", "--out", tmp_path / "out", timeout=400)
    assert said.returncode == 1
    steady, other = said.stdout.splitlines()
    assert steady.startswith("steady: 4 rounds are the same with another PYTHONHASHSEED and the workers in the opposite order, on 3 ranks, on from")
    assert "worker 0's message differs in round 0, played with another PYTHONHASHSEED" in other
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_verification_says_that_there_is_no_mpiexec_and_takes_a_third_order(twelve, monkeypatch):
    monkeypatch.setattr("mpi_compress.engine.verifying._mpiexec", lambda: None)
    (steady,) = mc.verify(twelve(("steady",)), rounds=2)
    assert steady.holds
    assert "with the odd workers first, since there is no mpiexec here" in steady.text
