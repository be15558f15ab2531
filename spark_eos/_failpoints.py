"""Every process. Named places where a test can hold a process still, to kill it right there.

Off unless the environment variable SPARK_EOS_FAILPOINTS names a folder; then a failpoint costs
one look for a file. To arm the place `decided` a test makes the file `decided.armed` in that
folder. The first process that comes by takes it (so that a place holds once, and never again
after a restart), says so with `decided.reached`, which holds its process id, and waits until
there is `decided.go`.
"""

import os
import time
from pathlib import Path
from typing import Final

VARIABLE: Final = "SPARK_EOS_FAILPOINTS"
_folder: Final = os.environ.get(VARIABLE)
_LOOK_EVERY_S: Final = 0.01


def failpoint(name: str) -> None:
    """Wait here, if a test wants that."""
    if _folder is not None:
        _hold(Path(_folder), name)


def _hold(folder: Path, name: str) -> None:
    taken = folder / f"{name}.taken-{os.getpid()}"
    try:
        (folder / f"{name}.armed").rename(taken)
    except FileNotFoundError:
        return
    taken.write_text(str(os.getpid()))
    taken.rename(folder / f"{name}.reached")
    while not (folder / f"{name}.go").exists():
        time.sleep(_LOOK_EVERY_S)
