"""`mpi-compress check-part NAME`"""

from argparse import Namespace

from mpi_compress.cli.parsing import key_values
from mpi_compress.core.terminal import say
from mpi_compress.engine.checking import findings_by_name, findings_in_job
from mpi_compress.job.loading import load_job


def act(options: Namespace) -> int:
    parameters = key_values(options.parameters)
    if options.job is None:
        found = findings_by_name(options.name, parameters, options.theorem)
    else:
        found = findings_in_job(options.name, load_job(options.job), parameters, options.theorem)
    for where, findings in found.items():
        say(f"{options.name} ({where}):")
        say(*(f"  {each}{f' [{each.by}]' * options.verbose}" for each in findings))
    return 0 if all(each.holds for findings in found.values() for each in findings) else 1
