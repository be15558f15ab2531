"""Every process. Named places where a test can hold a process, to kill it there.

Failpoints are off unless the variable SPARK_EOS_FAILPOINTS names a folder. A test arms the place
`decided` with the file `decided.armed`. The first process takes that file, so that the place holds
once. The process writes its id into `decided.reached` and waits for `decided.go`.
"""

import os
import time
from pathlib import Path
from typing import Final

VARIABLE: Final = "SPARK_EOS_FAILPOINTS"
_folder: Final = os.environ.get(VARIABLE)
_LOOK_EVERY_S: Final = 0.01


def failpoint(name: str) -> None:
    """Wait here if a test has armed this place."""
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
