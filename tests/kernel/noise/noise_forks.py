"""Fork in every way and print, from each process and thread, its name, 512 bytes of its stream, and noise."""

import ctypes
import multiprocessing
import os
import sys
import threading

import numpy as np

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.noise.keystream import thread_keystream

LOCK = threading.Lock()


def tell(name):
    data = b"".join(thread_keystream().bytes(64) for _ in range(8)).hex()
    # Single draws come out of a pool that was filled before the fork; vectors do not.
    noise = [Laplace(10**18).perturb(0) for _ in range(20)]
    noise += Gaussian(10**18).perturb(np.zeros(20, np.int64)).tolist()
    with LOCK:
        os.write(1, f"{name} {data} {','.join(map(str, noise))}\n".encode())


def fork(name, inside, how=os.fork):
    sys.stdout.flush()
    pid = how()
    if pid == 0:
        code = 1
        try:
            inside(name)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status == 0, name


def with_child(name):
    tell(name)
    fork(f"grand{name}", tell)
    fork(f"grand{name}-second", tell)


def only_a_grandchild(name):
    fork(f"grand{name}", tell)


def namesake(name):
    # A process number may come again, in another namespace or after a wrap.
    os.getpid = lambda number=OLD: number
    tell(name)


def main():
    Laplace(10**18).perturb(0)  # fills the pool
    tell("parent-0")
    fork("child-0", tell)
    fork("child-1", with_child)
    fork("child-2", only_a_grandchild)
    tell("parent-1")
    threads = [threading.Thread(target=tell, args=(f"thread-{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    in_thread = threading.Thread(target=fork, args=("child-of-a-thread", tell))
    in_thread.start()
    in_thread.join()
    libc = ctypes.PyDLL(None)
    for n in range(2):
        fork(f"untold-{n}", tell, libc.fork)
        fork(f"namesake-{n}", namesake)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=tell, args=(f"worker-{n}",)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    tell("parent-2")


OLD = os.getpid()

if __name__ == "__main__":
    main()
