"""Processes that may die: results arrive, failures are named, and nothing is left running."""

import functools
import os
import signal
import sys
import threading
import time

import pytest

from tirxlab.pool import Failed, Pool


def double(x):
    return 2 * x


def exhaust():
    raise MemoryError("Unable to allocate 1 TiB")


def die(how):
    os.kill(os.getpid(), how)


def leave(status):
    os._exit(status)


def hang():
    while True:
        pass


def test_results_come_for_all_tasks_also_after_deaths():
    with Pool(2) as pool:
        for n in range(4):
            pool.submit(n, double, n)
        pool.submit("died", die, signal.SIGSEGV)
        pool.submit("left", leave, 3)
        pool.submit("memory", exhaust)
        got = dict(pool.results())
    assert [got[n] for n in range(4)] == [0, 2, 4, 6]
    assert got["died"] == Failed("the process that ran it died (SIGSEGV)", lost=True)
    assert "exit status 3" in got["left"].message
    assert got["memory"].memory and "1 TiB" in got["memory"].message


def note(path):
    path.write_text(str(os.getpid()))


def note_later(path):
    return functools.partial(note, path)


def test_what_a_preparation_leaves_is_done_when_no_work_waits(tmp_path):
    with Pool(1) as pool:
        pool.start(note_later, tmp_path / "later")
        pool.submit("pid", os.getpid)
        found = dict(pool.results())
        while not (tmp_path / "later").exists():  # pytest's limit ends it
            time.sleep(0.01)
        pool.submit("again", os.getpid)
        assert found | dict(pool.results()) == found | {"again": found["pid"]}


def test_processes_may_start_and_prepare_before_there_is_work(tmp_path):
    with Pool(1) as pool:
        pool.start(note, tmp_path / "prepared")
        pool.submit("pid", os.getpid)
        assert dict(pool.results()) == {"pid": int((tmp_path / "prepared").read_text())}
    with Pool(2) as pool:
        pool.start(exhaust)  # a preparation that fails costs no task
        pool.submit("double", double, 4)
        assert dict(pool.results()) == {"double": 8}


def test_a_task_that_takes_too_long_is_stopped_and_the_next_one_runs():
    with Pool(1, seconds=3) as pool:
        pool.submit("hangs", hang)
        pool.submit("next", double, 4)
        got = dict(pool.results())
    assert got == {"hangs": Failed("took longer than 3 s and was stopped", late=True), "next": 8}


def test_leaving_the_block_ends_what_runs():
    start = time.monotonic()
    with Pool(1) as pool:
        pool.submit("hangs", hang)
        pool._dispatch()
        process = pool.workers[0].process
        assert process.is_alive()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    assert time.monotonic() - start < 60


def test_another_thread_may_submit():
    with Pool(1) as pool:
        pool.expect(True)

        def feed():
            for n in range(3):
                pool.submit(n, double, n)
            pool.expect(False)

        threading.Thread(target=feed).start()
        assert dict(pool.results()) == {0: 0, 1: 2, 2: 4}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system has no masks of signals")
def test_a_process_is_deaf_to_ctrl_c_before_it_runs_any_of_our_code():
    with Pool(1) as pool:
        pool.submit("mask", signal.pthread_sigmask, signal.SIG_BLOCK, [])
        ((_, mask),) = pool.results()
    assert signal.SIGINT in mask and signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_pool_may_be_ended_by_another_thread_than_waits_for_its_results():
    """Both see that the processes are gone; neither disturbs the other, and no new one is started."""
    for _ in range(8):
        pool, errors = Pool(2), []

        def wait_for_results(pool=pool, errors=errors):
            try:
                for _ in pool.results():
                    pass
            except OSError as error:
                errors.append(str(error))

        for n in range(6):
            pool.submit(n, hang)
        waiting = threading.Thread(target=wait_for_results)
        waiting.start()
        while len(pool.workers) < 2:
            time.sleep(0.01)
        processes = [worker.process for worker in pool.workers]
        pool.__exit__()
        waiting.join(30)
        assert not waiting.is_alive() and errors and not pool.workers
        assert not any(process.is_alive() for process in processes)


needs_forks = pytest.mark.skipif(sys.platform != "linux", reason="a server of forks is used on Linux only")


def hold(mib):
    return len(bytearray(mib << 20))


@needs_forks
def test_processes_of_a_preloaded_pool_are_forks_of_a_server(monkeypatch):
    monkeypatch.delenv("PTXSIM_JOBS", raising=False)
    with Pool(2) as pool:
        pool.preload("wave")
        assert not pool.workers and "PTXSIM_JOBS" not in os.environ
        pool.submit("parent", os.getppid)
        pool.submit("large", hold, 64)
        monkeypatch.setenv("PTXSIM_JOBS", "7")
        pool.submit("jobs", os.getenv, "PTXSIM_JOBS")
        got = dict(pool.results())
    assert got["parent"] != os.getpid() and got["jobs"] == "7" and pool.largest > 64 << 20


@needs_forks
@pytest.mark.parametrize("call, error", [("ensure_running", OSError), ("connect_to_new_process", EOFError)])
def test_a_pool_works_without_its_server(call, error, monkeypatch):
    """One that cannot start, or has died: each process imports for itself."""

    def fail(*_):
        raise error

    monkeypatch.setattr(f"multiprocessing.forkserver.{call}", fail)
    with Pool(1) as pool:
        pool.preload("wave")
        pool.submit("parent", os.getppid)
        assert dict(pool.results()) == {"parent": os.getpid()}
