"""The table of wrong inputs: what is changed in a job that runs, or in its data, and what the one line must say."""

import gzip
import lzma
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py

GOOD_DATA = "".join(f"{1 - 2 * (i % 2)} {i % 4 + 1}:{i + 1}.5 {i % 4 + 5}:1\n" for i in range(12))
GOOD_JOB: dict[str, Any] = {
    "data.path": "data", "workers.count": 3, "algorithm.name": "gd", "up.compressor": {"name": "top-k", "k": 2}, "stop.rounds": 3,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A wrong input."""

    name: str
    says: str  # words of the line, in their order
    job: dict[str, Any] = field(default_factory=dict)  # dotted keys put into the job
    data: str | bytes | None = None  # the data file
    file: str = "data"
    text: str | None = None  # the whole job file
    more: dict[str, bytes] = field(default_factory=dict)  # further files
    folder: str = ""  # a folder to make
    out: str = "results"

    def write(self, place: Path) -> Path:
        """The job file, and all that it names, in a folder of their own."""
        place.mkdir(parents=True)
        content = GOOD_DATA if self.data is None else self.data
        (place / self.file).write_bytes(content.encode() if isinstance(content, str) else content)
        for name, more in self.more.items():
            (place / name).write_bytes(more)
        if self.folder:
            (place / self.folder).mkdir()
        keys = {**GOOD_JOB, **({"data.path": self.file} if self.file != "data" else {}), **self.job}
        job = place / "job.toml"
        job.write_text(
            self.text if self.text is not None else "\n".join(f"{k} = {_toml(v)}" for k, v in keys.items() if v is not None)
        )
        return job


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def line(name: str, says: str, bad: str, **keys: Any) -> Case:
    """A malformed fourth line after three that are right; the error must name it."""
    return Case(name, f"data:4: {says}", data=f"1 1:1\n-1 2:1\n\n{bad}\n1 1:1\n", **keys)


def _other_result() -> bytes:
    from io import BytesIO

    file = BytesIO()
    with h5py.File(file, "w") as h5:
        h5.attrs["format"] = "another/7"
    return file.getvalue()


XZ, GZ = (pack(GOOD_DATA.encode() * 50) for pack in (lzma.compress, gzip.compress))
HINGE = {"objective.loss": "hinge", "objective.mu": 0.1}

CASES = [
    # --- the data file
    Case("missing file", "data.path: there is no file 'nowhere'", {"data.path": "nowhere"}),
    Case("missing set", "data.name: no set 'nowhere' mpi-compress data get NAME", {"data.path": None, "data.name": "nowhere"}),
    Case("folder for a file", "data.path: here is a folder; a file of LIBSVM text is required", {"data.path": "here"}, folder="here"),
    Case("set's name is a path", 'data.name: write path = "a/b"', {"data.path": None, "data.name": "a/b"}),
    line("no number for a label", "'one' was given for a label", "one 1:1"),
    line("no index:value", "2 index:value", "1 1:1 2"),
    line("no whole index", "'1.5:2' is no index:value", "1 1.5:2"),
    line("repeated index", "index 3 twice; indices must increase", "1 3:1 3:2"),
    line("decreasing index", "index 2 after 3; indices must increase", "1 3:1 2:2"),
    line("negative index", "-4 1", "1 -4:1 2:2"),
    line("nan label", "nan", "nan 1:1"),
    line("nan value", "nan 2", "1 1:1 2:nan"),
    line("value that overflows", "1e999 1", "1 1:1e999"),
    line("underscore in a label", "1_0", "1_0 1:1"),
    Case("values whose squares overflow", "so large that their squares overflow", data="1 1:1e200\n-1 2:1e200\n1 1:2\n"),
    line("index above d", "index 9 is above d = 8", "1 9:1", job={"data.dim": 8}),
    line("index above 2^64", "index 99999999999999999999 is above 2147483647", "1 99999999999999999999:1"),
    line("bytes that are no text", "index:value", "1 \x00\x01"),
    Case("empty file", "data holds no samples", data=""),
    Case("comments alone", "data", data="# nothing\n\n# here\n"),
    Case("no features", "data has no features", data="1\n-1\n1\n"),
    Case("all zero", "all samples are zero", data="1 1:0\n-1 2:0\n1 1:0\n"),
    Case("one class", "label 1; two are needed", data="1 1:1\n1 2:1\n1 3:1\n"),
    Case("three classes", "has 3 labels, 0, 1, 2; 2 is that of 1 row, at first in row 3; say which count as +1: positive = [1, …]", data="0 1:1\n1 2:1\n2 1:1\n0 1:1\n1 1:2\n"),
    Case("positive label that is not there", "data.positive: data has no label 7; it has -1, 1", {"data.positive": [7.0]}),
    Case("all labels positive", "data.positive: all labels", {"data.positive": [1.0, -1.0]}),
    Case("value too large for float32", "1e+300, too large for float32", {"data.dtype": "float32"}, data="1 1:1e300\n-1 2:1\n1 1:1\n"),
    Case("truncated xz", "data.xz", data=XZ[:-20], file="data.xz"),
    Case("corrupt xz", "data.xz", data=XZ[:60] + b"\xff\xff" + XZ[62:], file="data.xz"),
    Case("truncated gz", "data.gz", data=GZ[:-12], file="data.gz"),
    Case("corrupt gz", "data.gz", data=GZ[:40] + b"\xff\xff" + GZ[42:], file="data.gz"),
    Case("malformed line in an xz", "data.xz:3: ", data=lzma.compress(b"1 1:1\n-1 1:1\nx\n"), file="data.xz"),
    Case("misspelt set", "data.name: no set 'gisete' ; did you mean 'gisette'?", {"data.path": None, "data.name": "gisete"}),
    Case("missing test set", "data.test: no set 'nowhere'", {"data.test": "nowhere"}),
    Case("test set with a stray label", "3 -1 1", {"data.test": "t"}, more={"t": b"3 1:1\n"}),
    Case("test set with a malformed line", "t:2: 'x' was given", {"data.test": "t"}, more={"t": b"1 1:1\nx\n"}),
    Case("test set with an index above d", "t:1: index 99 is above d = 8", {"data.test": "t"}, more={"t": b"1 99:1\n"}),
    Case("empty test set", "set t", {"data.test": "t"}, more={"t": b"\n"}),
    # --- the job file
    Case("broken TOML", "job.toml 1", text="data = = 3"),
    Case("formula that divides by zero", "job.toml: algorithm: '1/(n-3)' divides by zero", {"algorithm.step": "1/(n-3)"}),
    Case("formula with an unknown name", "lambda_max", {"algorithm.step": "1/lambda_max"}),
    Case("more workers than samples", "workers.count 13 12", {"workers.count": 13}),
    Case("k above d", "k 9 d 8", {"up.compressor": {"name": "top-k", "k": 9}}),
    Case("negative mu", "objective.mu: -0.1 is negative; it must be 0 or more", {"objective.mu": -0.1}),
    Case("infinite mu", "objective.mu inf", {"objective.mu": float("inf")}),
    Case("negative lambda2", "objective.lambda2: -1 is negative", {"objective.lambda2": -1}),
    Case("1/L where there is no L", "algorithm.step: '1/L' needs L, and the hinge loss is not smooth", HINGE),
    Case("mu in L where there is no L", "objective.mu: '1e-4 L' needs L", {**HINGE, "objective.mu": "1e-4 L"}),
    Case("x* where there is none", "x* cannot be computed", {"objective.loss": "hinge", "algorithm.step": 1, "start.at": "optimum"}),
    Case("codec that cannot write it", "'dense' cannot write what 'top-k' makes; these can: ", {"up.codec": "dense"}),
    Case("results cannot be written", "file/job: results cannot be written there", more={"file": b""}, out="file"),
    Case("one run twice", "is there twice, label and all settings equal; give it another label", {"grid.seed": [1, 1]}),
    Case("generated set beyond memory", "needs about GiB of memory", {"data.path": None, "data.generator": "gspar", "data.samples": 10**12}),
    Case("start from another format", "o.h5 mpi-compress/1 another/7", {"start.at": "o.h5"}, more={"o.h5": _other_result()}),
    Case("start from no HDF5", "o.h5 HDF5", {"start.at": "o.h5"}, more={"o.h5": b"text"}),
    Case("a figure's level of what grows", "figure to seconds 3.0", {"figure.to": {"seconds": 3.0}}),
    Case("start from a missing file", "o.h5", {"start.at": "o.h5"}),
]  # fmt: skip
