"""Emulated hosts on this one: network namespaces, joined by links of a given delay and rate. Root and Linux are needed.

As a program it is the network, `python _hosts.py N DELAY_MS RATE_MBIT`: it makes the hosts, and is the switch, which holds every
frame back until its sender's port would have sent it and the delay is over. It runs in namespaces of processes, mounts and
networks of its own. So names of hosts clash with none of this machine, and when the switch ends, or its starter is killed, the kernel
ends the ranks and removes the hosts.
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
_APART = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc"]
_PROGRAMS = "ip", "unshare", "nsenter", "setpriv", "chrt", "sysctl", "mount"


def missing() -> str:
    """Why there can be no emulated hosts here; "" if there can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "root on Linux is needed for network namespaces"
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else "" if Path("/dev/net/tun").exists() else "there is no /dev/net/tun"


@contextmanager
def emulated(n: int, delay_ms: float, rate_mbit: float) -> Iterator[list[str]]:
    """n hosts while the context lasts; what to begin a command line with, so that its ranks go to them in turn."""
    program = ["chrt", "-f", "50", sys.executable, __file__, str(n), str(delay_ms), str(rate_mbit)]
    network = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *_APART, *program], stdout=subprocess.PIPE, text=True)
    try:
        assert network.stdout is not None
        if network.stdout.readline() != "up\n":
            raise RuntimeError("the network does not come up")
        of = f"--target {network.pid} --mount --net --pid=/proc/{network.pid}/ns/pid_for_children"
        enter = ["sh", "-c", f'exec nsenter {of} --wdns="$PWD" "$@"', "sh"]
        launcher = ["-launcher", "ssh", "-launcher-exec", str(Path(__file__).with_name("as_host.sh")), "-iface", "eth0"]
        mpiexec = str(Path(sys.executable).with_name("mpiexec"))
        yield [*enter, "ip", "netns", "exec", "h0", mpiexec, *launcher, "-hosts", ",".join(f"h{i}" for i in range(n)), "-n"]
    finally:
        network.kill()
        network.wait()


class Switch:
    """The switch between n hosts."""

    def __init__(self, n: int, delay: float, rate: float):
        self.delay, self.rate = delay, rate  # seconds, bytes a second
        self.ports = [os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK) for _ in range(n)]
        for i, tap in enumerate(self.ports):  # the cables' other ends are the hosts'
            fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", f"cable{i}".encode(), _TAP | _NO_INFO))
        self.waiting: list[tuple[float, int, int, bytes]] = []  # due, number, port, frame
        self.free = [0.0] * n  # from when on a sender's port is

    def carry(self) -> None:
        """Carry frames until killed."""
        while True:
            wait = max(0.0, self.waiting[0][0] - time.perf_counter()) if self.waiting else None
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
            known = frame[:5] == b"\2\0\0\0\0" and frame[5] < len(self.ports)  # an address that `_join` gives
            for port in [frame[5]] if known else [i for i in range(len(self.ports)) if i != sender]:
                heapq.heappush(self.waiting, (self.free[sender] + self.delay, id(frame), port, frame))


def _join(n: int) -> None:
    """Make hosts h0 … h(n-1), each with a cable of the switch as its eth0, 10.77.0.10 …; they know each other's names."""

    def call(line: str) -> None:
        subprocess.run(line.split(), check=True)

    call("mount -t tmpfs tmpfs /run")  # where `ip` keeps the names of namespaces
    Path("/run/hosts").write_text("127.0.0.1 localhost\n" + "".join(f"10.77.0.{10 + i} h{i}\n" for i in range(n)))
    call("mount --bind /run/hosts /etc/hosts")
    for i in range(n):
        call(f"ip netns add h{i}")
        call(f"ip link set cable{i} netns h{i} name eth0")
        call(f"ip -n h{i} link set eth0 address 02:00:00:00:00:{i:02x} mtu 1500")
        call(f"ip -n h{i} addr add 10.77.0.{10 + i}/24 dev eth0")
        call(f"ip -n h{i} link set lo up")
        call(f"ip -n h{i} link set eth0 up")
        call(f"ip netns exec h{i} sysctl -qw net.ipv4.tcp_congestion_control=reno")  # BBR would pace short messages


if __name__ == "__main__":
    number = int(sys.argv[1])
    switch = Switch(number, float(sys.argv[2]) / 1e3, float(sys.argv[3]) * 1e6 / 8)
    _join(number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # it is the parent of ranks whose own has ended
    print("up", flush=True)
    switch.carry()
