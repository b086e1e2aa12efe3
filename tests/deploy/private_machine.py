"""A private copy of this machine, on which the installation script runs as root: its own files, processes and ports.

Everything that is written stays in memory and is gone at the end. The network is missing, and systemd too. So
`stand_ins/` has small substitutes for the commands that need them; everything else is real.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import ROOT, until

NEEDED = ("unshare", "nsenter", "setpriv", "ip", "curl", "openssl", "nginx", "make")
PATH = f"/stand_ins:{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
ISOLATED = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c")
BEGIN = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs tmpfs run
rm -rf etc/nginx/sites-enabled/default etc/systemd/system/orders.service srv/orders  # what a real server could have
rm -rf opt/tillbook* var/lib/tillbook var/backups/tillbook usr/local/bin/tillbook usr/local/bin/orders
mkdir -p run/systemd/system run/lock stand_ins ".$2"
chmod go+x root  # a Python of root's is used by the service too
mount --bind --options ro "$2" ".$2"
cp "$2"/tests/deploy/stand_ins/* stand_ins
ip link set lo up
touch "$1/ready"
while sleep 1; do :; done  # its first process has to reap the others
"""


def missing() -> str:
    """Return what this machine lacks for a private copy, or an empty text."""
    if os.geteuid() != 0:
        return "only root can make a private copy of the machine"
    lacking = [name for name in NEEDED if not shutil.which(name, path=PATH)]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    done = subprocess.run([*ISOLATED, "mount -t tmpfs tmpfs /mnt"], capture_output=True, text=True)
    return f"a private copy of the machine is not possible here: {done.stderr}" if done.returncode else ""


class Machine:
    """A private machine with a checkout of the project in /root/tillbook."""

    def __init__(self, folder: Path):
        folder.mkdir()
        self.folder = folder
        command = [*ISOLATED, BEGIN, "begin", str(folder), str(ROOT)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        until(lambda: self.process.poll() is not None or self._shell("test -e $FOLDER/ready").returncode == 0)
        assert self.process.poll() is None, self.process.stderr.read()
        skipped = " ".join(f"--exclude=./{name}" for name in (".git", ".venv", "instance", "tests", "bench"))
        self.run(f"mkdir -p /root/tillbook && tar -C {ROOT} {skipped} -c . | tar -C /root/tillbook -x")

    def _shell(self, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if not children:
            return subprocess.CompletedProcess([], 1)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("ORDERS_", "MAKE"))}
        return subprocess.run(
            ["nsenter", f"--target={children[0]}", "--mount", "--net", "--pid", "bash", "-c", script],
            env=clean | {"PATH": PATH, "FOLDER": str(self.folder), "TEST_PYTHON": sys.executable, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def tried(self, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script as root, without a terminal."""
        return self._shell('exec chroot $FOLDER/root bash -c "cd /root/tillbook; $SCRIPT"', SCRIPT=script, **environ)

    def run(self, script: str, **environ: str) -> str:
        """Run a shell script as root, which must succeed, and return its output."""
        done = self.tried(script, **environ)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def written(self) -> str:
        """Return the names and times of all files that were written on it, except in temporary folders."""
        done = self._shell("cd $FOLDER/upper && find . -not -path './tmp*' -not -type d -printf '%p %T@ %C@\\n' | sort")
        return done.stdout

    def end(self) -> None:
        """End all its processes, which also removes its files."""
        self.process.kill()
        self.process.communicate()
