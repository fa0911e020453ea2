"""What becomes of a card that is not there, is too old, too small, or asked by many at once."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from expecta import Pair, Vtree, config_context, random_probabilistic, random_regression
from expecta.common.errors import DeviceError
from expecta.engine.cuda import card_work
from expecta.engine.cuda.devices import CudaDevice
from host_device import HostDevice, need_compiler


class _CudaError(RuntimeError):
    pass


class _FullError(MemoryError):
    pass


def _cupy(count=lambda: 1, module=None):
    """CuPy as far as a card is opened and kernels are compiled with it."""
    stream = SimpleNamespace()
    runtime = SimpleNamespace(
        CUDARuntimeError=_CudaError, getDeviceCount=count, memGetInfo=lambda: (1 << 30, 1 << 31)
    )
    cuda = SimpleNamespace(
        memory=SimpleNamespace(OutOfMemoryError=_FullError),
        runtime=runtime,
        driver=SimpleNamespace(CUDADriverError=_CudaError),
        compiler=SimpleNamespace(CompileException=_CudaError),
        Stream=lambda **options: stream,
    )
    return SimpleNamespace(cuda=cuda, RawModule=module)


def _too_old():
    raise _CudaError("cudaErrorInsufficientDriver")


class _Module:
    """Kernels whose compiler is not installed."""

    def __init__(self, **given):
        pass

    def get_function(self, name):
        raise RuntimeError('Failure finding "libnvrtc.so.13"\n  many lines')


@pytest.mark.parametrize(
    ("count", "says"), [(lambda: 0, "no CUDA card"), (_too_old, "InsufficientDriver")]
)
def test_no_card_or_an_old_driver_is_said(monkeypatch, count, says):
    monkeypatch.setitem(sys.modules, "cupy", _cupy(count))
    with pytest.raises(DeviceError, match=rf"{says}.*device='cpu'"):
        CudaDevice()


def test_without_a_compiler_of_kernels_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", _cupy(module=_Module))
    device = CudaDevice()
    with pytest.raises(DeviceError, match=r"libnvrtc.so.13\"\): pip install 'expecta\[gpu\]'"):
        device.compile('extern "C" KERNEL(256, 1) a() {}', ())


def test_a_fork_has_no_card(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", _cupy())
    monkeypatch.setattr(card_work, "_processes", set())
    card_work.cuda_device.cache_clear()
    try:
        card_work.cuda_device(1)
        with pytest.raises(DeviceError, match="spawn"):  # a child: what its parent did is known
            card_work.cuda_device(2)
    finally:
        card_work.cuda_device.cache_clear()


def _pair():
    vtree, cards = Vtree.balanced(6), np.full(6, 3)
    p = random_probabilistic(vtree, cards, units=3, seed=0)
    return Pair(p, random_regression(vtree, cards, units=3, seed=0))


def test_several_threads_take_turns(device):
    pair, rng = _pair(), np.random.default_rng(0)
    tables = [rng.integers(-1, 3, (50 + k, 6)) for k in range(8)]
    want = [pair.expectation(X) for X in tables]

    def ask(X):
        with config_context(device="cuda"):
            return pair.expectation(X)

    with ThreadPoolExecutor(4) as threads:
        for a, b in zip(want, threads.map(ask, tables), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12)


class _Small(HostDevice):
    """A card with less memory than it says."""

    def empty(self, size, dtype):
        if size * np.dtype(dtype).itemsize > 1 << 17:
            raise MemoryError
        return super().empty(size, dtype)


def test_where_memory_is_full_less_is_taken(monkeypatch):
    need_compiler()
    host = _Small(1 << 24)
    monkeypatch.setattr(card_work, "cuda_device", lambda process: host)
    pair, X = _pair(), np.random.default_rng(0).integers(-1, 3, (20_000, 6))
    want = pair.expectation(X)
    monkeypatch.setattr(card_work, "MIN_MEMORY", 1 << 10)
    with config_context(device="cuda"):
        np.testing.assert_allclose(pair.expectation(X), want, rtol=1e-12)
    assert host.memory < 1 << 24
