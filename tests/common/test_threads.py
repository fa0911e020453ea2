"""Threads are kept between calls, few, and never wait for each other in a circle."""

import os
import threading
import time

import pytest
from threadpoolctl import threadpool_info

from expecta import config_context
from expecta.common import threads as kept
from expecta.common.settings import current
from expecta.common.threads import map_on_threads, one_blas_thread, run_on_threads


def names_of(n_calls: int, threads: int) -> set[str]:
    """Run calls that last a while; return the threads that they ran on."""
    names = set()

    def do(_: int) -> None:
        names.add(threading.current_thread().name)
        time.sleep(0.002)

    run_on_threads(do, [(i,) for i in range(n_calls)], threads)
    return names


def test_every_call_is_made_once():
    for threads in (1, 2, 3, 7):
        done: list[int] = []
        run_on_threads(done.append, [(i,) for i in range(50)], threads)
        assert sorted(done) == list(range(50))


@pytest.mark.parametrize("threads", [1, 3])
def test_results_are_in_the_order_of_the_items(threads):
    def squared(number: int) -> int:
        time.sleep(0.001 * (5 - number))
        return number**2

    with config_context(threads=threads):
        assert map_on_threads(squared, range(5)) == [0, 1, 4, 9, 16]
        assert map_on_threads(squared, []) == []


def test_threads_are_kept_and_the_caller_is_one_of_them():
    used = [names_of(12, 3) for _ in range(20)]
    assert len(set().union(*used)) <= kept._threads._n + 1  # as many as were ever asked for
    assert all(threading.current_thread().name in names and len(names) <= 3 for names in used)
    assert max(map(len, used)) >= 2


def test_one_thread_is_the_callers():
    assert names_of(5, 1) == {threading.current_thread().name}
    assert names_of(1, 4) == {threading.current_thread().name}


def test_calls_within_calls_end():
    done = []

    def outer(i: int) -> None:
        run_on_threads(inner, [(i, j) for j in range(5)], 3)

    def inner(i: int, j: int) -> None:
        run_on_threads(lambda k: done.append((i, j, k)), [(k,) for k in range(3)], 2)

    run_on_threads(outer, [(i,) for i in range(8)], 3)
    assert sorted(done) == [(i, j, k) for i in range(8) for j in range(5) for k in range(3)]


def test_an_error_is_raised_and_ends_the_rest():
    done = []

    def do(i: int) -> None:
        if i == 3:
            raise ZeroDivisionError("at 3")
        time.sleep(0.001)
        done.append(i)

    with pytest.raises(ZeroDivisionError, match="at 3"):
        run_on_threads(do, [(i,) for i in range(1000)], 3)
    assert len(done) < 100
    assert len(names_of(10, 2)) <= 2  # the threads are as good as before


def test_of_several_errors_that_of_the_first_call_is_raised():
    def do(i: int) -> None:
        time.sleep(0.01 if i == 0 else 0.0)  # the others fail before it
        raise ZeroDivisionError(f"at {i}")

    for _ in range(20):
        with pytest.raises(ZeroDivisionError, match="at 0"):
            run_on_threads(do, [(i,) for i in range(8)], 3)


def test_helpers_have_the_settings_of_the_caller():
    asked = []
    with config_context(threads=5):
        run_on_threads(lambda _: asked.append(current().n_threads()), [(i,) for i in range(20)], 3)
    assert set(asked) == {5}


def test_callers_on_several_threads_do_not_wait_for_each_other():
    totals = []

    def caller() -> None:
        done: list[int] = []
        for _ in range(20):
            run_on_threads(done.append, [(i,) for i in range(10)], 3)
        totals.append(len(done))

    callers = [threading.Thread(target=caller) for _ in range(6)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(timeout=30)
    assert totals == [200] * 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    names_of(12, 3)
    child = os.fork()
    if child == 0:  # pragma: no cover
        os._exit(0 if len(names_of(12, 3)) <= 3 else 1)
    for _ in range(1000):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.01)
    assert (pid, status) == (child, 0)


def test_matrix_products_stay_on_one_thread():
    def threads():
        return {
            library["filepath"]: library["num_threads"]
            for library in threadpool_info()
            if library["user_api"] == "blas"
        }

    before = threads()
    for _ in range(2):
        with one_blas_thread():
            assert set(threads().values()) == {1}
        assert {name: threads()[name] for name in before} == before
