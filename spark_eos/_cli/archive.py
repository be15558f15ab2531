"""Command line. `spark-eos archive`: pack this environment for `spark-submit --archives`.

Executors then need only Java and Spark. The unpacked archive works in any folder. It contains
`bin/python`, the standard library, the run-time requirements of spark-eos, and their shared
libraries except glibc. It contains no jars and no development tools.

Bytecode is packed as unchecked. Unpacking changes the times of the sources, so each executor would
otherwise compile a thousand files before its first task.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import io
import marshal
import os
import re
import site
import struct
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "spark-eos"
PACKAGES: Final = ("spark_eos", "pyspark_txnkafka")
# An executor has Spark's jars but no pyspark. The driver may run from the archive too.
NEEDED_EXTRAS: Final = re.compile(r"\b(?:jobs|pyspark)\b")

# No running job imports these, from the standard library or from a package.
UNUSED: Final = frozenset(
    {"__pycache__", "ensurepip", "idlelib", "include", "lib2to3", "test", "tests", "tkinter"}
    | {"dist-packages", "site-packages", "turtledemo"}
)
UNUSED_FILES: Final = re.compile(r"_(?:ctypes_test|test|tkinter|xx)\w*\.c.*\.so|.*\.(?:a|pth)")
UNUSED_OF_PYSPARK: Final = frozenset({"bin", "data", "examples", "jars", "python", "sbin"})

# glibc must match the machine's loader, so the machine's own is used.
GLIBC: Final = re.compile(
    r"(?:ld-linux.*|lib(?:anl|c|dl|m|mvec|nsl|pthread|resolv|rt|util))\.so(?:\.\d+)?"
)
LIBRARY: Final = re.compile(r"^\s+(\S+) => (/.+) \(0x", re.MULTILINE)

# A flag of PEP 552: the header has a hash of the source, and Python does not check it.
UNCHECKED_HASH: Final = (0b01).to_bytes(4, "little")
# A fixed time gives equal archives of equal files. Every tool accepts 1980-01-01.
TIME: Final = 315_532_800
INTERPRETER: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
LAUNCHER: Final = f"""\
#!/bin/sh
# Runs the interpreter beside this file, with the libraries of the archive.
self=$0
while [ -L "$self" ]; do
    target=$(readlink "$self")
    case $target in
        /*) self=$target ;;
        *) self=${{self%/*}}/$target ;;
    esac
done
home=$(CDPATH='' cd -P -- "${{self%/*}}/.." && pwd) || exit 1
# The interpreter finds its home by its own path. PYTHONHOME may name another one.
unset PYTHONHOME
export PYTHONNOUSERSITE=1
export LD_LIBRARY_PATH="$home/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$home/bin/{INTERPRETER}" "$@"
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command to the command line."""
    text = "pack this environment for spark-submit --archives"
    archive = commands.add_parser("archive", help=text, description=f"{text.capitalize()}.")
    archive.add_argument("target", type=Path, help="the file to write, <name>.tar.gz")
    archive.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the archive."""
    target: Path = arguments.target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    write(part, collect())
    part.replace(target)
    print(f"{target}: {target.stat().st_size / 1e6:.0f} MB")
    return 0


def collect() -> dict[str, Path]:
    """The files to pack, by their names in the archive. Launcher and bytecode come later."""
    standard = Path(sysconfig.get_path("stdlib"))
    library = standard.relative_to(sys.base_prefix)
    # The last one is inside the library. Debian has another name for it.
    packages = Path(site.getsitepackages(["/"])[-1]).relative_to("/")
    found = {f"bin/{INTERPRETER}": Path(sys.executable).resolve()}
    found |= {str(library / name): path for name, path in _tree(standard)}
    required: set[str] = set()
    _require(DISTRIBUTION, required)
    for name in sorted(required):
        found |= {str(packages / file): path for file, path in _installed(name)}
    for name in PACKAGES:
        here = Path(__file__).parents[2] / name
        found |= {str(packages / name / file): path for file, path in _tree(here)}
    known = {path.resolve() for path in found.values()}
    found |= {f"lib/{name}": path for name, path in _libraries(known) if path not in known}
    return found


def write(target: Path, found: dict[str, Path]) -> None:
    """Write these files as a tar, in the order of their names, with bytecode for Python files."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name in ("bin/python", "bin/python3"):
            _add(tar, name, LAUNCHER.encode(), 0o755)
        for name, path in sorted(found.items()):
            content = path.read_bytes()
            _add(tar, name, content, 0o755 if os.access(path, os.X_OK) else 0o644)
            if name.endswith(".py") and (code := _bytecode(path, content)) is not None:
                _add(tar, importlib.util.cache_from_source(name), code, 0o644)


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, TIME
    tar.addfile(entry, io.BytesIO(content))


def _bytecode(path: Path, source: bytes) -> bytes | None:
    """The bytecode beside the source if it is up to date, else newly compiled bytecode."""
    stamp = struct.pack("<III", 0, int(path.stat().st_mtime) & 0xFFFFFFFF, len(source))
    head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source)
    there = Path(importlib.util.cache_from_source(str(path)))
    content = there.read_bytes() if there.is_file() else b""
    if content.startswith(importlib.util.MAGIC_NUMBER + stamp):
        return head + content[len(head) :]
    try:
        return head + marshal.dumps(compile(source, path.name, "exec", dont_inherit=True))
    except (SyntaxError, ValueError):
        # Some packages contain files for other versions of Python.
        return None


def _tree(root: Path) -> Iterator[tuple[Path, Path]]:
    """The files below a folder that a running job may need, with their relative names."""
    for folder, below, names in os.walk(root, followlinks=True):
        below[:] = [name for name in below if not _is_unused(name)]
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not UNUSED_FILES.fullmatch(name):
                yield path.relative_to(root), path


def _is_unused(folder: str) -> bool:
    # `config-3.11-…` is for linking against Python.
    return folder in UNUSED or folder.startswith("config-")


def _installed(name: str) -> Iterator[tuple[Path, Path]]:
    for file in metadata.distribution(name).files or ():
        first, *rest = file.parts
        unused = UNUSED_FILES.fullmatch(file.name) or any(map(_is_unused, file.parts[:-1]))
        if first == ".." or unused or (first == "pyspark" and rest[0] in UNUSED_OF_PYSPARK):
            continue
        # A development install has the packages of spark-eos elsewhere: `collect` adds them.
        if name != DISTRIBUTION or first.endswith(".dist-info"):
            yield Path(file), Path(str(file.locate()))


def _require(name: str, found: set[str]) -> None:
    """Add a distribution and all of its run-time requirements."""
    requirements = metadata.requires(name) or ()
    found.add(name)
    for requirement in requirements:
        needed, _, marker = requirement.partition(";")
        other = re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", needed.strip())[0]).lower()
        is_extra = "extra" in marker and not (name == DISTRIBUTION and NEEDED_EXTRAS.search(marker))
        if is_extra or other in found:
            continue
        try:
            _require(other, found)
        except metadata.PackageNotFoundError as missing:
            # A requirement with a marker is for another platform, or pip would have failed.
            if not marker or missing.name != other:
                raise


def _libraries(files: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """The shared libraries that the loader finds for these files, with the names it looks for."""
    native = [path for path in sorted(files) if ".so" in path.suffixes or path.name == INTERPRETER]
    command = ["ldd", *map(str, native)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    for name, path in LIBRARY.findall(answer.stdout):
        if not GLIBC.fullmatch(Path(name).name):
            yield Path(name).name, Path(path).resolve()
