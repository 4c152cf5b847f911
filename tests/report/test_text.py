"""The page of tables in Markdown."""

from mpi_compress.evidence.sentences import Sentence
from mpi_compress.evidence.verdicts import Verdict
from mpi_compress.job.tables import Claim
from mpi_compress.report.text import _numbers


def test_a_sentence_has_its_least_and_its_largest_case_also_where_one_has_no_value():
    def ours(*values):
        verdicts = [Verdict(Claim("X", "so it is", "1", "> 1", unit="× bits"), [value]) for value in values]
        return [*_numbers(Sentence("so it is", "ours", [(None, verdict) for verdict in verdicts]))][1]

    assert ours(0.01177, 6e-16) == "< 10⁻⁶ … 0.01177"
    assert ours(2.0, float("inf"), 3.0) == "2 … 3; no value (the target is missed)"
    assert (ours(2.0), ours(float("inf")), ours()) == ("2", "no value (the target is missed)", "–")


def test_a_bound_of_a_case_that_was_cut_off_is_no_end_of_what_the_others_found():
    found = Verdict(Claim("X", "so it is", "1", "> 1"), [2.0])
    cut = Verdict(Claim("X", "so it is", "1", "> 1"), [0.5], untested="'A' was cut off")
    assert [*_numbers(Sentence("so it is", "paper", [(None, found), (None, cut)]))][1] == "2"
    assert [*_numbers(Sentence("so it is", "paper", [(None, cut)]))][1] == cut.ours
