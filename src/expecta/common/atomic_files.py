"""Saving a file so that a reader sees the old one or the new one, never a half."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def replace_file(path: str, data: bytes) -> None:
    """Write a file beside its final place, then move it there in one step.

    On any failure the file that was there before is untouched and nothing is left behind.
    """
    final = Path(os.path.realpath(path))  # a link stays a link
    temporary = final.with_name(f".expecta-{secrets.token_hex(8)}.tmp")
    try:
        # The mode is what `open` would ask for; the system takes the umask off it.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            with suppress(OSError):  # a file that is replaced hands its permissions on
                temporary.chmod(final.stat().st_mode & 0o7777)
            os.fsync(file.fileno())
        os.replace(temporary, final)
    except OSError as error:
        _remove(temporary)
        # Name the file the caller knows, rather than the temporary one; the system's
        # number decides which error this is, so it stays a FileNotFoundError and so on.
        raise OSError(error.errno, error.strerror, path) from error
    except BaseException:
        _remove(temporary)
        raise


def _remove(temporary: Path) -> None:
    with suppress(OSError):
        temporary.unlink()
