"""Ids of the runs of this project's jobs: as long as they stay, results that were kept are found.

An id changes with its experiment alone. Those of CAT's jobs on generated sets changed with rcv1-like and url-like, whose features are
as popular as in real rows since; those of HT fig. 1 and 7 with their five seeds; those of GSpar fig. 3 with its codec and its κ; those of
GSpar fig. 1 and of its residuals with their steps; those of jobs/literature with the grids of their steps, of one-number with the
seeds that tune it, and of Nesterov in local-steps with its floats of 64 bits; those of jobs/records with their protocol; and those of
sending the data there with its candidates.
"""

import pytest
from fixtures import places, played

STORED = places.load(places.RUN_IDS)


@pytest.fixture(scope="module")
def here():
    """The ids of all runs whose data are here."""
    return played.run_ids()


@pytest.mark.parametrize("job", STORED)
def test_runs_keep_their_ids(job, here):
    assert set(STORED[job]) <= set(here[job])
    same_data = [run for run, was in STORED[job].items() if here[job][run][1:] == was[1:]]
    assert {run: here[job][run][0] for run in same_data} == {run: STORED[job][run][0] for run in same_data}
    if not same_data:
        pytest.skip("the data that these runs are of are not here, or are kept in other files")
