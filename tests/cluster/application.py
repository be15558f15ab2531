"""An application submitted to a cluster: a driver as in the tests of chaos, with executors.

How it is submitted is how a user must do it. The data source's Python processes are started by the
driver (to plan and to commit) and by the executors (to read and to write), all by one path, that of
PYSPARK_PYTHON: so the path is a relative one, and the driver's working folder has an `environment`,
too.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.chaos.driver import Driver
from tests.cluster.standalone import JAVA_OPTIONS, SPARK_HOME

QUERY = Path(__file__).with_name("query.py")


class Application(Driver):
    """The process of `spark-submit`, in client mode. Runs one query at a time."""

    def __init__(self, folder, cluster, archive):
        self.failpoints = folder / "failpoints"
        self.failpoints.mkdir()
        self.tasks = folder / "tasks.json"
        self._local = folder / "local"
        self._local.mkdir()
        self._log = folder / "application.log"
        self._result = None
        self._seen = set()
        (folder / "environment").symlink_to(sys.prefix)
        # `spark-submit` does not hand its standard input on to the program.
        orders = folder / "orders"
        os.mkfifo(orders)
        # As from a shell that knows nothing of this test's own Python.
        foreign = ("PYSPARK", "PYTHON", "VIRTUAL_ENV")
        environment = {n: v for n, v in os.environ.items() if not n.startswith(foreign)}
        environment |= {
            "SPARK_HOME": str(SPARK_HOME),
            "PYSPARK_PYTHON": "./environment/bin/python",
            "SPARK_EOS_FAILPOINTS": str(self.failpoints),
        }
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    SPARK_HOME / "bin" / "spark-submit",
                    *("--master", cluster.master_url),
                    *("--archives", f"{archive}#environment"),
                    *(part for pair in self._settings() for part in ("--conf", pair)),
                    *(QUERY, orders, self.tasks),
                ],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        # Open for both, because to open it for one waits for the other.
        self._process.stdin = os.fdopen(os.open(orders, os.O_RDWR), "wb")

    def close(self):
        """Remove the driver's own copy of the archive, too."""
        super().close()
        shutil.rmtree(self._local, ignore_errors=True)

    def _settings(self):
        settings = {
            "spark.executorEnv.SPARK_EOS_FAILPOINTS": self.failpoints,
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.driver.memory": "600m",
            "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -Djava.io.tmpdir={self._local}",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": self._local,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            # Both executors, before the first task.
            "spark.cores.max": "2",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "90s",
        }
        return [f"{name}={value}" for name, value in settings.items()]
