"""What the hard-threshold paper's code counts, and what crosses: python docs/deep_bits.py RESULT.h5 … (results of jobs/deep).

It prints the table of docs/bits.md, one for each job, seeds in the median.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import mpi_compress as mc
from mpi_compress.results.reader import Run

HEAD = "| run | seeds | density | padding counted | their count | without padding | sent | their count / sent |"


def numbers(run: Run) -> tuple[float, ...]:
    """Densities and bits of a run, as the columns of the table."""
    padded, elements, sent = (float(run.trace[name][-1]) for name in ("bits_padded", "elements_up", "wire_bits_up"))
    whole = run.column("average_density")[-1] == 1.0
    unpadded = (32 if whole else 64) * elements
    densities = tuple(float(run.column(name)[-1]) for name in ("average_density", "padded_density"))
    return (*(densities if not whole else (1.0, 1.0)), padded, unpadded, sent, padded / sent)


def rows(runs: Sequence[Run]) -> Iterator[str]:
    """A line for each label, in the order of the files' names."""
    for label in dict.fromkeys(run.label for run in runs):
        of_label = [numbers(run) for run in runs if run.label == label]
        mean = [median(column) for column in zip(*of_label, strict=True)]
        shares = " | ".join(f"{share:.3%}" for share in mean[:2])
        yield f"| {label} | {len(of_label)} | {shares} | " + " | ".join(f"{bits:.4g}" for bits in mean[2:5]) + f" | {mean[5]:.2f} |"


def main(files: Sequence[str]) -> None:
    for folder in dict.fromkeys(Path(file).parent for file in files):
        runs = [mc.read(Path(file)) for file in files if Path(file).parent == folder]
        done = [run for run in runs if run.status == "complete" and "bits_padded" in run.trace]
        if not done:
            continue
        first = done[0].attrs
        print(f"## {folder.name}: {first['data']}, d = {first['dim']:,}, {first['n_workers']} workers, {done[0].trace['round'][-1]} rounds\n")
        print(HEAD, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", *rows(done), sep="\n")
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
