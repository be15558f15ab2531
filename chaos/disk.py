"""A disk under the transaction log that can be full or read-only, and that can lose its power.

As root it is an image of its own, mounted, and a file that takes all the room: writes fail in the
middle, as they do on a real one. Or it is mounted read-only for a while, as Linux does with a disk
that has errors. Where images cannot be mounted it is a tmpfs, which has no power to lose. Without
the right to mount, the folder of the commits loses its write permission. Where nothing works (root
without mounts) the fault is skipped, and says so.
"""

import errno
import os
import subprocess
import time

from chaos.disk_image import DiskImage, unmount

MEGABYTES = 64
CHUNK = 64 * 1024
FULL = "no space left (a disk filled to its last byte)"
READ_ONLY = "a disk that is read-only"
FORBIDDEN = "no write permission on _delta_log"
# A file that is open for writing keeps its disk from becoming read-only; the log has none for long.
FREE_S = 5.0
POLL_S = 0.02
MOUNT_S = 30


class Busy(Exception):  # noqa: N818 - a reason, not a failure
    """The disk would not become read-only."""


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
    def ways(self):
        """What a failure can be; empty where none can be caused."""
        if self.mounted:
            return (FULL, READ_ONLY)
        return () if os.geteuid() == 0 else (FORBIDDEN,)

    def fail(self, way):
        """Until it is mended. Raises Busy where it cannot be done just now."""
        if way == FORBIDDEN:
            (self.log / "_delta_log").chmod(0o555)
        elif way == READ_ONLY:
            self._turn_read_only()
        else:
            self._fill()

    def mend(self):
        """From every failure: it need not be known which it was, or whether there was one."""
        if self.mounted:
            if self._is_read_only:
                _remount(self.folder, "rw").check_returncode()
            self._filler.unlink(missing_ok=True)
        elif (self.log / "_delta_log").exists():
            (self.log / "_delta_log").chmod(0o755)

    @property
    def _is_read_only(self):
        return bool(os.statvfs(self.folder).f_flag & os.ST_RDONLY)

    def _turn_read_only(self):
        deadline = time.monotonic() + FREE_S
        while (tried := _remount(self.folder, "ro")).returncode != 0:
            if time.monotonic() > deadline:
                raise Busy(f"the log's disk cannot become read-only: {tried.stderr.strip()}")
            time.sleep(POLL_S)

    def _fill(self):
        with self._filler.open("ab", buffering=0) as filler:
            size = CHUNK
            while size:
                try:
                    filler.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2

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


def _remount(folder, how):
    command = ["mount", "-o", f"remount,{how}", str(folder)]
    return subprocess.run(command, capture_output=True, check=False, text=True, timeout=MOUNT_S)
