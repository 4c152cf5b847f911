"""A refusal is recognised by what it names: its wording is compared once, where it is made."""

import re

from mpi_compress.cli.main import main


def naming(words: str) -> str:
    """The pattern of one line that has these words, separated by spaces, in this order, with anything between them."""
    bounded = (rf"(?<!\w){re.escape(w)}(?!\w)" if w[0].isalnum() and w[-1].isalnum() else re.escape(w) for w in words.split())
    return r"\A[^\n]*" + r"[^\n]*".join(bounded) + r"[^\n]*\Z"


def refused(arguments, captured, words: str = "") -> str:
    """The line with which a command ends: it is all that is printed but the data, it has these words, and the status is 2."""
    captured.readouterr()  # what was printed before
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as ended:  # argparse's
        status = ended.code
    told = captured.readouterr()
    assert (status, told.out) == (2, ""), told
    (line,) = (line for line in told.err.splitlines() if not line.startswith("data: "))
    assert line.startswith("mpi-compress")
    assert re.search(naming(words), line), (words, line)
    return line
