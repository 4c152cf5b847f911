"""The table of wrong inputs: what is changed in a job that runs, or in its data, and what the one line must say."""

import bz2
import gzip
import lzma
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py

GOOD_DATA = "".join(f"{1 - 2 * (i % 2)} {i % 4 + 1}:{i + 1}.5 {i % 4 + 5}:1\n" for i in range(12))
GOOD_JOB: dict[str, Any] = {
    "data.path": "data",
    "workers.count": 3,
    "algorithm.name": "gd",
    "up.compressor": {"name": "top-k", "k": 2},
    "stop.rounds": 3,
}


@dataclass(frozen=True)
class Case:
    """A wrong input."""

    name: str
    says: str  # a regular expression for the line
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
    return Case(name, rf"data:4: .*{says}", data=f"1 1:1\n-1 2:1\n\n{bad}\n1 1:1\n", **keys)


def _other_result() -> bytes:
    from io import BytesIO

    file = BytesIO()
    with h5py.File(file, "w") as h5:
        h5.attrs["format"] = "another/7"
    return file.getvalue()


XZ, GZ, BZ2 = (pack(GOOD_DATA.encode() * 50) for pack in (lzma.compress, gzip.compress, bz2.compress))
HINGE = {"objective.loss": "hinge", "objective.mu": 0.1}

CASES = [
    # --- the data file
    Case("missing file", r"data\.path: there is no file 'nowhere'", {"data.path": "nowhere"}),
    Case("missing set", r"data\.name: no set 'nowhere' .*mpi-compress data get nowhere", {"data.path": None, "data.name": "nowhere"}),
    Case("folder for a file", r"data\.path: .*here is a folder; a file of LIBSVM text is wanted", {"data.path": "here"}, folder="here"),
    Case("set's name is a path", r'data\.name: .* write path = "a/b"', {"data.path": None, "data.name": "a/b"}),
    line("no number for a label", r"'one' was given for a label", "one 1:1"),
    line("no index:value", r"'2' is no index:value", "1 1:1 2"),
    line("no value", r"'2:' is no index:value", "1 1:1 2:"),
    line("no whole index", r"'1.5:2' is no index:value", "1 1.5:2"),
    line("missing label", r"'1:1' was given for a label", "1:1 2:1"),
    line("repeated index", r"index 3 twice; indices must increase", "1 3:1 3:2"),
    line("decreasing index", r"index 2 after 3; indices must increase", "1 3:1 2:2"),
    line("zero index", r"index 0; indices start at 1; docs/own-data.md converts", "1 0:1 2:2"),
    line("negative index", r"index -4; indices start at 1", "1 -4:1 2:2"),
    line("nan label", r"label 'nan' is not a finite number", "nan 1:1"),
    line("infinite label", r"label '-inf' is not a finite number", "-inf 1:1"),
    line("nan value", r"value 'nan' of index 2 is not a finite number", "1 1:1 2:nan"),
    line("infinite value", r"value 'inf' of index 1 is not a finite number", "1 1:inf"),
    line("value that overflows", r"value '1e999' of index 1 is not a finite number", "1 1:1e999"),
    line("underscore in a value", r"'1:1_0' is no index:value", "1 1:1_0"),
    line("underscore in a label", r"'1_0' was given for a label", "1_0 1:1"),
    Case("values whose squares overflow", r"so large that their squares overflow", data="1 1:1e200\n-1 2:1e200\n1 1:2\n"),
    line("index above d", r"index 9 is above d = 8", "1 9:1", job={"data.dim": 8}),
    line("index above 2^31", r"index 2147483648 is above 2147483647", "1 2147483648:1"),
    line("index above 2^64", r"index 99999999999999999999 is above 2147483647", "1 99999999999999999999:1"),
    line("bytes that are no text", r"is no index:value", "1 \x00\x01"),
    Case("empty file", r"data holds no samples", data=""),
    Case("comments alone", r"data holds no samples", data="# nothing\n\n# here\n"),
    Case("no features", r"data has no features", data="1\n-1\n"),
    Case("all zero", r"all samples are zero", data="1 1:0\n-1 2:0\n1 1:0\n"),
    Case("one class", r"one class only, label 1; two are needed", data="1 1:1\n1 2:1\n"),
    Case("three classes", r"has 3 labels, 0, 1, 2; say which count as \+1: positive = \[0, …\]", data="0 1:1\n1 2:1\n2 1:1\n"),
    Case("positive label that is not there", r"data\.positive: data has no label 7; it has -1, 1", {"data.positive": [7.0]}),
    Case("all labels positive", r"data\.positive: all labels", {"data.positive": [1.0, -1.0]}),
    Case("value too large for float32", r"1e\+300, too large for float32", {"data.dtype": "float32"}, data="1 1:1e300\n-1 1:1\n"),
    Case("truncated xz", r"data\.xz: is damaged or cut short", data=XZ[:-20], file="data.xz"),
    Case("corrupt xz", r"data\.xz: is damaged or cut short", data=XZ[:60] + b"\xff\xff" + XZ[62:], file="data.xz"),
    Case("no xz at all", r"data\.xz: is damaged or cut short", data=GOOD_DATA, file="data.xz"),
    Case("truncated gz", r"data\.gz: is damaged or cut short", data=GZ[:-12], file="data.gz"),
    Case("corrupt gz", r"data\.gz: is damaged or cut short", data=GZ[:40] + b"\xff\xff" + GZ[42:], file="data.gz"),
    Case("truncated bz2", r"data\.bz2: is damaged or cut short", data=BZ2[:-12], file="data.bz2"),
    Case("malformed line in an xz", r"data\.xz:3: ", data=lzma.compress(b"1 1:1\n-1 1:1\nx\n"), file="data.xz"),
    Case("misspelt set", r"data\.name: no set 'gisete' .*; did you mean 'gisette'\?", {"data.path": None, "data.name": "gisete"}),
    Case("missing test set", r"data\.test: no set 'nowhere'", {"data.test": "nowhere"}),
    Case("test set with a stray label", r"label 3, and the training set has -1, 1", {"data.test": "t"}, more={"t": b"3 1:1\n"}),
    Case("test set with a malformed line", r"t:2: 'x' was given", {"data.test": "t"}, more={"t": b"1 1:1\nx\n"}),
    Case("test set with an index above d", r"t:1: index 99 is above d = 8", {"data.test": "t"}, more={"t": b"1 99:1\n"}),
    Case("empty test set", r"test set t holds no samples", {"data.test": "t"}, more={"t": b"\n"}),
    # --- the job file
    Case("broken TOML", r"job\.toml: is no TOML: .*line 1", text="data = = 3"),
    Case("empty job", r"job\.toml: .*data.*missing", text=""),
    Case("unknown table", r"no key called 'dataa'; did you mean 'data'", {"dataa.x": 1}),
    Case("unknown key", r"data: no key called 'pth'; did you mean 'path'", {"data.pth": "x"}),
    Case("wrong type", r"workers\.count: 'four' was given; it should be a valid integer", {"workers.count": "four"}),
    Case("wrong type of rows", r"data\.rows: 1\.5 was given", {"data.rows": 1.5}),
    Case("unknown algorithm", r"no algorithm called 'gdd'; did you mean 'gd'", {"algorithm.name": "gdd"}),
    Case("unknown loss", r"no loss called 'hing'; did you mean 'hinge'", {"objective.loss": "hing"}),
    Case("unknown compressor", r"no compressor called 'topp'; did you mean 'top-k'", {"up.compressor": {"name": "topp"}}),
    Case("unknown generator", r"no generator called 'gspr'; did you mean 'gspar'", {"data.path": None, "data.generator": "gspr"}),
    Case("generator that cannot be", r"data.samples: 1 was given; it should be at least 2", {"data.path": None, "data.generator": "gspar", "data.samples": 1}),
    Case("two sources of data", r"data: one of name = ", {"data.name": "a9a"}),
    Case("formula that divides by zero", r"job\.toml: algorithm: '1/\(n-3\)' divides by zero", {"algorithm.step": "1/(n-3)"}),
    Case("formula that calls", r"is not allowed in a formula", {"algorithm.step": "__import__('os').getpid()"}),
    Case("formula with an unknown name", r"no quantity called 'lambda_max'", {"algorithm.step": "1/lambda_max"}),
    Case("formula that cannot be read", r"algorithm\.step: '1/' was given; it should be numbers or formulas", {"algorithm.step": "1/"}),
    Case("no workers", r"workers: count = 0 must be at least 1", {"workers.count": 0}),
    Case("more workers than samples", r"workers\.count: 13 workers are more than the 12 samples", {"workers.count": 13}),
    Case("k above d", r"k = 9 is more than the d = 8 coordinates", {"up.compressor": {"name": "top-k", "k": 9}}),
    Case("k = 0", r"k\b.*0", {"up.compressor": {"name": "top-k", "k": 0}}),
    Case("negative mu", r"objective\.mu: -0\.1 is negative; it must be 0 or more", {"objective.mu": -0.1}),
    Case("infinite mu", r"objective\.mu: inf is no finite number", {"objective.mu": float("inf")}),
    Case("mu that is no number", r"objective\.mu: nan is no finite number", {"objective.mu": float("nan")}),
    Case("negative lambda2", r"objective\.lambda2: -1 is negative", {"objective.lambda2": -1}),
    Case("mu and lambda2", r"mu and lambda2 = mu/2 are two names", {"objective.mu": 1, "objective.lambda2": 2}),
    Case("1/L where there is no L", r"algorithm\.step: '1/L' needs L, and the hinge loss is not smooth", HINGE),
    Case("mu in L where there is no L", r"objective\.mu: '1e-4 L' needs L", {**HINGE, "objective.mu": "1e-4 L"}),
    Case("x* where there is none", r"x\* cannot be computed", {"objective.loss": "hinge", "algorithm.step": 1, "start.at": "optimum"}),
    Case("codec that cannot write it", r"'dense' cannot write what 'top-k' makes; these can: ", {"up.codec": "dense"}),
    Case("results cannot be written", r"file/job: results cannot be written there", more={"file": b""}, out="file"),
    Case("one run twice", r"is the same run as another one: label and all settings are equal", {"grid.seed": [1, 1]}),
    Case("generated set beyond memory", r"needs about [\d.]+ GiB of memory",
         {"data.path": None, "data.generator": "gspar", "data.samples": 10**12}),
    Case("start from another format", r"o\.h5: is no result of format mpi-compress/1 but of another/7", {"start.at": "o.h5"},
         more={"o.h5": _other_result()}),
    Case("start from no HDF5", r"o\.h5: cannot be read as HDF5", {"start.at": "o.h5"}, more={"o.h5": b"text"}),
    Case("a figure's level of what grows", r"figure: to = \{\x27seconds\x27: 3.0\}: seconds grows in every run", {"figure.to": {"seconds": 3.0}}),
    Case("start from a missing file", r"o\.h5: there is no such file", {"start.at": "o.h5"}),
]  # fmt: skip
