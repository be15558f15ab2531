"""A set of jars is complete or absent, and is fetched once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import Thread

import pytest

from spark_eos.testing import EmbeddedKafkaError
from spark_eos.testing._embedded import jars
from spark_eos.testing._embedded.ivy import Coordinate, RetrievalError

SET = jars.JarSet(folder="some", choices=(("g:wanted:2",), ("g:instead:1",)))


class FakeIvy:
    """Stands for a registry that lacks some coordinates."""

    def __init__(self, missing: set[str]) -> None:
        self.missing = missing
        self.asked: list[str] = []

    def retrieve(self, coordinates: Iterable[Coordinate], folder: Path, **_: object) -> None:
        names = [item.name for item in coordinates]
        self.asked += names
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.jar").touch()
            if name in self.missing:
                raise RetrievalError(f"{name}: not found")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(jars.KAFKA_JARS_VARIABLE, raising=False)
    monkeypatch.setattr(jars, "RETRY_PAUSE_S", 0.0)
    return tmp_path / "spark-eos"


def _use(monkeypatch: pytest.MonkeyPatch, missing: set[str]) -> FakeIvy:
    ivy = FakeIvy(missing)
    monkeypatch.setattr(jars, "retrieve", ivy.retrieve)
    return ivy


def test_set_is_fetched_once(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    ivy = _use(monkeypatch, missing=set())
    assert jars.fetch(SET) == jars.fetch(SET) == cache / "some"
    assert ivy.asked == ["wanted"]


def test_second_choice_is_taken_and_nothing_of_the_first_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _use(monkeypatch, missing={"wanted"})
    assert [jar.name for jar in jars.fetch(SET).glob("*.jar")] == ["instead.jar"]


def test_failed_fetch_leaves_nothing_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    ivy = _use(monkeypatch, missing={"wanted", "instead"})
    with pytest.raises(EmbeddedKafkaError, match=r"g:wanted:2 in 3 attempts: .*Check the network"):
        jars.fetch(SET)
    assert len(ivy.asked) == 6
    assert [path.name for path in cache.iterdir()] == ["some.lock"]


def test_folder_without_its_mark_is_fetched_again(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    _use(monkeypatch, missing=set())
    (cache / "some").mkdir(parents=True)
    (cache / "some" / "half.jar").touch()
    assert [jar.name for jar in jars.fetch(SET).glob("*.jar")] == ["wanted.jar"]


def test_two_at_once_fetch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ivy = _use(monkeypatch, missing=set())
    threads = [Thread(target=jars.fetch, args=(SET,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ivy.asked == ["wanted"]


def test_chosen_folder_without_a_broker_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(jars.KAFKA_JARS_VARIABLE, str(tmp_path))
    with pytest.raises(EmbeddedKafkaError, match=f"{jars.KAFKA_JARS_VARIABLE}={tmp_path} holds no"):
        jars.kafka_jars()


def test_chosen_folder_with_a_broker_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kafka_2.13-4.3.1.jar").touch()
    monkeypatch.setenv(jars.KAFKA_JARS_VARIABLE, str(tmp_path))
    assert jars.kafka_jars() == tmp_path
