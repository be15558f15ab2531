"""A disk under the transaction log that can be full for a while.

As root it is a small tmpfs of its own, and a file that takes all the room: writes fail in the
middle, as they do on a real one. Without the right to mount, the folder of the commits loses its
write permission. Where neither works (root without mounts) the fault is skipped, and says so.
"""

import errno
import os
import subprocess

SIZE = "48m"
CHUNK = 64 * 1024


class LogDisk:
    """The folder of the log, mounted where that is allowed."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.mounted = folder.is_mount()  # what a killed bench has left
        self.close()
        self.log = folder / "transaction_state"
        self._filler = folder / "filler"
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
        try:
            done = subprocess.run(mount, capture_output=True, check=False, timeout=10)
            self.mounted = done.returncode == 0
        except OSError:
            self.mounted = False

    @property
    def how(self):
        """What a failure will be, or None where none can be caused."""
        if self.mounted:
            return "no space left (a tmpfs filled to its last byte)"
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
            subprocess.run(
                ["umount", "--lazy", str(self.folder)], capture_output=True, check=False, timeout=10
            )
            self.mounted = False
