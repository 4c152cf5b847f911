"""The list of the papers' figures and tables is whole, and its jobs are there."""

import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
WHOLE = {
    "CAT": {"fig. 1", "fig. 2", "fig. 3, left", "fig. 3, middle", "fig. 3, right", "table 1"},
    "HT": {*(f"fig. {i}" for i in range(1, 14)), *(f"table {i}" for i in range(1, 8))},
    "GSpar": {f"fig. {i}" for i in range(1, 6)},
    "AIADE": {"table 1"},
}
STATUSES = {"reproduced", "other data", "not yet", "not possible here"}


def rows():
    lines = (DOCS / "reproduces.md").read_text().partition("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")][2:]


def test_every_figure_and_table_of_the_papers_is_in_the_list_once():
    listed = [(paper, what) for paper, what, *_ in rows()]
    assert sorted(listed) == sorted((paper, what) for paper, each in WHOLE.items() for what in each)


def test_each_has_a_status_and_a_job_or_a_reason():
    for paper, what, status, reason in rows():
        jobs = re.findall(r"\(\.\./(jobs/[\w/-]+\.toml)\)", reason)
        assert status in STATUSES, (paper, what)
        assert bool(jobs) == (status != "not yet"), (paper, what)
        assert reason
        for job in jobs:
            assert tomllib.loads((DOCS.parent / job).read_text())["paper"].startswith(paper)
