"""The scorecard counts sentences: each once, whatever the number of claims that look at it."""

from pathlib import Path

import pytest

from mpi_compress.evidence.outcomes import Outcome, counted
from mpi_compress.evidence.sentences import scorecard
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.job.claims import claims_of
from mpi_compress.job.tables import Claim

GOOD, BAD, NONE = [1.0], [9.0], []
OPEN = [1.0, 1.0, 1.0, 9.0, 9.0]


def of(values, words="it is so", basis="paper"):
    untested = "it was cut off" if values == "cut" else ""
    return Verdict(Claim("X-1", "so", "1", "<= 2", basis, words), GOOD if untested else values, untested=untested)


def outcome(name, verdicts):
    return Outcome(Path(f"{name}.toml"), name, "", None, verdicts=verdicts)


@pytest.mark.parametrize(("rows", "word", "verdict"), [
    ([GOOD, GOOD], "holds", "holds"), ([GOOD, BAD, GOOD], "holds in part", "holds in 2 of 3 cases"), ([BAD, BAD], "does not hold", "does not hold"),
    ([GOOD, OPEN], "holds in part", "holds in 1 of 2 cases"), ([OPEN, BAD], "does not hold", "does not hold"), ([OPEN], "undecided", "undecided"),
    (["cut", NONE], "not tested", "not tested"), ([NONE], "not run", "not run"), ([GOOD, "cut"], "holds", "holds, 1 of 2 cases not tested"),
    ([GOOD, BAD, NONE], "holds in part", "holds in 1 of 2 cases, 1 of 3 cases not tested"),
])  # fmt: skip
def test_a_sentence_holds_if_all_of_its_tested_rows_do(rows, word, verdict):
    ((sentence,),) = scorecard([outcome("a", [of(values) for values in rows])]).values()
    assert (sentence.outcome, sentence.verdict) == (word, verdict)


def test_a_sentence_counts_once_over_jobs_and_once_in_each_group():
    found = scorecard([
        outcome("a", [of(GOOD), of(GOOD, "another"), of(BAD, basis="other data")]), outcome("b", [of(GOOD), of(BAD, "another")]),
    ])  # fmt: skip
    assert {group: counted(s.outcome for s in sentences) for group, sentences in found.items()} == {"paper": "1 of 2 holds, 1 holds in part", "elsewhere": "1 of 1 does not"}
    assert [(s.text, s.ids, len(s.cases)) for s in found["paper"]] == [("it is so", "X-1", 2), ("another", "X-1", 2)]


def test_the_points_of_a_grid_are_cases_of_one_sentence():
    table = {"id": "X", "basis": "paper", "says": "{k} are few", "value": "{k} * round('GD')", "holds": "> 0", "grid": {"k": [1, 2]}}
    assert [c.sentence for c in claims_of([table], ["GD"])] == ["X: 1 or 2 are few"] * 2
    verdicts = [Verdict(c, GOOD) for c in claims_of([table, {**table, "words": "few"}, {**table, "sentence": "few"}], ["GD"])]
    ((first, second),) = scorecard([outcome("a", verdicts)]).values()
    assert (len(first.cases), first.text, len(second.cases), second.text) == (2, "X: 1 or 2 are few", 4, "few")
