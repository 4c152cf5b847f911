"""SLURM's commands as scripts of a few lines, whose answers a test decides: for what needs no real one."""

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from mpi_compress.cli.main import main

_COMMANDS = {
    "sbatch": """
n=$(($(ls "$STUB/submitted" | wc -l) + 1001))
if [ -e "$STUB/refuse" ] && [ $n -ge "$(cat "$STUB/refuse")" ]; then echo "sbatch: error: refused on purpose" >&2; exit 1; fi
printf '%s\\0' "$@" > "$STUB/submitted/$n"
for argument; do case "$argument" in --comment=*) mark=${argument#--comment=};; esac; done
echo "${n}_0|PENDING|Resources|$mark" >> "$STUB/queue"
[ -e "$STUB/after" ] && . "$STUB/after"
echo $n
""",
    "squeue": """
[ -e "$STUB/silent" ] && { echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }
[ "$STATE" ] && { echo "$STATE"; exit; }
cat "$STUB/queue"
""",
    "scontrol": """
[ "$1" = show ] && { echo "MaxArraySize            = $(cat "$STUB/most")"; exit; }
echo "$*" >> "$STUB/asked"
""",
    "srun": """
while [ "${1#-}" != "$1" ]; do shift; done
[ -e "$STUB/play" ] && . "$STUB/play"
exec "$@"
""",
}


class StubSlurm:
    """A folder of commands, to be put in front of PATH."""

    def __init__(self, folder: Path, most: int = 1001):
        self.folder = folder
        (folder / "submitted").mkdir(parents=True)
        (folder / "most").write_text(str(most))
        (folder / "queue").write_text("")
        for name, text in _COMMANDS.items():
            self.command(name, text)
        self.variables = {"STUB": str(folder), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "STATE": ""}

    def command(self, name: str, text: str) -> None:
        """Put a shell script in place of a command."""
        file = self.folder / name
        file.write_text(f"#!/bin/bash\n{text.lstrip()}")
        file.chmod(0o755)

    def queue(self, *rows: str) -> None:
        """What squeue answers: id|state|reason|comment."""
        (self.folder / "queue").write_text("".join(f"{row}\n" for row in rows))

    @property
    def submitted(self) -> dict[str, list[str]]:
        """The arguments of sbatch, by the job's number."""
        files = sorted((self.folder / "submitted").iterdir(), key=lambda file: int(file.name))
        return {file.name: file.read_text(errors="surrogateescape").split("\0")[:-1] for file in files}

    @property
    def requeued(self) -> list[str]:
        """What scontrol was asked to do."""
        file = self.folder / "asked"
        return file.read_text().splitlines() if file.exists() else []

    def task(self, job: str, task: int, **variables: str) -> subprocess.CompletedProcess:
        """Play one task of what was submitted, as SLURM would; its output goes where `plan` looks for it."""
        *_, script, first = self.submitted[job]
        text = Path(script).read_text()
        env = {**os.environ, **self.variables, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_JOB_ID": f"{job}9", **variables}
        done = subprocess.run(["bash", script, first], env=env, capture_output=True, text=True, timeout=600)
        values = {"A": job, "a": str(task), "%": "%"}
        heads = [shlex.split(line)[1] for line in text.splitlines() if line.startswith("#SBATCH --output=")]
        for log in heads:
            with Path(re.sub("%(.)", lambda match: values[match[1]], log.removeprefix("--output="))).open("a") as file:
                file.write(done.stdout + done.stderr)
        return done


def in_front(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StubSlurm:
    """The commands of a new folder ahead of all others, for a test in `folder`."""
    stub = StubSlurm(folder / "stub")
    for name, value in stub.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    return stub


def planned(capsys: pytest.CaptureFixture[str]) -> str:
    """What `plan` tells of the run GD of small.toml, without what it needs."""
    capsys.readouterr()
    assert main(["plan", "small.toml", "--only", "GD"]) == 0
    return capsys.readouterr().out.partition("GiB  ")[2].partition("\n")[0].strip()


def option(arguments: Sequence[str], name: str) -> str:
    """The value of an option of sbatch, "" if it was not given."""
    return next((a.removeprefix(f"--{name}=") for a in arguments if a.startswith(f"--{name}=")), "")
