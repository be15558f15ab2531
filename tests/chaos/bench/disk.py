"""A disk under the transaction log that can be full for a while, and that can lose its power.

As root it is an image of its own, mounted, and a file that takes all the room: writes fail in the
middle, as they do on a real one. Where images cannot be mounted it is a tmpfs, which has no power
to lose. Without the right to mount, the folder of the commits loses its write permission. Where
nothing works (root without mounts) the fault is skipped, and says so.
"""

import errno
import os
import subprocess

from tests.disk_image import DiskImage, unmount

MEGABYTES = 64
CHUNK = 64 * 1024


class LogDisk:
    """The folder of the log, mounted where that is allowed."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        unmount(folder)  # what a killed bench has left
        self.folder = folder
        self.log = folder / "transaction_state"
        self._filler = folder / "filler"
        self.image = _image(folder)
        self.mounted = self.image is not None or _tmpfs(folder)

    @property
    def how(self):
        """What a failure will be, or None where none can be caused."""
        if self.mounted:
            return "no space left (a disk filled to its last byte)"
        return None if os.geteuid() == 0 else "no write permission on _delta_log"

    def fail(self):
        if not self.mounted:
            (self.log / "_delta_log").chmod(0o555)
            return
        with self._filler.open("ab", buffering=0) as filler:
            size = CHUNK
            while size:
                try:
                    filler.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2

    def mend(self):
        if self.mounted:
            self._filler.unlink(missing_ok=True)
        elif (self.log / "_delta_log").exists():
            (self.log / "_delta_log").chmod(0o755)

    def close(self):
        if self.mounted:
            unmount(self.folder)


def _image(folder):
    try:
        return DiskImage(folder.with_suffix(".image"), folder, MEGABYTES)
    except (OSError, subprocess.CalledProcessError):
        return None


def _tmpfs(folder):
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)]
    try:
        return subprocess.run(mount, capture_output=True, check=False, timeout=10).returncode == 0
    except OSError:
        return False
