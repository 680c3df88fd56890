# SPDX-License-Identifier: BSD-3-Clause
"""forked.py - tests of torch on several ranks: one process imports torch, and forks them.

A test is a function of a name for files, a rank and the number of ranks.
"""

import faulthandler
import os
import socket
import sys
import time
import traceback
import warnings

import torch
import torch.distributed as dist

PATIENCE = float(os.environ.get("CK_TIMEOUT_MULTIPLIER", 1))
DEADLINE = 60 * PATIENCE  # seconds in which the ranks of a test must end


def equal(got, wanted):
    assert torch.equal(torch.as_tensor(got), torch.as_tensor(wanted)), (got, wanted)


def raises(kind, words, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        assert all(word in str(error) for word in words), f"'{error}' has nothing of {words}"
        return error
    raise AssertionError(f"no {kind.__name__} with {words}")


def be_rank(test, name, rank, size):
    status = 1
    faulthandler.enable()
    faulthandler.dump_traceback_later(DEADLINE - 5)
    try:
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        if "COLL" not in dist.Backend._plugins:
            import libcoll.torch  # noqa: F401
        test(name, rank, size)
        status = 0
    except Exception:
        print(f"{test.__name__}, rank {rank} of {size}:\n{traceback.format_exc()}", flush=True)
    if status:
        os._exit(status)
    sys.exit()  # as a program ends: communicators that nobody has closed say goodbye


def run(test, size, folder):
    """Fork the ranks of a test and wait for them; say whether all came to their end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    name, begun = f"{folder}/{test.__name__}{size}", time.monotonic()
    children = {}
    for rank in range(size):
        child = os.fork()
        if child == 0:
            be_rank(test, name, rank, size)
        children[child] = rank
    failed = False
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        failed |= status != 0
        if child:
            rank = children.pop(child)
            if os.WIFSIGNALED(status):
                print(f"{test.__name__}, rank {rank} of {size}: signal {os.WTERMSIG(status)}")
        elif time.monotonic() - begun > DEADLINE:
            print(f"{test.__name__} on {size} ranks: ranks {list(children.values())} hang")
            for child in children:
                os.kill(child, 9)
            time.sleep(1)
        else:
            time.sleep(0.01)
    print(f"{'FAILED' if failed else 'ok'} {test.__name__} on {size} ranks, "
          f"{time.monotonic() - begun:.1f} s", flush=True)
    return not failed


def main(tests):
    """Run the tests, which are pairs of a function and a number of ranks, or those of them
    that the command line names behind a folder."""
    folder, *wanted = sys.argv[1:]
    results = [run(test, size, folder) for test, size in tests
               if not wanted or test.__name__ in wanted]
    print("passed" if all(results) else "FAILED")
    sys.exit(not all(results))
