"""Keys that jobs had once: one line says that they were removed, and what to write instead."""

import pytest
from helpers.refusals import naming

import mpi_compress as mc

GONE = {
    "workers.fold": ({"workers": {"count": 2, "fold": "tree"}}, "worker order"),
    "workers.robust": ({"workers": {"count": 2, "robust": "median"}}, "def answer(self, ups)"),
    "workers.byzantine": ({"workers": {"count": 2, "byzantine": {"count": 1, "attack": "ipm"}}}, "t.who"),
    "tune.merit": ({"tune": {"parameter": "algorithm.step", "values": [1, 2], "merit": "loss"}}, "name a target"),
    "objective.clip_rows": ({"objective": {"clip_rows": {"norm": 1.0}}}, '"clip"'),
}


@pytest.mark.parametrize("key", GONE)
def test_a_key_that_left_says_what_to_write_instead(key):
    tables, instead = GONE[key]
    job = {"data": {"generator": "gspar"}, "algorithm": {"name": "gd"}, "stop": {"rounds": 2}, **tables}
    with pytest.raises(mc.UserError, match=naming(f"{key}: was removed {instead}")):
        mc.load_job(job)
