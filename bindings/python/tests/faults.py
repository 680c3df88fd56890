# SPDX-License-Identifier: BSD-3-Clause
"""faults.py CASE - what ranks see when something fails; python.sh starts it.

Each case ends with all ranks' "ok" or a traceback.
"""

import os
import signal
import sys
import threading
import time

import libcoll
import numpy
from libcoll import _interrupt


def fails(kind, words, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        assert all(word in str(error) for word in words), error
        return error
    raise AssertionError(f"no {kind.__name__}")


def interrupt_wait(comm, wait, *arguments):
    """SIGINT comes while this thread waits, or at worst just before."""
    def send():
        while threading.main_thread().ident not in _interrupt._waiting:
            time.sleep(0.01)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send).start()
    fails(KeyboardInterrupt, [], wait, *arguments)
    comm.abort("Ctrl-C")  # if it came before


def mismatch(comm):
    """Ranks pass different counts: all get both calls in words."""
    error = fails(libcoll.MismatchError, ["allreduce", "3", "5"], comm.allreduce,
                  numpy.ones(5 if comm.rank else 3))
    assert error.status == -6 and comm.async_error().status == -6


def death(comm):
    """A rank dies: the others learn which one, soon."""
    if comm.rank == 1:
        os._exit(0)
    begin = time.monotonic()
    error = fails(libcoll.PeerError, ["rank 1"], comm.allreduce, numpy.ones(1))
    assert isinstance(error, ConnectionError) and time.monotonic() - begin < 60


def survive(comm):
    """Rank 1 is killed.  The others agree, go on without it, and let a newcomer in."""
    if "COLLRUN_NEWCOMER" not in os.environ:
        comm.agree(1)  # all have begun
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        fails(libcoll.PeerError, ["rank 1"], comm.barrier)
        assert comm.agree(5 if comm.rank else 3) == 1 and comm.failed() == [1]
        rest = comm.shrink()
        comm.close()
        n = numpy.zeros(1, "i4")
        while not n[0]:
            if rest.rank == 0:
                n[0] = rest.waiting()
            rest.broadcast(n)
        comm = rest.grow(int(n[0]))
        rest.close()
    assert comm.allreduce(numpy.ones(1)) == [3]
    comm.close()


def exclude(comm):
    """The last rank is left out, and comes back by an id."""
    running = comm.start.recv(numpy.ones(1), 2) if comm.rank == 0 else None
    comm.agree(1)  # all have begun
    if comm.rank == 2:
        fails(libcoll.AbortedError, ["rank"], comm.barrier)
        with open(sys.argv[2], "rb") as file:
            while not (id := file.read()):
                time.sleep(0.01)
        grown = libcoll.Communicator.from_id(id, 2, 3, timeout=250)
    else:
        rest = comm.shrink([2], abort=True)
        assert (rest.rank, rest.size) == (comm.rank, 2)
        id = libcoll.unique_id()
        if rest.rank == 0:
            fails(libcoll.AbortedError, ["shrunk"], running.wait)
            with open(sys.argv[2], "wb") as file:
                file.write(id)
        grown = rest.grow(1, id)
    comm.close() if comm.rank < 2 else fails(libcoll.AbortedError, [], comm.close)
    assert grown.allreduce(numpy.full(1, grown.rank)) == [3]


def deadline(comm):
    """A rank does not come: the deadline is that of the request, and the sentence names it."""
    with comm.dup() as other:
        if other.rank != 1:
            error = fails(libcoll.DeadlineError, ["rank 1"], other.start.barrier().wait, 0.5)
            assert isinstance(error, TimeoutError)
            comm.barrier()
        else:
            comm.barrier()
        other._finalizer.detach()
        other._life.end()


def aborted(comm):
    """A rank aborts from another thread: every wait ends with its words."""
    if comm.rank == 1:
        threading.Timer(0.2, comm.abort, ["enough of this"]).start()
    if comm.rank:
        fails(libcoll.AbortedError, ["enough of this"], comm.recv, numpy.ones(1), 0)
    else:
        fails(libcoll.AbortedError, ["enough of this"], comm.barrier)


def interrupt(comm):
    """Ctrl-C ends the wait of one rank, and tells the others why."""
    if comm.rank == 0:
        interrupt_wait(comm, comm.recv, numpy.ones(1), 1)
    else:
        fails(libcoll.AbortedError, ["Ctrl-C"], comm.recv, numpy.ones(1), 0)


def interrupt_request(comm):
    """The same in the wait for a request."""
    if comm.rank == 0:
        interrupt_wait(comm, comm.start.barrier().wait)
    else:
        fails(libcoll.AbortedError, ["Ctrl-C"], comm.recv, numpy.ones(1), 0)


def interrupt_and_tell():
    """Send this process the signal, and let rank 1 know."""
    os.kill(os.getpid(), signal.SIGINT)
    open(sys.argv[2], "w").close()


def handler(comm):
    """A handler of the program's own runs when the operation is done; nothing is aborted."""
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    if comm.rank == 0:
        threading.Timer(0.1, interrupt_and_tell).start()
        comm.recv(numpy.ones(1), 1)
        assert seen
    elif comm.rank == 1:
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
        comm.send(numpy.ones(1), 0)


def block(comm):
    """An exception in a with block ends the others' waits with its words."""
    def enter():
        with comm:
            if comm.rank == 1:
                raise LookupError("nothing to compute")
            comm.barrier()

    if comm.rank == 1:
        fails(LookupError, [], enter)
    else:
        fails(libcoll.AbortedError, ["LookupError: nothing to compute"], enter)


def uncaught(comm):
    """So does one that ends the program without a with block: rank 1 prints a traceback."""
    if comm.rank == 1:
        sys.excepthook = lambda *_: print("ok", flush=True)  # python.sh counts these
        raise LookupError("nothing left")
    fails(libcoll.AbortedError, ["LookupError: nothing left"], comm.barrier)


def left_open(comm):
    """Communicators and requests that nobody ends do no harm."""
    kept = comm.prepare.allreduce(numpy.ones(3))
    kept.start().wait()
    comm.dup().allreduce(numpy.ones(3))
    globals()["kept"] = comm.dup().start.allreduce(numpy.ones(3))
    globals()["kept"].wait()


world = libcoll.Communicator.from_env(timeout=250)
globals()[sys.argv[1]](world)
print("ok", flush=True)
