"""Every Python worker. Keeps Spark's garbage collection after each task short.

pyspark calls `gc.collect()` between two tasks of a worker, and the next task waits for it. With
pyspark, pandas and pyarrow loaded that takes 40 to 80 ms, all of it over objects that live as long
as the process. Once they are set aside a collection looks only at what came later.
"""

import gc
from typing import Final

# By then a worker has imported all that it needs.
_SETTLED: Final = 2

_tasks = 0


def task_started() -> None:
    """Called at the start of each task, in whatever worker it runs."""
    global _tasks  # noqa: PLW0603
    _tasks += 1
    if _tasks == _SETTLED:
        gc.collect()
        gc.freeze()
