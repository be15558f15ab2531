"""Driver. Find out which folders around the log are tables or checkpoints.

An object store has names of files and no folders. A listing there costs a request for each thousand
names. So `is_table` asks for single files, and never lists the commits of a table.
"""

import logging
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from spark_eos._log.files import FileStore
from spark_eos._log.location import is_log, table_uri

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

COMMITS: Final = "_delta_log"
# Each table has one of these: its first commit, or a checkpoint if that commit was removed.
_FILES_OF_A_TABLE: Final = (f"{COMMITS}/_last_checkpoint", f"{COMMITS}/{0:020}.json")
_METADATA: Final = "metadata"
# Spark writes to the first before a batch and to the second after it.
_BATCHES: Final = ("offsets", "commits")
# delta-rs has no exception class for an answer 403. These words stand for a file and a listing.
_DENIED: Final = ("lacked the necessary privileges", "403 Forbidden")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder. Two spellings of one folder give equal places."""

    root: str  # scheme and bucket of an object store; empty on a disk
    path: str  # without a slash at its end

    @classmethod
    def of(cls, location: str) -> "Place":
        """The place of a path, of a `file:` URI or of an object store's URI."""
        uri = table_uri(location)
        scheme, separator, rest = uri.partition("://")
        if not separator:
            return cls("", os.path.realpath(uri))
        bucket, _, path = rest.partition("/")
        # Hadoop's schemes for S3 and Azure name the same stores as the plain ones.
        scheme = re.sub(r"^s3[an]$", "s3", re.sub(r"^abfss$", "abfs", scheme.lower()))
        return cls(f"{scheme}://{bucket}", posixpath.normpath(f"/{path}").strip("/"))

    def __str__(self) -> str:
        return f"{self.root}/{self.path}" if self.root else self.path

    @property
    def parents(self) -> Iterator["Place"]:
        """The folders above, the nearest first."""
        place = self
        while place.path not in ("", "/"):
            place = replace(place, path=posixpath.dirname(place.path))
            yield place

    def child(self, name: str) -> "Place":
        """A folder inside."""
        return replace(self, path=posixpath.join(self.path, name))


@dataclass(frozen=True, slots=True)
class Entries:
    """The folders directly in a folder, and whether it has Spark's file `metadata`."""

    folders: frozenset[str] = frozenset()
    has_metadata: bool = False

    @property
    def has_table(self) -> bool:
        """Whether the folder is a Delta table."""
        return COMMITS in self.folders

    @property
    def has_checkpoint(self) -> bool:
        """Whether the folder is the checkpoint of a streaming query."""
        return self.has_metadata and not self.folders.isdisjoint(_BATCHES)


class Folders(Protocol):
    """A way to look at folders."""

    def is_table(self, place: Place) -> bool:
        """Whether the folder is a Delta table."""

    def is_log(self, place: Place) -> bool:
        """Whether the Delta table in the folder is a transaction log."""

    def is_checkpoint(self, place: Place) -> bool:
        """Whether the folder is the checkpoint of a streaming query."""

    def entries(self, place: Place) -> Entries:
        """What is in the folder. Links are left out."""


class DiskFolders:
    """Folders on a local disk. A folder that is missing, or may not be read, counts as empty."""

    def is_table(self, place: Place) -> bool:
        return os.path.isdir(f"{place.path}/{COMMITS}")

    def is_log(self, place: Place) -> bool:
        return is_log(str(place), {})

    def is_checkpoint(self, place: Place) -> bool:
        return os.path.isfile(f"{place.path}/{_METADATA}") and any(
            os.path.isdir(f"{place.path}/{name}") for name in _BATCHES
        )

    def entries(self, place: Place) -> Entries:
        try:
            with os.scandir(place.path) as found:
                folders = frozenset(e.name for e in found if e.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return Entries()
        return Entries(folders, has_metadata=os.path.isfile(f"{place.path}/{_METADATA}"))


class StoreFolders:
    """Folders on the object store of `store`. A folder that may not be read counts as empty."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    def is_table(self, place: Place) -> bool:
        return any(self._has_file(place, name) for name in _FILES_OF_A_TABLE)

    def is_log(self, place: Place) -> bool:
        return is_log(str(place), self._store.options)

    def is_checkpoint(self, place: Place) -> bool:
        return self._has_file(place, _METADATA) and any(
            any(self._list(place.child(name))) for name in _BATCHES
        )

    def entries(self, place: Place) -> Entries:
        files, folders = self._list(place)
        return Entries(frozenset(folders), has_metadata=_METADATA in files)

    def _list(self, place: Place) -> tuple[set[str], set[str]]:
        nothing: tuple[set[str], set[str]] = (set(), set())
        return _unless_denied(lambda: self._store.list_entries(place.path), nothing)

    def _has_file(self, place: Place, name: str) -> bool:
        path = posixpath.join(place.path, name)
        return _unless_denied(lambda: self._store.has_file(path), False)


def _unless_denied(ask: Callable[[], _T], denied: _T) -> _T:
    """Return the answer, or `denied` if this user may not ask. Raise every other failure."""
    try:
        return ask()
    except OSError as error:
        if not any(words in str(error) for words in _DENIED):
            raise
        _LOG.info("a folder may not be read, so it is not checked: %s", error)
        return denied
