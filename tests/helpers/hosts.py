"""Emulated hosts on this one: network namespaces, joined by links of a given delay and rate. Root and Linux are needed.

As a program it is the network, `python hosts.py N DELAY_MS RATE_MBIT`: namespaces h0 … with an interface eth0 each, and between them
a switch in this process, which holds every frame back until its sender's port would have sent it and the delay is over. It ends,
and takes the hosts away, when it is told to.
"""

import ctypes
import fcntl
import heapq
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TUNSETIFF, _TAP, _NO_INFO = 0x400454CA, 0x2, 0x1000
_NEW_NET = 0x40000000
_MTU = 1500
_QUEUED_SECONDS = 0.05  # at a sender's port; then it reads no more, and the sender waits

AS_HOST = """#!/bin/bash
# HOST COMMAND…: what ssh would do there. A host of its own: network, name, and no memory shared with the others.
while [[ $1 == -* ]]; do case $1 in -l|-p|-o) shift 2;; *) shift;; esac; done
host=$1; shift
exec ip netns exec "$host" unshare --uts --ipc --mount --propagation private \\
  bash -c "hostname $host; mount -t tmpfs tmpfs /dev/shm; $*"
"""


def missing() -> str:
    """Why there can be no emulated hosts here; "" if there can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "root on Linux is needed for network namespaces"
    absent = [name for name in ("ip", "unshare", "chrt") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else "" if Path("/dev/net/tun").exists() else "there is no /dev/net/tun"


@contextmanager
def emulated(n: int, delay_ms: float, rate_mbit: float) -> Iterator[list[str]]:
    """n hosts while the context lasts; what to begin a command line with, so that its ranks are dealt out to them in turn."""
    with tempfile.TemporaryDirectory() as folder:
        as_host = Path(folder) / "as-host"
        as_host.write_text(AS_HOST)
        as_host.chmod(0o755)
        line = ["chrt", "-f", "50", sys.executable, __file__, str(n), str(delay_ms), str(rate_mbit)]
        network = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        try:
            assert network.stdout is not None
            if network.stdout.readline() != "up\n":
                raise RuntimeError("the network does not come up")
            mpiexec = Path(sys.executable).with_name("mpiexec")
            names = ",".join(f"h{i}" for i in range(n))
            yield [
                "ip", "netns", "exec", "h0", str(mpiexec), "-launcher", "ssh", "-launcher-exec", str(as_host), "-iface", "eth0",
                "-hosts", names, "-n",
            ]  # fmt: skip
        finally:
            network.terminate()
            network.wait(timeout=20)


class Network:
    """The hosts and the switch between them."""

    def __init__(self, n: int, delay: float, rate: float):
        self.delay, self.rate = delay, rate  # seconds, bytes a second
        self.names = [f"h{i}" for i in range(n)]
        self.ports = [self._host(i) for i in range(n)]
        self.at = {_address(i): i for i in range(n)}
        self.waiting: list[tuple[float, int, int, bytes]] = []  # due, number, port, frame
        self.free = [0.0] * n  # from when on a sender's port is
        self.going = True

    def _host(self, i: int) -> int:
        """A namespace, and the end of its cable."""
        name = self.names[i]
        _ip("netns", "add", name)
        Path(f"/etc/netns/{name}").mkdir(parents=True, exist_ok=True)
        hosts = [f"10.77.0.{10 + j} {other}" for j, other in enumerate(self.names)]
        Path(f"/etc/netns/{name}/hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts, ""]))
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as home, open(f"/var/run/netns/{name}") as there:
            if libc.setns(there.fileno(), _NEW_NET):
                raise OSError(ctypes.get_errno(), "setns")
            tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", b"eth0", _TAP | _NO_INFO))
            libc.setns(home.fileno(), _NEW_NET)
        _ip("-n", name, "link", "set", "eth0", "address", _address(i).hex(":"), "mtu", str(_MTU))
        _ip("-n", name, "addr", "add", f"10.77.0.{10 + i}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")
        _ip("netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")  # BBR would pace short messages
        return tap

    def play(self) -> None:
        """Carry frames until told to end."""
        port_of = {tap: i for i, tap in enumerate(self.ports)}
        while self.going:
            wait = max(0.0, self.waiting[0][0] - time.perf_counter()) if self.waiting else 0.5
            ready, _, _ = select.select(self.ports, [], [], wait)
            for tap in ready:
                self._take(port_of[tap])
            self._hand_out()

    def _take(self, sender: int) -> None:
        now = time.perf_counter()
        for _ in range(64):
            if self.waiting and self.free[sender] > now + _QUEUED_SECONDS:
                return
            try:
                frame = os.read(self.ports[sender], _MTU + 64)
            except BlockingIOError:
                return
            self.free[sender] = max(self.free[sender], now) + len(frame) / self.rate
            to = self.at.get(frame[:6])
            others = [i for i in range(len(self.ports)) if i != sender] if to is None else [to]
            for port in others:
                heapq.heappush(self.waiting, (self.free[sender] + self.delay, id(frame), port, frame))

    def _hand_out(self) -> None:
        while self.waiting and self.waiting[0][0] <= time.perf_counter():
            _, _, port, frame = heapq.heappop(self.waiting)
            with suppress(OSError):  # a full queue drops, as a real one does
                os.write(self.ports[port], frame)

    def end(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)


def _address(i: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, i])


def _ip(*line: str) -> None:
    subprocess.run(["ip", *line], check=True)


def main() -> None:
    n, delay, rate = int(sys.argv[1]), float(sys.argv[2]) / 1e3, float(sys.argv[3]) * 1e6 / 8
    network = Network(n, delay, rate)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(network, "going", False))
    print("up", flush=True)
    try:
        network.play()
    finally:
        network.end()


if __name__ == "__main__":
    main()
