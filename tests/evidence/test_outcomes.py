"""Outcomes by hand: where the data of a job come from, and what became of its runs."""

from pathlib import Path

import pytest

from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.job.loading import parse_job
from mpi_compress.job.tables import Claim

GENERATED, FILE, STAND_IN = (
    {"generator": "gspar"}, {"path": "a.svm"}, {"generator": "gspar", "stand_in_for": "gisette"}
)  # fmt: skip


def outcome(*data):
    """A job that was not run, of a run on each of these data."""
    runs = [{"label": f"run {i}", "data": each} for i, each in enumerate(data)]
    tables = {"objective": {"mu": 0.1}, "workers": {"count": 2}, "algorithm": {"name": "gd"}, "stop": {"rounds": 3}, "run": runs}
    return Outcome(Path("job.toml"), "job", "", parse_job(tables, "job", Path(), {}))


@pytest.mark.parametrize(("data", "kind"), [
    ([GENERATED], "generated"), ([FILE], "real"), ([STAND_IN], "substitute"), ([FILE, FILE], "real"), ([GENERATED, FILE], "generated"),
    ([FILE, GENERATED], "generated"), ([FILE, STAND_IN], "substitute"),
])  # fmt: skip
def test_one_run_on_generated_data_makes_a_job_one_of_generated_data(data, kind):
    assert outcome(*data).kind == kind


def test_what_was_not_run_says_why_where_that_is_known():
    found = outcome(GENERATED)
    assert found.status == "not run"
    assert Outcome(found.file, "job", "", found.job, problem="no such file").status == "not run: no such file"
    assert Outcome(found.file, "job", "", None, problem="broken").kind == ""
    assert (found.counted, found.title) == ("–", "job")


@pytest.mark.parametrize(("data", "basis", "group"), [
    (GENERATED, "paper", "paper"), (FILE, "paper", "paper"), (STAND_IN, "paper", "elsewhere"), (FILE, "other data", "elsewhere"),
    (STAND_IN, "ours", "ours"), (FILE, "ours", "ours"),
])  # fmt: skip
def test_a_paper_s_claim_on_a_stand_in_or_on_other_data_is_not_in_the_paper_s_setting(data, basis, group):
    claim = Claim("1", "says", "loss('run 0')", "> 0", basis)
    assert outcome(data).group(Verdict(claim, [1.0])) == group
