"""The command line: python -m mpi_compress."""

import sys

from mpi_compress.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
