"""The table of `claims_mutants.py` goes with the jobs, and no sentence of a paper is left out of it in silence."""

import tomllib
from fnmatch import fnmatch

import claims_mutants


def test_every_mutant_can_be_made_and_its_sentences_are_there():
    assert list(claims_mutants.invalid()) == []


def test_each_sentence_of_a_paper_has_a_mutant_or_a_reason_why_it_has_none():
    killed = [part for mutant in claims_mutants.MUTANTS for part in mutant.kills]
    reasons = dict.fromkeys(claims_mutants.WITHOUT, 0)
    for file in claims_mutants.JOBS.rglob("*.toml"):
        job = file.relative_to(claims_mutants.JOBS).with_suffix("").as_posix()
        for claim in tomllib.loads(file.read_text()).get("claim", []):
            text = claim.get("words") or f"{claim['id']}: {claim['says']}"
            if claim.get("basis") == "ours" or any(part in text for part in killed):
                continue
            found = [key for key in reasons if key in text or fnmatch(job, key)]
            assert found, f"{job}: {text} has no mutant, and no reason in WITHOUT"
            reasons.update(dict.fromkeys(found, 1))
    assert all(reasons.values()), f"these reasons are about nothing: {[key for key, used in reasons.items() if not used]}"


def test_a_sentence_is_killed_where_it_holds_of_the_method_and_not_of_the_mutant():
    assert claims_mutants.seen("holds", "does not hold")
    assert claims_mutants.seen("holds", "holds in 1 of 2 rows")
    assert claims_mutants.seen("holds, 1 of 3 rows not tested", "undecided")
    assert not claims_mutants.seen("holds", "holds, 1 of 3 rows not tested")
    assert not claims_mutants.seen("holds in 1 of 2 rows", "does not hold")
