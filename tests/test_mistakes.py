"""The table of `mistakes.py` goes with the source, so that it can be played at any time."""

import mistakes


def test_every_mistake_can_be_made_and_its_tests_are_there():
    assert list(mistakes.invalid()) == []


def test_there_are_100_in_all_rooms():
    rooms = {m.file.split("/")[0] for m in mistakes.MISTAKES}
    assert len(mistakes.MISTAKES) >= 100
    assert rooms >= {place.name for place in mistakes.PACKAGE.iterdir() if place.is_dir() and place.name != "__pycache__"}
    assert all(m.right != m.wrong for m in mistakes.MISTAKES)
