"""Run kernels on a card."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from expecta.common.errors import DeviceError

Array = npt.NDArray[Any]
Options = tuple[tuple[str, str], ...]


class Device(Protocol):
    """Memory and kernels of one device."""

    memory: int  # bytes that a walk may use
    full: type[Exception]  # what is raised when memory is used up
    failures: tuple[type[Exception], ...]  # what else may be raised

    def compile(self, text: str, options: Options) -> dict[str, Any]:
        """Compile the kernels of a text."""

    def put(self, array: Array) -> Any:
        """Copy an array to the device."""

    def get(self, array: Any, out: Array) -> None:
        """Copy an array from the device."""

    def empty(self, size: int, dtype: Any) -> Any:
        """Take memory."""

    def launch(self, kernel: Any, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Start a kernel with blocks of 256 threads."""

    def fill(self, array: Any, values: Array) -> None:
        """Copy values to the begin of an array on the device."""

    def beside(self, work: Callable[[], object]) -> None:
        """Do launches that need not wait for those that follow, nor these for them."""

    def join(self) -> None:
        """Have what follows wait for them."""

    def staging(self, size: int, dtype: Any) -> Array:
        """Take memory of the host that the device copies from and to by itself."""

    def send(self, array: Any, staged: Array) -> None:
        """Begin to copy from such memory to the begin of an array on the device."""

    def receive(self, staged: Array, array: Any) -> None:
        """Begin to copy the begin of an array on the device to such memory."""

    def mark(self, slot: int) -> None:
        """Remember, in one of a few slots, what was begun so far."""

    def wait(self, slot: int) -> None:
        """Wait until what a slot remembers is done."""

    def adopt(self, given: Any) -> Any:
        """Return an array on the device that others made, as one of its own."""

    def copy(self, to: Any, source: Any) -> None:
        """Begin to copy from one array on the device to another."""

    def answer(self, array: Any) -> Any:
        """Return an array on the device for others, once all that was begun is done."""

    def replay(self, kept: dict[Any, Any] | None, key: Any, work: Callable[[], None]) -> None:
        """Do the launches of ``work``; what is kept under the key may be replayed."""


class CudaDevice:
    """A card, by CuPy. One walk at a time; after a fork the child has none."""

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError:
            raise DeviceError(
                "device='cuda' needs CuPy: pip install 'expecta[gpu]', or use device='cpu'"
            ) from None
        self.cupy = cupy
        errors = cupy.cuda
        self.full: type[Exception] = errors.memory.OutOfMemoryError
        self.failures: tuple[type[Exception], ...] = (
            errors.runtime.CUDARuntimeError,
            errors.driver.CUDADriverError,
            errors.compiler.CompileException,
        )
        try:
            if cupy.cuda.runtime.getDeviceCount() < 1:
                raise DeviceError("there is no CUDA card on this machine: use device='cpu'")
            free, _ = cupy.cuda.runtime.memGetInfo()
        except self.failures as problem:
            raise DeviceError(f"no CUDA card can be used: {problem}; use device='cpu'") from None
        self.memory = min(free // 4, 1 << 34)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._marks: dict[int, Any] = {}
        self._compiled: dict[tuple[str, Options], dict[str, Any]] = {}
        self._side: Any = None  # a second stream, with events where it leaves and joins the first

    def compile(self, text: str, options: Options) -> dict[str, Any]:
        """Compile for the card at hand, once; CuPy keeps the result on disk, too."""
        if (text, options) not in self._compiled:
            self._compiled[text, options] = self._compile(text, options)
        return self._compiled[text, options]

    def _compile(self, text: str, options: Options) -> dict[str, Any]:
        flags = ("-std=c++17", *(f"-D{name}={value}" for name, value in options))
        module = self.cupy.RawModule(code=text, options=flags)
        try:
            return {name: module.get_function(name) for name in kernel_names(text)}
        except self.full:
            raise
        except Exception as problem:  # of CuPy, NVRTC, or the search for its library
            first = str(problem).partition("\n")[0]
            raise DeviceError(
                f"the card's kernels cannot be compiled ({first}): pip install 'expecta[gpu]' "
                "brings NVRTC, or use device='cpu'"
            ) from problem

    def put(self, array: Array) -> Any:
        """Copy an array to the card."""
        with self.stream:
            return self.cupy.asarray(np.ascontiguousarray(array))

    def get(self, array: Any, out: Array) -> None:
        """Copy an array from the card, and wait for it."""
        with self.stream:
            part = array.reshape(-1)[: out.size].reshape(out.shape)
            if out.flags.c_contiguous:
                part.get(stream=self.stream, out=out)
            else:
                out[...] = part.get(stream=self.stream)
        self.stream.synchronize()

    def empty(self, size: int, dtype: Any) -> Any:
        """Take memory of the card."""
        with self.stream:
            return self.cupy.empty(max(1, size), dtype)

    def launch(self, kernel: Any, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Start a kernel on this device's stream."""
        with self.stream:
            kernel(grid, (256,), tuple(arguments))

    def fill(self, array: Any, values: Array) -> None:
        """Copy values to the begin of an array on the card."""
        with self.stream:
            array[: values.size].set(values.reshape(-1), stream=self.stream)

    def beside(self, work: Callable[[], object]) -> None:
        """Do launches on a second stream, which waits for what the first was given so far."""
        if self._side is None:
            events = [self.cupy.cuda.Event(disable_timing=True) for _ in range(2)]
            self._side = (self.cupy.cuda.Stream(non_blocking=True), *events)
        side, leave, end = self._side
        leave.record(self.stream)
        side.wait_event(leave)
        first, self.stream = self.stream, side
        try:
            work()
        finally:
            self.stream = first
        end.record(side)

    def join(self) -> None:
        """Have the first stream wait for the second."""
        self.stream.wait_event(self._side[2])

    def staging(self, size: int, dtype: Any) -> Array:
        """Take page-locked memory."""
        count = max(1, size)
        pinned = self.cupy.cuda.alloc_pinned_memory(count * np.dtype(dtype).itemsize)
        return np.frombuffer(pinned, dtype, count)

    def send(self, array: Any, staged: Array) -> None:
        """Begin to copy page-locked memory to the begin of an array on the card."""
        self._copy(array.data.ptr, staged.ctypes.data, staged.nbytes, "memcpyHostToDevice")

    def receive(self, staged: Array, array: Any) -> None:
        """Begin to copy the begin of an array on the card to page-locked memory."""
        self._copy(staged.ctypes.data, array.data.ptr, staged.nbytes, "memcpyDeviceToHost")

    def _copy(self, to: int, start: int, size: int, kind: str) -> None:
        runtime = self.cupy.cuda.runtime
        runtime.memcpyAsync(to, start, size, getattr(runtime, kind), self.stream.ptr)

    def mark(self, slot: int) -> None:
        """Record an event."""
        if slot not in self._marks:
            self._marks[slot] = self.cupy.cuda.Event(disable_timing=True)
        self._marks[slot].record(self.stream)

    def wait(self, slot: int) -> None:
        """Wait for an event."""
        self._marks[slot].synchronize()

    def adopt(self, given: Any) -> Any:
        """Read an array by DLPack, which has this stream wait for what computes it."""
        with self.stream:
            return self.cupy.from_dlpack(given)

    def copy(self, to: Any, source: Any) -> None:
        """Copy on this device's stream."""
        with self.stream:
            to[...] = source

    def answer(self, array: Any) -> Any:
        """Wait for the stream: then any other may read the array."""
        self.stream.synchronize()
        return array

    def replay(self, kept: dict[Any, Any] | None, key: Any, work: Callable[[], None]) -> None:
        """Do the work, and from the second time on replay it as one graph."""
        if kept is None:
            work()
        elif key not in kept:
            kept[key] = None
            work()
        elif kept[key] is None:
            with self.stream:
                self.stream.begin_capture()
                work()
                kept[key] = self.stream.end_capture()
                kept[key].launch(self.stream)
        else:
            kept[key].launch(self.stream)


def kernel_names(text: str) -> list[str]:
    """Return the names of the kernels of a text."""
    return re.findall(r'extern "C" KERNEL\([^)]*\) (\w+)\(', text)


@cache
def kernel_text(package: str, name: str, before: str = "") -> str:
    """Put together what a compiler gets: types, a text such as an algebra's, and a file."""
    prelude = (files("expecta.engine.cuda") / "prelude.cu").read_text("utf-8")
    return "\n".join([prelude, before, (files(package) / name).read_text("utf-8")])
