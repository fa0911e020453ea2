"""Save a file so that a reader sees the old one or the new one, never a half.

A file is written under no name where the system can (Linux), else under a temporary one, and takes
the place of the old in one step. A process that is killed in between may leave a file
``.expecta-*.tmp``; it is locked while its process lives, and the next save in the folder removes
what nobody holds. What is not a file (a device, a pipe) is written to, and stays what it is.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = re.compile(r"\.expecta-[0-9a-f]{16}\.tmp")
STALE_SECONDS = 86_400.0  # after which a temporary file is given up, where there are no locks
MODE = 0o666  # what `open` asks for; the system takes the umask off it
BINARY = getattr(os, "O_BINARY", 0)
DESCRIPTORS = re.compile(r"/proc/(?:self|\d+)(?:/task/\d+)?/fd|/dev/fd")


def replace_file(path: str, data: bytes) -> None:
    """Write a file in one step: on any failure the file that was there before is untouched.

    A link stays a link, and the file that it leads to is replaced. Into a device, a pipe or an
    open descriptor (``/dev/stdout``) the data are written as they are, not in one step.
    """
    with replacing_file(path) as file:
        file.write(data)


@contextmanager
def replacing_file(path: str) -> Iterator[BinaryIO]:
    """Open what takes the place of a file at the end of a block; see `replace_file`.

    If the block fails, the file that was there before is untouched.
    """
    in_block = False
    try:
        with _opened(path) as file:
            in_block = True
            yield file
            in_block = False
    except OSError as error:
        if in_block and (error.errno is None or error.filename is not None):
            raise  # of another file, which the block reads
        # Name the file the caller knows, rather than the temporary one; the system's
        # number decides which error this is, so it stays a FileNotFoundError and so on.
        raise OSError(error.errno, error.strerror, path) from error


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    descriptor, mode = _own_descriptor(path), _mode(path)
    if descriptor is not None:
        sys.stdout.flush()
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            yield stream
    elif stat.S_ISDIR(mode) or path.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    elif mode and not stat.S_ISREG(mode):
        with os.fdopen(os.open(path, os.O_WRONLY | BINARY), "wb") as stream:
            yield stream
    else:
        final = Path(os.path.realpath(path))
        _remove_stale(final.parent)
        with _replacement(final, mode) as file:
            yield file


def same_file(path: str | Path, other: str | Path) -> bool:
    """Whether two paths lead to one file, by any links; False where either is not there."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _mode(path: str) -> int:
    """Return what is at a path, behind links, and its permissions; 0 where nothing is."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return 0


def _own_descriptor(path: str) -> int | None:
    """Return the descriptor of this process that a path stands for, such as /dev/stdout's."""
    for _ in range(40):  # more links in a row than systems follow
        folder, name = os.path.split(os.path.abspath(path))
        folder = os.path.realpath(folder)
        if name.isdigit() and DESCRIPTORS.fullmatch(folder):
            own = folder in ("/dev/fd", os.path.realpath("/proc/self/fd"))
            return int(name) if own else None
        if not os.path.islink(path):
            return None
        path = os.path.join(folder, os.readlink(path))
    return None


@contextmanager
def _replacement(final: Path, mode: int) -> Iterator[BinaryIO]:
    temporary = final.with_name(f".expecta-{secrets.token_hex(8)}.tmp")
    unnamed = _open_unnamed(final.parent)
    try:
        if unnamed is not None:
            with unnamed:
                yield unnamed
                _settle(unnamed, mode)
                # linkat, which follows the link in /proc, is called where a folder is given
                link = f"/proc/self/fd/{unnamed.fileno()}"
                os.link(link, temporary, src_dir_fd=unnamed.fileno(), follow_symlinks=True)
                os.replace(temporary, final)
            return
        with _open_named(temporary) as named:
            yield named
            _settle(named, mode)
            if fcntl is not None:  # the lock is held to the end
                os.replace(temporary, final)
        if fcntl is None:  # an open file cannot be moved
            os.replace(temporary, final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _settle(file: BinaryIO, mode: int) -> None:
    """Hand the permissions of the file that is replaced on, and wait until all is written."""
    file.flush()
    if mode and hasattr(os, "fchmod"):
        with suppress(OSError):
            os.fchmod(file.fileno(), stat.S_IMODE(mode))
    os.fsync(file.fileno())


def _open_unnamed(folder: Path) -> BinaryIO | None:
    """Open a file that vanishes with its process, locked; None where there is no such thing."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        file = os.fdopen(os.open(folder, os.O_TMPFILE | os.O_WRONLY, MODE), "wb")
    except OSError:  # a file system without them; what else is wrong shows when it has a name
        return None
    _lock(file.fileno())
    return file


def _open_named(path: Path) -> BinaryIO:
    """Open a new file, locked."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY
    while True:
        file = os.fdopen(os.open(path, flags, MODE), "wb")
        _lock(file.fileno())
        if fcntl is None or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another process took it for a leftover before it was locked


def _lock(descriptor: int) -> None:
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks; nobody can take the file for stale
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _remove_stale(folder: Path) -> None:
    """Remove temporary files of processes that are no more."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_stale(entry)


def _remove_if_stale(entry: os.DirEntry[str]) -> None:
    if fcntl is None:
        if time.time() - entry.stat().st_mtime > STALE_SECONDS:
            os.unlink(entry.path)
        return
    descriptor = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:  # else its owner has begun another of the same name
            os.unlink(entry.path)
    finally:
        os.close(descriptor)
