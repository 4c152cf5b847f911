"""A real SLURM on this machine: munged, slurmctld and a slurmd for each virtual node, as root, in a folder of its own.

Tasks in the partition `urgent` preempt those in `main`, the default, which get 60 s of grace and are then queued again.
Debian: apt-get install --no-install-recommends slurm-wlm munge.
"""

import os
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue")

CONF = """
ClusterName=ci
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
MpiDefault=pmi2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
KillWait=5
OverTimeLimit=0
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
FirstJobId={first}
SlurmctldTimeout=10
SlurmdTimeout=60
TmpFS={folder}/tmp-%n
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP PriorityTier=10 PreemptMode=REQUEUE GraceTime=60
PartitionName=urgent Nodes=ALL MaxTime=60 State=UP PriorityTier=20 PreemptMode=OFF
"""

_SLOW = """
import time
from dataclasses import dataclass
import mpi_compress as mc
from mpi_compress.messages.compressors.largest import TopK

@mc.compressors.register("slow")
@dataclass(frozen=True)
class Slow(mc.Compressor):
    seconds: float = {seconds}
    fails_in: int = -1

    def compress(self, v, t):
        time.sleep(self.seconds)
        if t.k == self.fails_in and t.who == 2:
            raise RuntimeError("broken on purpose")
        return TopK(3).compress(v, t)
"""


def slow_part(seconds: float = 0.0) -> str:
    """The source of a compressor, `slow`, that takes so many seconds, and can be told to fail in a round."""
    return _SLOW.format(seconds=seconds)


def missing() -> str:
    """Why there can be no SLURM here; "" if there can."""
    if os.geteuid() != 0:
        return "root is needed to start SLURM"
    absent = [name for name in NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    return f"not installed: {', '.join(absent)} (Debian: slurm-wlm, munge)" if absent else ""


@contextmanager
def cluster(folder: Path, nodes: int, cpus: int) -> Iterator[dict[str, str]]:
    """The variables under which commands talk to a new cluster; it ends with the context."""
    (folder / "state").mkdir(parents=True)
    # MPICH names shared memory by the numbers of job and step: those of a job that was killed must not come back.
    host = platform.node().split(".")[0]
    lines = []
    for i in range(1, nodes + 1):
        (folder / f"spool-node{i}").mkdir()
        (folder / f"tmp-node{i}").mkdir()
        lines.append(
            f"NodeName=node{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={_free_port()} CPUs={cpus} RealMemory=4000 State=UNKNOWN"
        )
    conf = folder / "slurm.conf"
    conf.write_text(
        CONF.format(folder=folder, host=host, port=_free_port(), first=1000 + 100 * (os.getpid() % 100_000), nodes="\n".join(lines))
    )
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    folder.chmod(0o755)
    variables = {**os.environ, "SLURM_CONF": str(conf), "PATH": f"{os.environ['PATH']}:/usr/sbin"}

    def start(*line: str | Path) -> None:
        subprocess.run([str(part) for part in line], check=True, env=variables)

    files = {name: folder / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
    try:
        start(
            "munged", "--force", f"--key-file={key}", f"--socket={files['socket']}", f"--pid-file={files['pid']}",
            f"--log-file={files['log']}", f"--seed-file={files['seed']}",
        )  # fmt: skip
        start("slurmctld", "-c", "-f", conf)
        for i in range(1, nodes + 1):
            start("slurmd", "-c", "-f", conf, "-N", f"node{i}")
        deadline = time.monotonic() + 30
        while _idle(variables) < nodes:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the nodes do not come up:\n{(folder / 'slurmctld.log').read_text()[-2000:]}")
            time.sleep(0.2)
        yield variables
    finally:
        subprocess.run(["scancel", "--me"], env=variables, capture_output=True)
        deadline = time.monotonic() + 30
        while subprocess.run(["squeue", "-h"], env=variables, capture_output=True).stdout and time.monotonic() < deadline:
            time.sleep(0.5)
        for pid in (*folder.glob("slurm*.pid"), files["pid"]):
            if pid.exists():
                subprocess.run(["kill", pid.read_text().strip()], capture_output=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _idle(variables: dict[str, str]) -> int:
    said = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], env=variables, capture_output=True, text=True).stdout
    return sum(int(word) for word in said.split())


def wait_until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        logs = "\n".join(f.read_text() for f in Path("results").rglob("slurm-*.out"))
        assert time.monotonic() < deadline, f"not within {seconds} s; the tasks' output:\n{logs}"
        time.sleep(0.5)
