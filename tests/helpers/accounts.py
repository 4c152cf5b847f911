"""Commands of other accounts of this machine, which root can play without making them: accounts are numbers."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from helpers.running import BIN

GROUP = 20100


def _closed() -> Path | None:
    """The first folder above the interpreter that other accounts may not enter, such as root's home."""
    folders = reversed(Path(sys.executable).resolve().parents)
    return next((folder for folder in folders if not folder.stat().st_mode & 0o001), None)


_OPENED = """
set -e
mkdir -p "$HOME/python"
mount --bind "$PREFIX" "$HOME/python"
mount -t tmpfs -o mode=755 tmpfs "$CLOSED"
mkdir -p "$PREFIX"
mount --move "$HOME/python" "$PREFIX"
exec "$@"
"""  # in a mount namespace of its own, the interpreter lies where it did, in a folder that all may enter


@dataclass(frozen=True)
class Account:
    """An account with a home of its own, a umask and a cache."""

    number: int
    home: Path
    umask: str
    cache: Path

    def command(self, *line: str | Path, group: int = GROUP) -> subprocess.CompletedProcess[str]:
        """The command as this account gives it in the folder that holds the homes."""
        self.home.mkdir(exist_ok=True)
        os.chown(self.home, self.number, group)
        words = ["sh", "-c", f'umask {self.umask}; exec "$@"', "sh", BIN / "mpi-compress", *line]
        words = ["setpriv", "--reuid", self.number, "--regid", group, "--clear-groups", *words]
        variables = {**os.environ, "HOME": str(self.home), "MPI_COMPRESS_CACHE": str(self.cache)}
        if closed := _closed():
            words = ["unshare", "--mount", "sh", "-c", _OPENED, "sh", *words]
            variables |= {"CLOSED": str(closed), "PREFIX": sys.base_prefix}
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, env=variables, cwd=self.home.parent)
