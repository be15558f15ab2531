"""A disk in a file, mounted as ext4, that can lose what was never synced.

What is in the cache above a mounted image is not in the image. So a copy of the image is the disk
as a power cut would leave it.
"""

import shutil
import subprocess
from pathlib import Path


class DiskImage:
    """Mounted at `folder`. Raises where that is not possible here."""

    def __init__(self, image: Path, folder: Path, megabytes: int) -> None:
        self._image = image
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with image.open("wb") as disk:
            disk.truncate(megabytes << 20)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", image)
        _run("mount", "-o", "loop", image, folder)

    def cut_power(self) -> None:
        """Only what is on the disk is there from now on. Nobody may be writing."""
        after = self._image.with_suffix(".after")
        shutil.copyfile(self._image, after)
        self.close()
        after.replace(self._image)
        _run("mount", "-o", "loop", self._image, self.folder)

    def close(self) -> None:
        unmount(self.folder)


def unmount(folder: Path) -> None:
    """Also what a test that was killed has left, and what somebody still has open."""
    subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True, timeout=30)


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=30)
