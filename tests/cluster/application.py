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

ROOT = Path(__file__).parents[2]
QUERY = Path(__file__).with_name("query.py")


class OnCluster:
    """Where it is submitted from: a folder, an environment and options of `spark-submit`."""

    def __init__(self, folder, cluster, archive, **more):
        self.folder = folder
        (folder / "environment").symlink_to(sys.prefix)
        self._local = folder / "local"
        self._local.mkdir()
        # As from a shell that knows nothing of this test's own Python.
        foreign = ("PYSPARK", "PYTHON", "VIRTUAL_ENV")
        self.environment = {n: v for n, v in os.environ.items() if not n.startswith(foreign)}
        self.environment |= {
            "SPARK_HOME": str(SPARK_HOME),
            "PYSPARK_PYTHON": "./environment/bin/python",
        }
        logging = f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'}"
        settings = {
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": f"{JAVA_OPTIONS} -Djava.io.tmpdir={self._local}",
            "spark.driver.memory": "800m",
            "spark.driver.extraJavaOptions": (
                f"{JAVA_OPTIONS} {logging} -Djava.io.tmpdir={self._local}"
            ),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": self._local,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            # Both executors, before the first task.
            "spark.cores.max": "2",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "90s",
            **more,
        }
        self.options = [
            *("--properties-file", str(ROOT / "conf" / "cluster" / "spark.conf")),
            *("--master", cluster.master_url),
            *("--archives", f"{archive}#environment"),
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        ]

    def close(self):
        """Remove the driver's own copies of the archive."""
        shutil.rmtree(self._local, ignore_errors=True)


class Application(Driver):
    """The process of `spark-submit`, in client mode. Runs one query at a time."""

    def __init__(self, place):
        self.tasks = place.folder / "tasks.json"
        self._place = place
        super().__init__(place.folder)

    def _start(self, output):
        # `spark-submit` does not hand its standard input on to the program.
        orders = self._place.folder / "orders"
        os.mkfifo(orders)
        failpoints = {"SPARK_EOS_FAILPOINTS": str(self.failpoints)}
        process = subprocess.Popen(
            [
                SPARK_HOME / "bin" / "spark-submit",
                *self._place.options,
                *("--conf", f"spark.executorEnv.SPARK_EOS_FAILPOINTS={self.failpoints}"),
                *(QUERY, orders, self.tasks),
            ],
            cwd=self._place.folder,
            env=self._place.environment | failpoints,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        # Open for both, because to open it for one waits for the other.
        process.stdin = os.fdopen(os.open(orders, os.O_RDWR), "wb")
        return process

    def close(self):
        super().close()
        self._place.close()
