"""The host as a device: the card's kernels by the host's compiler, one thread after the other.

The threads of a kernel with barriers run as coroutines, in ascending order between two barriers or,
by ``REVERSED``, in descending order: what depends on their order is a race.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

KINDS = {  # of arguments: in C, and here
    "pointer": ("void*", ctypes.c_void_p),
    "i64": ("long long", ctypes.c_longlong),
    "int": ("int", ctypes.c_int),
}
COROUTINES = """
#include <setjmp.h>
#include <ucontext.h>
#include <functional>
static ucontext_t host_begin, host_thread;
static jmp_buf host_block, host_place[256];
static char host_stacks[256][1 << 16];
static int host_at;
static bool host_started[256], host_ended[256];
static std::function<void()> host_work;
void host_barrier() {
  if (!_setjmp(host_place[host_at])) _longjmp(host_block, 1);
}
static void host_main() {
  for (;;) {
    host_work();
    host_ended[host_at] = true;
    host_barrier();
  }
}
static void host_go_on() {
  if (_setjmp(host_block)) return;
  if (host_started[host_at]) _longjmp(host_place[host_at], 1);
  host_started[host_at] = true;
  getcontext(&host_thread);
  host_thread.uc_stack.ss_sp = host_stacks[host_at];
  host_thread.uc_stack.ss_size = sizeof(host_stacks[0]);
  makecontext(&host_thread, host_main, 0);
  swapcontext(&host_begin, &host_thread);
}
static void run_block() {
  for (int t = 0; t < 256; ++t) host_ended[t] = false;
  for (bool more = true; more;) {
    more = false;
    for (int u = 0; u < 256; ++u) {
      host_at = REVERSED ? 255 - u : u;
      if (host_ended[host_at]) continue;
      threadIdx = {host_at, 0, 0};
      host_go_on();
      more |= !host_ended[host_at];
    }
  }
}
"""


def need_compiler():
    """Skip a test that runs the card's kernels on the host, where nothing can compile them."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler to run the card's kernels here")


class HostDevice:
    """The host as a device: each block and thread one after the other."""

    full, failures = MemoryError, ()

    def __init__(self, memory=1 << 26, *, descending=False):
        self.memory, self.descending = memory, descending

    def compile(self, text, options):
        return _host_kernels(text, (*options, ("REVERSED", str(int(self.descending)))))

    def put(self, array):
        return np.array(array, order="C")

    def get(self, array, out):
        out[...] = array.reshape(-1)[: out.size].reshape(out.shape)

    def fill(self, array, values):
        array[: values.size] = values.reshape(-1)

    def empty(self, size, dtype):
        """Take memory, filled with what no kernel should read."""
        return np.full(max(1, size), np.nan if np.dtype(dtype).kind == "f" else 0, dtype)

    def launch(self, kernel, grid, arguments):
        passed = [a.ctypes.data if isinstance(a, np.ndarray) else int(a) for a in arguments]
        kernel(*grid, 256, *passed)

    def beside(self, work):
        """Keep launches until they are needed: what does not wait for them is done without."""
        self.kept = work

    def join(self):
        self.kept()

    def staging(self, size, dtype):
        return self.empty(size, dtype)

    def send(self, array, staged):
        self.fill(array, staged)

    def receive(self, staged, array):
        self.get(array, staged)

    def mark(self, slot):
        pass

    def wait(self, slot):
        pass

    def adopt(self, given):
        return given.array

    def copy(self, to, source):
        to[...] = source

    def answer(self, array):
        return CardArray(array)

    def replay(self, kept, key, work):
        work()


class CardArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array like CuPy's: NumPy's functions take it, but not beside NumPy's own arrays."""

    def __init__(self, array):
        self.array = np.asarray(array)
        self.dtype, self.shape, self.ndim = self.array.dtype, self.array.shape, self.array.ndim

    def __dlpack_device__(self):
        return 2, 0  # as memory of a card

    def __array__(self, *given, **more):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc, method, *given, **more):
        return _on_card(getattr(ufunc, method), given, more)

    def __array_function__(self, function, types, given, more):
        return _on_card(function, given, more, mixed=function is np.asarray)

    def __getitem__(self, key):
        return CardArray(self.array[_taken_off(key)])

    def __setitem__(self, key, value):
        self.array[_taken_off(key)] = _taken_off(value)

    def __len__(self):
        return len(self.array)

    def __bool__(self):
        return bool(self.array)

    def __int__(self):
        return int(self.array)

    def __getattr__(self, name):
        if name.startswith("_"):  # NumPy would find the array behind it
            raise AttributeError(name)
        method = getattr(self.array, name)
        if not callable(method):
            return CardArray(method) if isinstance(method, np.ndarray) else method
        return lambda *given, **more: _on_card(method, given, more)


def _on_card(function, given, more, mixed=False):
    """Call a function of NumPy with what lies on the card."""
    out = function(
        *(_taken_off(a, mixed) for a in given), **{k: _taken_off(a) for k, a in more.items()}
    )
    return CardArray(out) if isinstance(out, np.ndarray | np.generic) else out


def _taken_off(a, mixed=False):
    if isinstance(a, tuple | list):
        return type(a)(_taken_off(b, mixed) for b in a)
    if isinstance(a, np.ndarray) and a.ndim and not mixed:
        raise TypeError("an array of the host beside one on the card")
    return a.array if isinstance(a, CardArray) else a


class LostDevice(HostDevice):
    """A card that fails at its first launch."""

    failures = (ConnectionError,)

    def launch(self, kernel, grid, arguments):
        raise ConnectionError("the card fell off the bus")


def _signatures(text):
    """Return the kinds of the arguments of each kernel of a text."""
    found = re.findall(r'extern "C" KERNEL\([^)]*\) (\w+)\((.*?)\) \{', text, re.DOTALL)
    kernels = {}
    for name, arguments in found:
        plain = re.sub(r"/\*.*?\*/", "", arguments, flags=re.DOTALL)
        kernels[name] = [
            "pointer" if "*" in given else given.replace("const ", "").split()[0]
            for given in plain.split(",")
        ]
    return kernels


@cache
def _host_kernels(text, options):
    """Compile every kernel as a loop over its blocks and threads."""
    signatures = _signatures(text)
    barriers = "BARRIER;" in text
    loops = []
    for name, kinds in signatures.items():
        given = ", ".join(f"{KINDS[kind][0]} a{k}" for k, kind in enumerate(kinds))
        passed = ", ".join(
            f"any(a{k})" if kind == "pointer" else f"a{k}" for k, kind in enumerate(kinds)
        )
        threads = (
            "run_block();"
            if barriers
            else "for (int t = 0; t < threads; ++t) { threadIdx = {t, 0, 0}; host_work(); }"
        )
        loops.append(
            f'extern "C" void host_{name}(int gx, int gy, int gz, int threads, {given}) {{\n'
            "  gridDim = {gx, gy, gz}; blockDim = {threads, 1, 1};\n"
            f"  {'' if barriers else 'auto '}host_work = [&] {{ {name}({passed}); }};\n"
            "  for (int z = 0; z < gz; ++z) for (int y = 0; y < gy; ++y)\n"
            f"    for (int x = 0; x < gx; ++x) {{ blockIdx = {{x, y, z}}; {threads} }}\n}}\n"
        )
    any_pointer = (
        "struct any { void* p; any(void* p) : p(p) {} "
        "template <class T> operator T*() { return (T*)p; } };"
    )
    source = "\n".join([text, any_pointer, COROUTINES if barriers else "", *loops])
    flags = [f"-D{name}={value}" for name, value in (*options, ("ON_HOST", "1"))]
    key = hashlib.sha256(repr((source, flags)).encode()).hexdigest()[:24]
    library = Path(tempfile.gettempdir()) / f"expecta-kernels-{os.getuid()}" / f"{key}.so"
    if not library.exists():
        library.parent.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = Path(folder) / "kernels.so"
            command = ["c++", "-O1", "-std=c++17", "-w", "-shared", "-fPIC", "-Wl,-Bsymbolic"]
            command.append("-U_FORTIFY_SOURCE")  # which refuses jumps between stacks
            try:
                subprocess.run(
                    [*command, *flags, "-x", "c++", "-", "-o", str(made)],
                    input=source.encode(),
                    check=True,
                )
            except (OSError, subprocess.CalledProcessError) as problem:
                raise RuntimeError(f"the host's C++ compiler failed: {problem}") from None
            made.replace(library)
    loaded = ctypes.CDLL(str(library))
    kernels = {}
    for name, kinds in signatures.items():
        kernels[name] = loaded[f"host_{name}"]
        kernels[name].argtypes = [ctypes.c_int] * 4 + [KINDS[kind][1] for kind in kinds]
        kernels[name].restype = None
    return kernels
