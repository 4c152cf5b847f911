"""The table of `claims_mutants.py` goes with the source, and has a mutant for each sentence that is said to hold."""

from pathlib import Path

import claims_mutants

FIGURES = Path(__file__).parents[1] / "docs" / "figures.md"


def test_every_mutant_can_be_made_and_its_sentences_are_there():
    assert list(claims_mutants.invalid()) == []
