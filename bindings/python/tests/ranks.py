# SPDX-License-Identifier: BSD-3-Clause
"""ranks.py - what every rank does, on any number of ranks; python.sh starts it.

Each function test_*() is a test; all ranks run them in the order of this file.
"""

import array
import asyncio
import os
import sys
import traceback

import libcoll
import numpy

LENGTHS = (0, 1, 7, 1000)


def raises(kind, words, function, *arguments, **named):
    """The call must raise this exception, with these words in its sentence."""
    try:
        function(*arguments, **named)
    except kind as error:
        assert words in str(error), f"'{error}' has nothing of '{words}'"
    else:
        raise AssertionError(f"no {kind.__name__} with '{words}'")


def equal(got, wanted):
    numpy.testing.assert_array_equal(got, wanted)


def inputs(comm, *shape, dtype="i8"):
    """The arrays of all ranks, in their order."""
    n = int(numpy.prod(shape))
    return [(numpy.arange(n) * (r + 2) % 97 + r).astype(dtype).reshape(shape)
            for r in range(comm.size)]


def test_allreduce_as_numpy(comm):
    for n in LENGTHS:
        all_in = inputs(comm, n)
        mine = all_in[comm.rank]
        for op, reduce in (("sum", sum), ("max", lambda a: numpy.max(a, axis=0)),
                           ("prod", lambda a: numpy.prod(a, axis=0))):
            kept, out = mine.copy(), numpy.full(n, -1)
            assert comm.allreduce(mine, op, out) is out
            equal(out, reduce(all_in))
            equal(mine, kept)
            assert comm.allreduce(kept, op) is kept
            equal(kept, reduce(all_in))


def test_every_type_sums(comm):
    for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"):
        one = numpy.ones(5, name)
        equal(comm.allreduce(one), numpy.full(5, comm.size, name))
    if "bool" in libcoll._types.NAMES:
        equal(comm.allreduce(numpy.arange(3) > 1, "lor"), [False, False, True])


def test_complex_numbers(comm):
    for name in ("c8", "c16"):
        all_ranks = [numpy.arange(5) + (r + 1) * 1j for r in range(comm.size)]
        mine = all_ranks[comm.rank].astype(name)
        equal(comm.allreduce(mine.copy()), sum(all_ranks).astype(name))
        equal(comm.allgather(mine).reshape(comm.size, 5), all_ranks)
    scaled = libcoll.Op.premul(numpy.complex128(2 - 1j))
    equal(comm.allreduce(all_ranks[comm.rank].copy(), scaled), (2 - 1j) * sum(all_ranks))


def test_pairs(comm):
    for value in ("f4", "f8", "i4"):
        mine = numpy.zeros(4, numpy.dtype([("v", value), ("at", "i4")], align=True))
        mine["v"] = (numpy.arange(4) + comm.rank) % comm.size
        mine["at"] = comm.rank
        least = comm.allreduce(mine, "minloc")
        equal(least["v"], 0)
        equal(least["at"], -numpy.arange(4) % comm.size)


def test_a_forked_child_leaves_the_parent_alone(comm):
    child = os.fork()
    if child == 0:
        raises(libcoll.InvalidError, "", comm.barrier)
        comm.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    comm.barrier()


def test_scans(comm):
    mine = numpy.arange(3) + comm.rank
    if "scan" not in libcoll._lib.ORDERS:  # a library of 0.2.0
        raises(libcoll.UnsupportedError, "no scan", comm.scan, mine)
        return
    before = sum((numpy.arange(3) + r for r in range(comm.rank)), numpy.zeros(3, "i8"))
    equal(comm.scan(mine, out=numpy.zeros(3, "i8")), before + mine)
    equal(comm.exscan(mine, out=numpy.zeros(3, "i8")), before)
    equal(comm.start.scan(mine).wait(), before + numpy.arange(3) + comm.rank)


def test_reduce_and_broadcast(comm):
    for root in range(comm.size):
        for n in LENGTHS:
            all_in = inputs(comm, n)
            mine, out = all_in[comm.rank].copy(), numpy.full(n, -1)
            got = comm.reduce(mine, "sum", root, out)
            if comm.rank == root:
                equal(got, sum(all_in))
                assert got is out
            else:
                assert got is None
            comm.reduce(mine, root=root)
            equal(mine, sum(all_in) if comm.rank == root else all_in[comm.rank])

            mine = all_in[comm.rank].copy()
            comm.broadcast(mine, root)
            equal(mine, all_in[root])
            comm.broadcast(all_in[comm.rank] if comm.rank == root else None, root, out)
            equal(out, all_in[root])
    fixed = numpy.arange(3)
    fixed.flags.writeable = comm.rank != 0
    comm.broadcast(fixed)  # the root's may be read-only


def test_gathers(comm):
    for n in LENGTHS:
        all_in = inputs(comm, n, 2)
        mine = all_in[comm.rank]
        equal(comm.allgather(mine), all_in)
        out = numpy.zeros(comm.size * n * 2, mine.dtype)
        assert comm.allgather(mine, out) is out
        equal(out, numpy.concatenate(all_in).ravel())
        for root in range(comm.size):
            got = comm.gather(mine, root)
            if comm.rank == root:
                equal(got, all_in)
            else:
                assert got is None
    in_place = numpy.array(inputs(comm, 4))
    in_place[comm.rank] += 1
    comm.allgather(in_place[comm.rank], in_place)
    equal(in_place, numpy.array(inputs(comm, 4)) + 1)


def test_gathers_of_different_lengths(comm):
    counts = [r % 3 for r in range(comm.size)]
    mine = numpy.full(counts[comm.rank], comm.rank, "f4")
    wanted = numpy.repeat(numpy.arange(comm.size, dtype="f4"), counts)
    equal(comm.allgather(mine, counts=counts), wanted)
    apart = [r * 3 + 1 for r in range(comm.size)]
    out = numpy.full(3 * comm.size + 1, -1, "f4")
    comm.allgather(mine, out, counts, apart)
    for r in range(comm.size):
        equal(out[apart[r]: apart[r] + counts[r]], numpy.full(counts[r], r))
    assert out[0] == -1
    got = comm.gather(mine, comm.size - 1, counts=counts)
    if comm.rank == comm.size - 1:
        equal(got, wanted)
    out = numpy.zeros(counts[comm.rank], "f4")
    comm.scatter(wanted if comm.rank == 0 else None, 0, out, counts)
    equal(out, mine)


def test_scatters(comm):
    for n in LENGTHS:
        table = numpy.arange(comm.size * n, dtype="f8").reshape(comm.size, n)
        for root in range(comm.size):
            if comm.rank == root:
                equal(comm.scatter(table, root), table[root])
            else:
                out = numpy.full(n, -1.0)
                equal(comm.scatter(None, root, out), table[comm.rank])
        all_in = inputs(comm, comm.size, n)
        equal(comm.reduce_scatter(all_in[comm.rank]), sum(all_in)[comm.rank])
        flat = all_in[comm.rank].ravel()
        equal(comm.reduce_scatter(flat, out=numpy.zeros(n, "i8")), sum(all_in)[comm.rank])
    counts = [r + 1 for r in range(comm.size)]
    begin = sum(counts[: comm.rank])
    got = comm.reduce_scatter(numpy.arange(sum(counts)), counts=counts)
    equal(got, comm.size * numpy.arange(begin, begin + comm.rank + 1))


def test_alltoall(comm):
    for n in LENGTHS:
        all_in = inputs(comm, comm.size, n)
        wanted = [one[comm.rank] for one in all_in]
        equal(comm.alltoall(all_in[comm.rank]), wanted)
        comm.alltoall(all_in[comm.rank], all_in[comm.rank])
        equal(all_in[comm.rank], wanted)
    counts = [r + 1 for r in range(comm.size)]  # r + 1 elements to rank r
    mine = [comm.rank + 1] * comm.size
    got = comm.alltoall(numpy.full(sum(counts), comm.rank), counts=counts, out_counts=mine)
    equal(got, numpy.repeat(numpy.arange(comm.size), mine))


def test_messages(comm):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out = numpy.empty(3)
    with libcoll.group():
        comm.send(numpy.full(3, float(comm.rank)), right)
        comm.recv(out, left)
    equal(out, numpy.full(3, left))
    receive = comm.start.recv(out, left)
    comm.start.send(numpy.full(3, comm.rank + 0.5), right).wait()
    equal(receive.wait(), numpy.full(3, left + 0.5))
    if comm.size > 1 and comm.rank < 2:
        if comm.rank:
            comm.recv(out, 0)
        else:
            comm.send(numpy.ones(3), 1)
    comm.barrier()


def test_tags(comm):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out, status = numpy.zeros(5), libcoll.Status()
    request = comm.start.recv(out, libcoll.ANY, tag=7, status=status)
    comm.send(numpy.full(3, comm.rank + 0.5), right, tag=7)
    equal(request.wait(), numpy.array([left + 0.5] * 3 + [0, 0]))
    assert (status.source, status.tag, status.count) == (left, 7, 3)
    comm.barrier()
    with libcoll.group():  # the second message first
        comm.recv(out, left, tag=2)
        comm.recv(numpy.zeros(2), left, tag=libcoll.ANY, status=status)
        comm.send(numpy.full(5, 2.0), right, tag=2)
        comm.send(numpy.full(1, 1.0), right, tag=3)
    assert (status.tag, status.count) == (3, 1)
    comm.send(numpy.ones(6), right, tag=4)
    raises(libcoll.TruncatedError, "has 6 elements", comm.recv, out, left, tag=4)
    raises(ValueError, "pass tag=", comm.recv, out, left, status=status)
    raises(libcoll.InvalidError, "tag -3 is negative", comm.send, out, right, tag=-3)
    comm.barrier()


def test_groups(comm):
    sums = [numpy.full(n, 1.0) for n in (1, 2, 3)]
    with libcoll.group(), libcoll.group():
        for one in sums:
            comm.allreduce(one)
        rows = comm.allgather(numpy.array([comm.rank]))
    for one in sums:
        equal(one, numpy.full(one.size, comm.size))
    equal(rows.ravel(), numpy.arange(comm.size))

    left_alone = numpy.ones(2)
    try:
        with libcoll.group():
            comm.allreduce(left_alone)
            raise KeyError("of the program's own")
    except KeyError:
        pass
    equal(left_alone, numpy.ones(2))
    comm.barrier()


def test_requests(comm):
    mine = numpy.ones(1000, "f4")
    request = comm.start.allreduce(mine)
    while not request.test():
        pass
    equal(mine, numpy.full(1000, comm.size))
    again = comm.prepare(algo="ring").allreduce(mine, "max")
    for step in range(3):
        mine[:] = comm.rank + step
        assert again.start().wait(60) is mine
        equal(mine, numpy.full(1000, comm.size - 1 + step))
    raises(ValueError, "above 0", again.wait, 0)
    again.free()
    for gone in (again.start, again.wait):
        raises(libcoll.InvalidError, "", gone)
    running = [comm.start(background=True).allgather(numpy.full(2, comm.rank)) for _ in range(5)]
    for one in running:
        equal(one.wait(), [[r, r] for r in range(comm.size)])
    comm.start.barrier().wait()
    scaled = comm.start(prescale=0.5, postscale=3, user_tag=7).allreduce(numpy.full(3, 2.0))
    equal(scaled.wait(), numpy.full(3, 3.0 * comm.size))
    raises(TypeError, "no scale: use", comm.start(scale=2).allreduce, mine)
    lengths = (3, 50_000) if comm.rank % 2 else (50_000, 3)
    pair = {n: comm.prepare(any_order=True).allreduce(numpy.ones(n)) for n in (3, 50_000)}
    for n in lengths:
        pair[n].start()
    for n in lengths:
        equal(pair[n].wait(), numpy.full(n, comm.size))


def test_await(comm):
    async def both(start):
        small, large = numpy.ones(1), numpy.ones(300_000)
        await asyncio.gather(wait(start.allreduce(large)), wait(start.allreduce(small)))
        return small[0], large[-1]

    async def wait(request):
        return await request

    for start in (comm.start, comm.start(background=True), comm.start(background=True)):
        assert asyncio.run(both(start)) == (comm.size, comm.size)


def test_await_that_is_given_up(comm):
    async def give_up(request):
        task = asyncio.ensure_future(wait(request))
        await asyncio.sleep(0)
        task.cancel()

    async def wait(request):
        return await request

    mine = numpy.ones(300_000)
    request = comm.start(background=True).allreduce(mine)
    asyncio.run(give_up(request))
    assert request.wait()[-1] == comm.size
    request.free()


def test_split_and_dup(comm):
    part = comm.split(comm.rank % 2, -comm.rank)
    members = [r for r in range(comm.size) if r % 2 == comm.rank % 2]
    assert (part.size, part.rank) == (len(members), members[::-1].index(comm.rank))
    equal(part.allgather(numpy.array([comm.rank])).ravel(), members[::-1])
    part.close()
    lonely = comm.split(None if comm.rank else 7)
    assert (lonely is None) == (comm.rank > 0)
    with comm.dup() as other:
        equal(other.allreduce(numpy.ones(1)), [comm.size])
    raises(libcoll.InvalidError, "", other.allreduce, numpy.ones(1))
    raises(libcoll.InvalidError, "closed", other.has_spare_core)


def test_reductions_of_the_programs_own(comm):
    norm = libcoll.Op.user(numpy.hypot)
    got = comm.allreduce(numpy.arange(9.0), norm)
    numpy.testing.assert_allclose(got, numpy.arange(9) * comm.size**0.5)

    def chain(left, right, out):  # (a, b) after (c, d): not commutative
        out[:] = left * 10 + right

    chained = libcoll.Op.user(chain, commutes=False)
    request = comm.start.reduce(numpy.array([comm.rank + 1]), chained)
    if comm.size <= 3:
        got = request.wait()
        assert comm.rank or got[0] == int("123"[: comm.size])
    request.wait()

    half = libcoll.Op.premul(numpy.float32(0.5))
    equal(comm.allreduce(numpy.ones(3, "f4"), half, numpy.ones(3, "f4")),
          numpy.full(3, comm.size / 2 if comm.size > 1 else 0.5))
    raises(TypeError, "no buffer", libcoll.Op.premul, 0.5)


def test_exceptions_of_reductions_reach_the_caller(comm):
    def fail(left, right, out):
        raise KeyError("inside the reduction")

    if comm.size > 1:
        with comm.dup() as other:
            try:
                other.allreduce(numpy.ones(4), libcoll.Op.user(fail))
            except (KeyError, libcoll.AbortedError) as error:
                assert "inside the reduction" in str(error)
            else:  # this rank combined nothing
                raises(libcoll.AbortedError, "inside the reduction", other.barrier)
            other._finalizer.detach()
            other._life.end()
    comm.barrier()


def test_memory(comm):
    shared = libcoll.mem_alloc((100, 1000), "f4")
    assert shared.shape == (100, 1000) and not shared.any()
    shared[:] = 1
    part = shared[10:20]
    del shared
    equal(comm.allreduce(part), numpy.full((10, 1000), comm.size))
    assert libcoll.mem_alloc(0).size == 0


def test_questions(comm):
    mine = numpy.ones(1000)
    plan = comm.plan.allreduce(mine)
    assert plan.algorithm
    offers = comm.candidates.allreduce(mine)
    assert comm.size == 1 or (plan.algorithm in offers and list(offers.values()) ==
                              sorted(offers.values()))
    assert comm.plan(algo="ring").allreduce(mine).algorithm == "ring" or comm.size == 1
    equal(mine, numpy.ones(1000))
    assert set(comm.mem_stats()) >= {"plans", "scratch"}
    assert 0 <= comm.local_rank < comm.local_size <= comm.size and comm.host < comm.n_hosts
    assert comm.transports and comm.async_error() is None
    assert isinstance(comm.has_spare_core(), bool)


def test_buffers_without_numpy(comm):
    mine = array.array("d", [1, 2, 3])
    assert comm.allreduce(mine) is mine and list(mine) == [comm.size * n for n in (1, 2, 3)]
    data = bytearray(4)
    comm.broadcast(b"\1\2\3\4" if comm.rank == 0 else data, 0)
    assert comm.rank == 0 or data == b"\1\2\3\4"
    equal(comm.allgather(b"ab").ravel(), numpy.frombuffer(b"ab" * comm.size, "u1"))
    equal(comm.allgather(numpy.int32(comm.rank)), numpy.arange(comm.size))


class Exchanged:
    """An array behind one protocol alone."""

    def __init__(self, of, *names):
        self.of, self.names = of, names

    def __getattr__(self, name):
        if name in self.names:
            return getattr(self.of, name)
        raise AttributeError(name)


def test_dlpack_and_array_interface(comm):
    for names in (("__dlpack__", "__dlpack_device__"), ("__array_interface__",)):
        mine = numpy.arange(6.0).reshape(2, 3)
        comm.allreduce(Exchanged(mine, *names))
        equal(mine.ravel(), numpy.arange(6.0) * comm.size)
        raises(TypeError, "not contiguous", comm.allreduce, Exchanged(mine.T, *names))


def test_a_type_that_only_dlpack_names(comm):
    mine = numpy.arange(6, dtype="f2")
    array = Exchanged(mine, "__dlpack__", "__dlpack_device__")
    # as torch has it for bfloat16
    array.__array_interface__ = {**mine.__array_interface__, "typestr": "<V2"}
    comm.allreduce(array)
    equal(mine, numpy.arange(6) * comm.size)


def test_wrong_arrays(comm):
    good, fixed = numpy.ones(4), numpy.ones(4)
    fixed.flags.writeable = False
    raises(TypeError, "not contiguous", comm.allreduce, numpy.ones((4, 4))[:, 1])
    raises(TypeError, "not contiguous", comm.allreduce, numpy.ones((4, 4)).T)
    raises(TypeError, "read-only", comm.allreduce, fixed)
    raises(TypeError, "out is read-only", comm.allreduce, good, "sum", fixed)
    raises(TypeError, "read-only", comm.recv, b"abc", 0)
    raises(TypeError, "libcoll lacks", comm.allreduce, numpy.array(["a"]))
    raises(TypeError, "libcoll lacks", comm.allreduce, good.astype(">f8"))
    raises(TypeError, "libcoll lacks", comm.allreduce, numpy.ones(2, "g"))
    raises(TypeError, "float, which is no buffer", comm.allreduce, 1.0)
    raises(TypeError, "out has f32", comm.allreduce, good, out=numpy.ones(4, "f4"))
    raises(ValueError, "out has 3 elements; 4", comm.allreduce, good, out=numpy.ones(3))
    raises(ValueError, "no reduction 'mean'", comm.allreduce, good, "mean")
    raises(ValueError, "reach to", comm.reduce_scatter, good, counts=[5] * comm.size)
    too_many = [0] * (comm.size + 1)
    raises(ValueError, "counts and displs need", comm.reduce_scatter, good, counts=too_many)
    raises(ValueError, "at least 0", comm.reduce_scatter, good, counts=[-1] * comm.size)
    if comm.size > 1:
        raises(ValueError, "not a multiple", comm.alltoall, numpy.ones(comm.size + 1))
    equal(good, numpy.ones(4))
    comm.barrier()


def test_wrong_calls_have_the_librarys_sentence(comm):
    raises(libcoll.InvalidError, "root", comm.broadcast, numpy.ones(1), comm.size)
    raises(libcoll.InvalidError, "band", comm.allreduce, numpy.ones(1), "band")
    raises(ValueError, "", comm.send, numpy.ones(1), -1)
    raises(libcoll.InvalidError, "nosuch", comm.plan(algo="nosuch").allreduce, numpy.ones(1))
    raises(TypeError, "no timeot: use timeout", libcoll.Communicator.from_env, timeot=1)
    raises(ValueError, "128 bytes", libcoll.Communicator.from_id, b"", 0, 1)
    try:
        comm.barrier(stream=1)  # without a GPU it is refused
    except libcoll.UnsupportedError as error:
        assert isinstance(error, NotImplementedError) and error.status == -7


def test_communicators_from_ids_and_exchanges(comm):
    id = numpy.frombuffer(libcoll.unique_id() if comm.rank == 0 else bytes(128), "u1").copy()
    comm.broadcast(id)
    with libcoll.Communicator.from_id(id.tobytes(), comm.rank, comm.size, timeout=60) as other:
        equal(other.allreduce(numpy.ones(1)), [comm.size])

    def exchange(mine):
        return [row.tobytes() for row in comm.allgather(numpy.frombuffer(mine, "u1"))]

    with libcoll.Communicator.from_allgather(comm.rank, comm.size, exchange) as other:
        equal(other.allreduce(numpy.ones(1)), [comm.size])
    if comm.size > 1:
        raises(libcoll.BootstrapError, "", libcoll.Communicator.from_allgather, comm.rank,
               comm.size, lambda mine: [mine])
    libcoll.unique_id_free(libcoll.unique_id())


def test_communicators_from_handles(comm):
    rows = comm.allgather(numpy.frombuffer(libcoll.handle(), "u1"))
    handles, back = [row.tobytes() for row in rows], comm.size - 1 - comm.rank
    join = libcoll.Communicator.from_handles
    with join(handles, comm.rank, 1) as one, join(handles[::-1], back, 2, timeout=60) as other:
        equal(one.allreduce(numpy.ones(1)), [comm.size])
        equal(other.allgather(numpy.full(1, comm.rank)).ravel(), range(comm.size)[::-1])
    raises(ValueError, "128 bytes", join, [b""], 0, 3)
    raises(libcoll.InvalidError, "none of this libcoll", join, [bytes(128)], 0, 3)


def test_log_lines(comm):
    lines = []
    libcoll.set_log_handler(lambda *line: lines.append(line))
    os.environ["COLL_NO_SUCH_NAME"] = "1"
    libcoll.Communicator.from_id(libcoll.unique_id(), 0, 1).close()
    del os.environ["COLL_NO_SUCH_NAME"]
    libcoll.set_log_handler(None)
    assert any(level == "warn" and "NO_SUCH_NAME" in text for level, part, text in lines), lines


def main():
    comm = libcoll.Communicator.from_env()
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            try:
                test(comm)
            except BaseException:
                print(f"FAILED: {name} on rank {comm.rank} of {comm.size}", file=sys.stderr)
                traceback.print_exc()
                comm.abort(f"{name} failed on rank {comm.rank}")
                sys.exit(1)
    comm.close()
    if comm.rank == 0:
        print("passed")


main()
