"""One run: world, nemesis, judge, report."""

import os
import random
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from chaos.checker import judge
from chaos.faults import FAULTS
from chaos.history import History, load
from chaos.nemesis import Nemesis
from chaos.report import write
from chaos.run import DEFAULT_BOUNDS
from chaos.setting import command, setting
from chaos.workload import World

BUILD = Path("build/chaos")
MASTER = "local-cluster[2,1,1024]"
TIMEOUTS_MS = (12_000, 25_000, 60_000)
RATE = 100
# Disks, checkpoint and logs of a run: for a look after it. The judge needs the history alone.
SCRATCH = "scratch"


def run(
    seed,
    minutes,
    names=None,
    *,
    master=MASTER,
    rate=RATE,
    timeout_ms=None,
    bound_s=None,
    faults=None,
    build=BUILD,
    echo=lambda _: None,
):
    """Run the bench for some minutes, or until so many faults were given.

    Returns the verdict and the path of the report.
    """
    given = {
        "--master": master if master != MASTER else None,
        "--rate": rate if rate != RATE else None,
        "--transaction-timeout-ms": timeout_ms,
        "--bound-s": bound_s,
        "--faults": faults,
    }
    names = sorted(names or FAULTS)
    timeout_ms = timeout_ms or random.Random(seed).choice(TIMEOUTS_MS)
    bounds = DEFAULT_BOUNDS | ({"recovery_s": bound_s, "stable_s": bound_s} if bound_s else {})
    folder = (build / str(seed)).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    history = History(folder / "history.jsonl", echo)
    world = World(
        folder / SCRATCH, history, rate=rate, transaction_timeout_ms=timeout_ms, master=master
    )
    history.add(
        "run",
        seed=seed,
        minutes=minutes,
        nemeses={name: FAULTS[name].__doc__ for name in names},
        bounds=bounds,
        setting=setting(master, rate, timeout_ms),
        product=world.product,
        command=command(seed, minutes, names, given),
        path=os.path.relpath(history.path),
        wall_text=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    try:
        world.start()
        deadline = time.monotonic() + 60 * minutes
        nemesis = Nemesis(world, history, seed, names, bounds["recovery_s"])
        nemesis.run_until(deadline, faults)
        world.finish()
    finally:
        world.close()
        history.close()
    return judge_stored(history.path, build)


def judge_stored(path, build=BUILD):
    """Judge a history that is on disk, and write its report."""
    events = load(path)
    verdict = judge(events)
    return verdict, write(verdict, events, build)
