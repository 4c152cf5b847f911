"""Emulated hosts on this one: network namespaces, joined by links of a given delay and rate. Root and Linux are needed.

As a program it is the network, `python emulation.py N DELAY_MS RATE_MBIT`: what hosts.sh makes, and a switch in this process, which
holds every frame back until its sender's port would have sent it and the delay is over. It ends, and takes the hosts away, when it
is told to.
"""

import fcntl
import heapq
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TUNSETIFF, _TAP, _NO_INFO = 0x400454CA, 0x2, 0x1000
_LONGEST = 1564  # bytes of a frame
_QUEUED_SECONDS = 0.05  # at a sender's port; then it reads no more, and the sender waits
_FOLDER = Path(__file__).parent


def missing() -> str:
    """Why there can be no emulated hosts here; "" if there can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "root on Linux is needed for network namespaces"
    absent = [name for name in ("ip", "unshare", "chrt", "sysctl") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else "" if Path("/dev/net/tun").exists() else "there is no /dev/net/tun"


@contextmanager
def emulated(n: int, delay_ms: float, rate_mbit: float) -> Iterator[list[str]]:
    """n hosts while the context lasts; what to begin a command line with, so that its ranks go to them in turn."""
    line = ["chrt", "-f", "50", sys.executable, __file__, str(n), str(delay_ms), str(rate_mbit)]
    network = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert network.stdout is not None
        if network.stdout.readline() != "up\n":
            raise RuntimeError("the network does not come up")
        launcher = ["-launcher", "ssh", "-launcher-exec", str(_FOLDER / "as_host.sh"), "-iface", "eth0"]
        mpiexec = str(Path(sys.executable).with_name("mpiexec"))
        yield ["ip", "netns", "exec", "h0", mpiexec, *launcher, "-hosts", ",".join(f"h{i}" for i in range(n)), "-n"]
    finally:
        network.terminate()
        network.wait(timeout=20)


class Switch:
    """The switch between n hosts."""

    def __init__(self, n: int, delay: float, rate: float):
        self.delay, self.rate = delay, rate  # seconds, bytes a second
        self.ports = [os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK) for _ in range(n)]
        for i, tap in enumerate(self.ports):  # hosts.sh gives the cables' other ends to hosts
            fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", f"cable{i}".encode(), _TAP | _NO_INFO))
        self.waiting: list[tuple[float, int, int, bytes]] = []  # due, number, port, frame
        self.free = [0.0] * n  # from when on a sender's port is
        self.going = True

    def carry(self) -> None:
        """Carry frames until told to end."""
        while self.going:
            wait = max(0.0, self.waiting[0][0] - time.perf_counter()) if self.waiting else 0.5
            ready, _, _ = select.select(self.ports, [], [], wait)
            for tap in ready:
                self._take(self.ports.index(tap))
            while self.waiting and self.waiting[0][0] <= time.perf_counter():
                _, _, port, frame = heapq.heappop(self.waiting)
                with suppress(OSError):  # a full queue drops, as a real one does
                    os.write(self.ports[port], frame)

    def _take(self, sender: int) -> None:
        now = time.perf_counter()
        for _ in range(64):
            if self.waiting and self.free[sender] > now + _QUEUED_SECONDS:
                return
            try:
                frame = os.read(self.ports[sender], _LONGEST)
            except BlockingIOError:
                return
            self.free[sender] = max(self.free[sender], now) + len(frame) / self.rate
            known = frame[:5] == b"\2\0\0\0\0" and frame[5] < len(self.ports)  # an address of hosts.sh
            for port in [frame[5]] if known else [i for i in range(len(self.ports)) if i != sender]:
                heapq.heappush(self.waiting, (self.free[sender] + self.delay, id(frame), port, frame))


def main() -> None:
    hosts, n = str(_FOLDER / "hosts.sh"), sys.argv[1]
    switch = Switch(int(n), float(sys.argv[2]) / 1e3, float(sys.argv[3]) * 1e6 / 8)
    try:
        subprocess.run([hosts, "up", n], check=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(switch, "going", False))
        print("up", flush=True)
        switch.carry()
    finally:
        subprocess.run([hosts, "down", n], check=False, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
