"""`mpi-compress data list | get | make | info | solve`: sets fetched, generated, described, and their optima computed."""

from mpi_compress.cli.parsing import Parser

COMMANDS = {
    "list": ("mpi_compress.cli.data.list", "the sets and generators there are, and where a set is found"),
    "get": ("mpi_compress.cli.data.get", "fetch sets of the LIBSVM collection into the user's cache folder"),
    "make": (
        "mpi_compress.cli.data.make",
        "generate a set now and keep it, as a job that names it would, or write it as LIBSVM text",
    ),
    "info": ("mpi_compress.cli.data.info", "what is in a file of LIBSVM text, or in a set"),
    "solve": ("mpi_compress.cli.data.solve", "L, x* and f* of a set, or of all problems of a job, computed and kept"),
}


def add_arguments(parser: Parser) -> None:
    parser.add_commands(COMMANDS, "list|get|…")
