"""Files are replaced in one step, whatever happens; what is no file is written to."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest

from expecta.common import atomic_files
from expecta.common.atomic_files import replace_file, same_file

OLD, NEW = b"old" * 1_000, b"new" * 1_000_000
SOURCE = Path(atomic_files.__file__)
# a process that imports nothing but the module
BEGIN = (
    f"import importlib.util as u; s = u.spec_from_file_location('a', {str(SOURCE)!r}); "
    "a = u.module_from_spec(s); s.loader.exec_module(a); "
)


def run(code, *arguments, **options):
    command = [sys.executable, "-I", "-c", BEGIN + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


def fork(work):
    """Start a process that does some work and nothing else, and return its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the work needs no lock that another thread may hold
        child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(1)
    return child


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["unnamed", "named", "without locks"])
def system(request, monkeypatch):
    """The ways that systems differ: Linux, macOS, Windows."""
    if request.param != "unnamed":
        monkeypatch.delattr(atomic_files.os, "O_TMPFILE", raising=False)
    if request.param == "without locks":
        monkeypatch.setattr(atomic_files, "fcntl", None)
    return request.param


def test_a_new_file_and_one_that_is_replaced(tmp_path, system):
    path = tmp_path / "file"
    replace_file(str(path), OLD)
    assert path.read_bytes() == OLD
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    replace_file(str(path), NEW)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["file"]


def test_links_stay_and_lead_to_the_new_file(tmp_path, system):
    (tmp_path / "folder").mkdir()
    target, link, chain = tmp_path / "folder" / "file", tmp_path / "link", tmp_path / "chain"
    link.symlink_to(Path("folder") / "file")
    chain.symlink_to("link")
    for data in (OLD, NEW):  # the first time there is no file yet
        replace_file(str(chain), data)
        assert chain.is_symlink()
        assert link.is_symlink()
        assert not target.is_symlink()
        assert target.read_bytes() == data
    assert names(tmp_path) == ["chain", "folder", "link"]
    link.unlink()
    link.symlink_to("chain")
    with pytest.raises(OSError, match="link") as caught:
        replace_file(str(link), NEW)
    assert caught.value.errno == errno.ELOOP


def test_folders_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", f"{tmp_path / 'new'}{os.sep}"):
        with pytest.raises(IsADirectoryError, match="Is a directory"):
            replace_file(str(path), NEW)
    assert names(tmp_path) == ["folder"]


def test_devices_are_written_to(tmp_path):
    node = tmp_path / "null"
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        node = Path("/dev/null")
        if os.access("/dev", os.W_OK):
            pytest.skip("only a device that cannot be lost is written to")
    (tmp_path / "link").symlink_to(node)
    for path in (node, tmp_path / "link"):
        replace_file(str(path), NEW)
        assert stat.S_ISCHR(path.stat().st_mode)
    assert (tmp_path / "link").is_symlink()
    if Path("/dev/full").is_char_device() and not os.access("/dev", os.W_OK):
        with pytest.raises(OSError, match="/dev/full"):
            replace_file("/dev/full", NEW)


def test_pipes_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    replace_file(str(tmp_path / "pipe"), NEW)
    reader.join(10)
    assert received == [NEW]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_sockets_stay(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with pytest.raises(OSError, match="socket"):
            replace_file(str(path), NEW)
        assert stat.S_ISSOCK(path.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "link"])
def test_standard_output_goes_on(tmp_path, name):
    code = "import sys; print('before'); a.replace_file(sys.argv[1], b'it\\n'); print('after')"
    if name == "link":
        (tmp_path / "link").symlink_to("/dev/stdout")
        name = tmp_path / "link"
    assert run(code, name).stdout == b"before\nit\nafter\n"
    command = [sys.executable, "-I", "-c", BEGIN + code, str(name)]
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(command, stdout=out, timeout=60, check=True)
    assert (tmp_path / "out").read_bytes() == b"before\nit\nafter\n"


def test_same_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    (tmp_path / "link").symlink_to("file")
    os.link(path, tmp_path / "hard")
    for other in ("file", "link", "hard", f"../{tmp_path.name}/file"):
        assert same_file(path, tmp_path / other)
    assert not same_file(path, tmp_path)
    assert not same_file(path, tmp_path / "nowhere")


# -- what goes wrong ------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace", "link"])
def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch, system, step):
    if step == "link" and system != "unnamed":
        pytest.skip("no file is linked")
    path = tmp_path / "file"
    path.write_bytes(OLD)
    for problem in (OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()):

        def fail(*_, problem=problem, **__):
            raise problem

        with monkeypatch.context() as patch:
            patch.setattr(atomic_files.os, step, fail)
            with pytest.raises(type(problem)) as caught:
                replace_file(str(path), NEW)
        assert isinstance(problem, KeyboardInterrupt) or caught.value.filename == str(path)
        assert path.read_bytes() == OLD
        assert names(tmp_path) == ["file"]


def test_a_file_that_may_not_grow(tmp_path):
    """The system stops the write half-way, as a full disk does."""
    path = tmp_path / "file"
    path.write_bytes(OLD)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    code = "import sys; a.replace_file(sys.argv[1], b'new' * 1_000_000)"
    for before in ("", "del a.os.O_TMPFILE; " if hasattr(os, "O_TMPFILE") else ""):
        result = run(before + code, path, preexec_fn=limit)
        assert b"File too large" in result.stderr
        assert path.read_bytes() == OLD
        assert names(tmp_path) == ["file"]


def test_a_full_disk(tmp_path, system):
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    ).returncode:
        pytest.skip("no file system can be mounted")
    try:
        path = tmp_path / "file"
        replace_file(str(path), OLD)
        with pytest.raises(OSError, match="No space left") as caught:
            replace_file(str(path), NEW)
        assert caught.value.errno == errno.ENOSPC
        assert path.read_bytes() == OLD
        assert names(tmp_path) == ["file"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_folder_that_may_not_be_written_to(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "file"
    path.write_bytes(OLD)
    folder.chmod(0o555)
    monkeypatch.chdir(folder)  # to which another user may have no way

    def save():
        if os.getuid() == 0:
            os.setuid(65534)
        try:
            replace_file("file", NEW)
        except PermissionError as problem:
            os._exit(42 if problem.filename == "file" else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(fork(save), 0)[1]) == 42
    folder.chmod(0o755)
    assert path.read_bytes() == OLD
    assert names(folder) == ["file"]


def kill_while_saving(path, delays, saves):
    """Kill processes that save by one function after the other; count what is there after."""
    seen = Counter()

    def save():
        os.write(told, b"x")
        while True:
            for function in saves:
                function(path)

    for delay in delays:
        begun, told = os.pipe()
        child = fork(save)
        os.read(begun, 1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        os.close(begun)
        os.close(told)
        seen[path.read_bytes()] += 1
    return seen


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_killed_processes_leave_a_whole_file(tmp_path, system):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    saves = [lambda path, data=data: replace_file(str(path), data) for data in (OLD, NEW)]
    seen = kill_while_saving(path, [0.0005 * k for k in range(12)], saves)
    assert seen[OLD] + seen[NEW] == 12
    if system == "without locks":
        for leftover in tmp_path.glob(".expecta-*.tmp"):
            os.utime(leftover, (0, 0))
    replace_file(str(path), NEW)
    assert names(tmp_path) == ["file"]


def test_leftovers_go_and_what_is_held_stays(tmp_path):
    dead, held = (tmp_path / f".expecta-{digit * 16}.tmp" for digit in "01")
    mine = [tmp_path / name for name in (".expecta-me.tmp", ".expecta-0123456789abcdef.tmp.txt")]
    for path in (dead, *mine):
        path.write_bytes(OLD)
    with atomic_files._open_named(held):
        replace_file(str(tmp_path / "file"), NEW)
        assert names(tmp_path) == sorted(["file", held.name, *(path.name for path in mine)])
    replace_file(str(tmp_path / "file"), NEW)
    assert names(tmp_path) == sorted(["file", *(path.name for path in mine)])


def test_a_file_begun_again_under_its_name_stays(tmp_path, monkeypatch):
    """Two savers see a file before it is locked; one removes it, and its owner begins again."""
    if atomic_files.fcntl is None:
        pytest.skip("no locks here")
    path = tmp_path / f".expecta-{'0' * 16}.tmp"
    path.write_bytes(OLD)
    (entry,) = os.scandir(tmp_path)
    seen = os.open(path, os.O_RDWR)
    path.unlink()
    with atomic_files._open_named(path):
        monkeypatch.setattr(os, "open", lambda *given: seen)
        atomic_files._remove_if_stale(entry)
        monkeypatch.undo()
        assert path.exists()


def test_without_locks_only_old_leftovers_go(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "fcntl", None)
    old, young = (tmp_path / f".expecta-{digit * 16}.tmp" for digit in "01")
    for path in (old, young):
        path.write_bytes(OLD)
    os.utime(old, (0, 0))
    replace_file(str(tmp_path / "file"), NEW)
    assert names(tmp_path) == [young.name, "file"]


def test_two_writers_at_once(tmp_path, system):
    path, problems = tmp_path / "file", []

    def write(data):
        try:
            for _ in range(30):
                replace_file(str(path), data)
        except OSError as problem:
            problems.append(problem)

    replace_file(str(path), OLD)
    writers = [threading.Thread(target=write, args=(data,)) for data in (OLD, NEW, OLD)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert path.read_bytes() in (OLD, NEW)
    assert problems == []
    assert names(tmp_path) == ["file"]
