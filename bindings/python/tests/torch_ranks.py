# SPDX-License-Identifier: BSD-3-Clause
"""torch_ranks.py FOLDER [TEST...] - the backend "coll" of torch.distributed; torch.sh starts it.

One process imports torch and forks the ranks of each test, on 1 to 5 ranks.  Functions
op_*() run on each number of ranks, train_*() on two ranks, fault_*() on three; the last
ones begin with no process group.
"""

import os
import sys
import time
from datetime import timedelta
from types import SimpleNamespace

import torch
import torch.distributed as dist
from forked import equal, main, raises

try:  # what each rank would import for itself
    import torch._dynamo
    import torch.distributed.fsdp
except ImportError:
    pass

LENGTHS = (0, 1, 7, 1001)
minute = timedelta(seconds=30)


def begin(name, rank, size, backend="coll"):
    """Make the process group of a test, by a file of this name."""
    dist.init_process_group(backend, init_method=f"file://{name}", rank=rank, world_size=size,
                            timeout=minute)


def rank_size():
    return dist.get_rank(), dist.get_world_size()


def inputs(n, dtype=torch.int64):
    """The tensors of all ranks."""
    return [(torch.arange(n) * (r + 2) % 97 + r).to(dtype)
            for r in range(dist.get_world_size())]


# ---- operations ------------------------------------------------------------------


def op_allreduce():
    rank, size = rank_size()
    for n in LENGTHS:
        all_in = inputs(n)
        for op, wanted in ((dist.ReduceOp.SUM, sum(all_in)),
                           (dist.ReduceOp.MAX, torch.stack(all_in).amax(0)),
                           (dist.ReduceOp.PRODUCT, torch.stack(all_in).prod(0))):
            mine = all_in[rank].clone()
            assert dist.all_reduce(mine, op) is None
            equal(mine, wanted)
        mine = all_in[rank].clone()
        work = dist.all_reduce(mine, async_op=True)
        work.wait()
        equal(mine, sum(all_in))
        assert work.is_completed() and work.exception() is None
        equal(work.result()[0], mine)
    for dtype in (torch.uint8, torch.int32, torch.float16, torch.bfloat16, torch.float64,
                  torch.complex64):
        ones = torch.ones(5, dtype=dtype)
        dist.all_reduce(ones)
        equal(ones, torch.full((5,), size, dtype=dtype))
    mine = torch.arange(3) > rank
    dist.all_reduce(mine, dist.ReduceOp.MAX)
    equal(mine, torch.arange(3) > 0)
    columns = torch.full((4, 6), rank + 1.0)[:, ::2]
    dist.all_reduce(columns, dist.ReduceOp.AVG)  # not contiguous
    equal(columns, torch.full((4, 3), (size + 1) / 2))


def op_reduce_and_broadcast():
    rank, size = rank_size()
    for root in range(size):
        for n in LENGTHS:
            all_in = inputs(n, torch.float32)
            mine = all_in[rank].clone()
            dist.reduce(mine, root)
            equal(mine, sum(all_in) if rank == root else all_in[rank])
            mine = all_in[rank].clone()
            dist.broadcast(mine, root)
            equal(mine, all_in[root])
    chars = torch.full((3, 2), rank, dtype=torch.complex128).t()
    dist.broadcast(chars, size - 1)  # a type that libcoll lacks, not contiguous
    equal(chars, torch.full((2, 3), size - 1, dtype=torch.complex128))


def op_gathers():
    rank, size = rank_size()
    for n in LENGTHS:
        all_in = inputs(n)
        apart = [torch.full((n,), -1) for _ in range(size)]
        dist.all_gather(apart, all_in[rank])
        equal(torch.stack(apart), torch.stack(all_in))
        flat = torch.full((size * n,), -1)
        dist.all_gather(list(flat.chunk(size)) if n else apart, all_in[rank])
        equal(flat, torch.cat(all_in))
        flat.fill_(-1)
        dist.group.WORLD._allgather_base(flat, all_in[rank]).wait()
        equal(flat, torch.cat(all_in))
        for root in range(size):
            parts = [torch.full((n,), -1) for _ in range(size)] if rank == root else None
            dist.gather(all_in[rank], parts, root)
            if rank == root:
                equal(torch.stack(parts), torch.stack(all_in))
            mine = torch.full((n,), -1)
            dist.scatter(mine, [t + root for t in all_in] if rank == root else None, root)
            equal(mine, all_in[rank] + root)
    uneven = [torch.full((r + 1,), -1) for r in range(size)]
    dist.all_gather(uneven, torch.full((rank + 1,), rank))
    equal(torch.cat(uneven), torch.cat([torch.full((r + 1,), r) for r in range(size)]))


def op_reduce_scatters():
    rank, size = rank_size()
    for n in LENGTHS:
        whole = inputs(size * n)
        mine = torch.full((n,), -1)
        dist.group.WORLD._reduce_scatter_base(mine, whole[rank]).wait()
        equal(mine, sum(whole)[rank * n:(rank + 1) * n])
        mine.fill_(-1)
        dist.reduce_scatter(mine, [t.clone() for t in whole[rank].split(n or 1)][:size]
                            if n else [mine.clone()] * size)
        equal(mine, sum(whole)[rank * n:(rank + 1) * n])
    parts = [torch.full((2,), r) for r in range(size)]
    dist.group.WORLD.reduce_scatter(mine[:2], parts).wait()  # of one tensor, not of a list
    equal(mine[:2], parts[rank] * size)


def op_alltoalls():
    rank, size = rank_size()
    for n in LENGTHS:
        whole = inputs(size * n)
        out = torch.full((size * n,), -1)
        dist.all_to_all_single(out, whole[rank])
        equal(out, torch.cat([t[rank * n:(rank + 1) * n] for t in whole]))
    # row r of rank s has s + r rows of two
    given = torch.cat([torch.full((rank + r, 2), 10 * rank + r) for r in range(size)])
    wanted = torch.cat([torch.full((r + rank, 2), 10 * r + rank) for r in range(size)])
    splits = [rank + r for r in range(size)]
    out = torch.full_like(wanted, -1)
    dist.all_to_all_single(out, given, splits, splits)
    equal(out, wanted)
    parts = [torch.full((n, 2), -1) for n in splits]
    dist.all_to_all(parts, list(given.split(splits)))
    equal(torch.cat(parts), wanted)
    raises(ValueError, ["does not split"], dist.all_to_all_single, out, given, splits, splits + [1])


def op_messages():
    rank, size = rank_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    if size > 1:
        got = torch.zeros(7)
        work = dist.irecv(got, left)  # each rank waits for one that has not sent yet
        dist.send(torch.full((7,), float(rank)), right)
        work.wait()
        equal(got, torch.full((7,), float(left)))
        assert work._source_rank() == left
        out, got = torch.full((3,), rank), torch.zeros(3, dtype=torch.int64)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, out, right),
                                            dist.P2POp(dist.irecv, got, left)]):
            work.wait()
        equal(got, torch.full((3,), left))
        late = dist.isend(torch.full((3,), 10 + rank), right, tag=4)
        early = dist.isend(torch.full((3,), 20 + rank), right, tag=5)
        assert dist.recv(got, left, tag=5) == left  # the later one first
        equal(got, torch.full((3,), 20 + left))
        assert dist.recv(got, tag=4) == left  # of any rank
        equal(got, torch.full((3,), 10 + left))
        late.wait(), early.wait()
        dist.barrier()


def op_coalesced():
    rank, size = rank_size()
    group = dist.group.WORLD
    pair = [torch.full((3,), rank + 1), torch.full((5,), 2 * rank)]
    group.allreduce_coalesced(pair).wait()
    equal(pair[0], torch.full((3,), size * (size + 1) // 2))
    equal(pair[1], torch.full((5,), size * (size - 1)))
    outs = [torch.zeros(size * 2, dtype=torch.int64), torch.zeros(size, dtype=torch.int64)]
    group.allgather_into_tensor_coalesced(outs, [torch.full((2,), rank), torch.tensor([rank])]
                                          ).wait()
    equal(outs[0], torch.arange(size).repeat_interleave(2))
    equal(outs[1], torch.arange(size))
    outs = [torch.zeros(1, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)]
    given = [torch.ones(size).long(), torch.ones(2 * size).long()]
    group.reduce_scatter_tensor_coalesced(outs, given).wait()
    equal(torch.cat(outs), torch.full((3,), size))
    lists = [[torch.zeros(2) for _ in range(size)], [torch.zeros(1) for _ in range(size)]]
    group.allgather_coalesced(lists, [torch.full((2,), float(rank)), torch.ones(1)]).wait()
    equal(torch.cat(lists[0]), torch.arange(size).repeat_interleave(2).float())
    group._start_coalescing(torch.device("cpu"))
    ones = [torch.ones(2), torch.ones(3)]
    for tensor in ones:
        dist.all_reduce(tensor, async_op=True)
    group._end_coalescing(torch.device("cpu")).wait()
    equal(torch.cat(ones), torch.full((5,), float(size)))


def op_objects():
    rank, size = rank_size()
    wanted = [{"rank": r, "text": "x" * r} for r in range(size)]
    got = [None] * size
    dist.all_gather_object(got, wanted[rank])
    assert got == wanted
    got = [wanted[-1] if rank == 0 else None, rank if rank == 0 else None]
    dist.broadcast_object_list(got, 0)
    assert got == [wanted[-1], 0]
    got = [None] * size if rank == 0 else None
    dist.gather_object(wanted[rank], got, 0)
    assert rank != 0 or got == wanted
    got = [None]
    dist.scatter_object_list(got, wanted if rank == 0 else None, 0)
    assert got == [wanted[rank]]


def op_groups():
    rank, size = rank_size()
    for members in ([0], list(range(0, size, 2)), list(range(size))):
        group = dist.new_group(members)
        if rank in members:
            mine = torch.tensor([rank])
            dist.all_reduce(mine, group=group)
            assert mine.item() == sum(members)
            dist.broadcast(mine, members[-1], group=group)
            dist.destroy_process_group(group)
    if hasattr(dist, "split_group") and hasattr(torch._C._distributed_c10d.Backend, "split"):
        evens = dist.group.WORLD._get_backend(torch.device("cpu")).split(
            dist.PrefixStore("evens", dist.group.WORLD.get_group_store()),
            list(range(0, size, 2)), None)
        assert (evens is None) == (rank % 2 == 1)
        if evens is not None:
            mine = torch.tensor([rank])
            evens.allreduce([mine]).wait()
            assert mine.item() == sum(range(0, size, 2))
            evens.shutdown()


def op_barriers():
    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.group.WORLD.monitored_barrier(minute)
    assert dist.get_backend().lower() == "coll"


def op_futures():
    """Callbacks run when the operation ends, and may start and wait for others."""
    _, size = rank_size()
    other = dist.new_group()

    def again(future):
        tensor = future.value()[0]
        dist.all_reduce(tensor, group=other)
        return dist.all_reduce(tensor, group=other, async_op=True).get_future().wait()[0] + 1

    first = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(again)
    second = dist.all_reduce(torch.ones(1), async_op=True).get_future()
    first.wait(), second.wait()
    equal(second.value()[0], torch.full((1,), float(size)))
    equal(first.value(), torch.full((3,), float(size**3 + 1)))
    works = [dist.all_reduce(torch.ones(1), async_op=True) for _ in range(200)]
    while not all(work.is_completed() for work in works):
        time.sleep(0.001)


def op_functional():
    if not hasattr(dist, "_functional_collectives"):
        return
    _, size = rank_size()
    from torch.distributed import _functional_collectives as functional

    equal(functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD) + 0,
          torch.full((3,), float(size)))
    equal(functional.all_to_all_single(torch.ones(size), [1] * size, [1] * size, dist.group.WORLD)
          + 0, torch.ones(size))


# ---- training beside gloo, seed for seed ----------------------------------------------


def model_and_data(rank):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.Linear(4 * 6 * 6, 10))
    data = torch.utils.data.TensorDataset(torch.rand(64, 1, 8, 8), torch.randint(10, (64,)))
    sampler = torch.utils.data.DistributedSampler(data, seed=2)
    return model, torch.utils.data.DataLoader(data, 8, sampler=sampler)


def losses_of(model, loader, optimizer):
    losses = []
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] != losses[0], losses
    return losses


def ddp(rank, hook=None, zero=False):
    model, loader = model_and_data(rank)
    parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
    if hook:
        parallel.register_comm_hook(None, hook)
    if zero:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return losses_of(parallel, loader, optimizer)


def fsdp(rank):
    from torch.distributed.fsdp import FullyShardedDataParallel

    model, loader = model_and_data(rank)
    sharded = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    return losses_of(sharded, loader, torch.optim.SGD(sharded.parameters(), lr=0.1))


def fully_shard(rank):
    from torch.distributed.fsdp import fully_shard

    model, loader = model_and_data(rank)
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(model, mesh=mesh)
    return losses_of(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))


def beside_gloo(name, rank, size, train):
    losses = []
    for backend in ("gloo", "coll"):
        begin(name + backend, rank, size, backend)
        losses.append(train(rank))
        dist.destroy_process_group()
    for gloo, coll in zip(*losses):
        assert gloo == coll, losses


def train_ddp(*where):
    beside_gloo(*where, ddp)


def train_fp16_hook(*where):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    beside_gloo(*where, lambda rank: ddp(rank, default_hooks.fp16_compress_hook))


def train_zero_redundancy(*where):
    beside_gloo(*where, lambda rank: ddp(rank, zero=True))


def train_fsdp(*where):
    if torch.__version__ >= "2.1":  # before, FSDP needs a GPU
        beside_gloo(*where, fsdp)


def train_fully_shard(*where):
    if hasattr(torch.distributed, "device_mesh") and torch.__version__ >= "2.6":
        beside_gloo(*where, fully_shard)


# ---- faults ----------------------------------------------------------------------------


def fault_death(name, rank, size):
    """A rank dies: operations that run and those that start later say which one."""
    begin(name, rank, size)
    work = dist.all_reduce(torch.ones(3), async_op=True) if rank != 1 else None
    all_have_come(name, rank, range(size))
    if rank == 1:
        os._exit(0)
    future = work.get_future()
    raises(RuntimeError, ["rank 1"], work.wait)
    assert work.is_completed() and "rank 1" in str(work.exception())
    raises(RuntimeError, ["rank 1"], future.wait)
    raises(RuntimeError, ["rank 1"], dist.barrier)
    dist.destroy_process_group()


def fault_death_in_training(name, rank, size):
    """DDP raises, too, where C++ code looks at the future."""
    begin(name, rank, size)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3))
    loss = model(torch.ones(2, 3)).sum()
    all_have_come(name, rank, range(size))
    if rank == 1:
        os._exit(0)
    raises(RuntimeError, ["rank 1"], loss.backward)
    del model, loss
    dist.destroy_process_group()


def fault_timeout(name, rank, size):
    """A rank does not come: the sentence names it."""
    begin(name, rank, size)
    assert dist.group.WORLD._engine.timeout == minute.total_seconds()
    dist.group.WORLD.set_timeout(timedelta(seconds=1))
    if rank != 1:
        raises(RuntimeError, ["rank 1"], dist.all_reduce, torch.ones(1))
    dist.destroy_process_group()


def fault_wait_timeout(name, rank, size):
    """The same by the timeout of wait()."""
    begin(name, rank, size)
    if rank != 1:
        work = dist.all_reduce(torch.ones(1), async_op=True)
        raises(RuntimeError, ["rank 1"], work.wait, timedelta(seconds=0.5))
    dist.destroy_process_group()


def fault_monitored_barrier(name, rank, size):
    begin(name, rank, size)
    if rank != 1:
        raises(RuntimeError, ["rank 1"], dist.group.WORLD.monitored_barrier,
               timedelta(seconds=0.5), wait_all_ranks=True)
    dist.destroy_process_group()


def fault_abort(name, rank, size):
    """An abort ends the wait of all ranks with its words."""
    begin(name, rank, size)
    if rank == 1:
        dist.group.WORLD.abort("enough of this")
    else:
        raises(RuntimeError, ["enough of this"], dist.barrier)
    dist.destroy_process_group()


def fault_kept(name, rank, size):
    """The communicator ends with its group, whoever keeps a work: the others wait for that."""
    begin(name, rank, size)
    engine, work = dist.group.WORLD._engine, dist.barrier(async_op=True)
    work.wait()
    dist.destroy_process_group()
    raises(Exception, ["comm is NULL"], engine.comm.barrier)


def all_have_come(name, rank, ranks):
    open(f"{name}.come{rank}", "w").close()
    while not all(os.path.exists(f"{name}.come{r}") for r in ranks):
        time.sleep(0.01)


def average_of_ranks(group=None):
    """What DDP makes of gradients of rank + 1, by C++ code that asks the group for its size."""
    model = torch.nn.Linear(1, 1, bias=False)
    model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    model(torch.full((1, 1), dist.get_rank() + 1.0)).sum().backward()
    equal(model.module.weight.grad, torch.full((1, 1), (dist.get_world_size() + 1) / 2))


def fault_shrink(name, rank, size):
    """Rank 1 dies: the others have a group without it, and then one without rank 2."""
    if not hasattr(dist, "shrink_group"):
        return
    begin(name, rank, size)
    all_have_come(name, rank, range(size))
    if rank == 1:
        os._exit(0)
    raises(RuntimeError, ["rank 1"], dist.barrier)
    dist.shrink_group([1], shrink_flags=1)
    assert rank_size() == (rank // 2, 2)
    average_of_ranks(dist.new_group(backend="coll"))
    all_have_come(name + "again", rank, (0, 2))
    if rank == 0:
        dist.shrink_group([1])
        assert rank_size() == (0, 1)
        ones = torch.ones(1)
        dist.all_reduce(ones)
        equal(ones, torch.ones(1))
    dist.destroy_process_group()


def fault_reconfigure(name, rank, size):
    """Rank 1 dies: the others form the group anew, with a new member in front."""
    begin(name, rank, size)
    group = dist.group.WORLD
    handles = [None] * size
    dist.all_gather_object(handles, group.get_reconfigure_handle())
    work = dist.all_reduce(torch.ones(1), async_op=True) if rank == 0 else None
    all_have_come(name, rank, range(size))
    if rank == 1:
        os._exit(0)
    reconfigure(group, 7, [handles[2], handles[0]])
    assert rank_size() == (1 - rank // 2, 2)
    raises(RuntimeError, [""], work.wait) if rank == 0 else None
    sums = torch.ones(3)
    dist.all_reduce(sums)
    equal(sums, torch.full((3,), 2.0))
    raises(RuntimeError, ["already used"], reconfigure, group, 7, handles)
    raises(RuntimeError, ["missing"], reconfigure, group, 8, handles[1:2])
    reconfigure(group, 8, {handles[0], handles[2]})
    if hasattr(dist, "shrink_group"):
        average_of_ranks()
    dist.destroy_process_group()


def reconfigure(group, uuid, handles):
    group.reconfigure(SimpleNamespace(uuid=uuid, handles=handles, timeout=minute)).wait()


def fault_reconfigure_first(name, rank, size):
    """Groups of which reconfigure() makes the first communicator, apart and then together."""
    from libcoll.torch import create

    store = dist.FileStore(f"{name}.store", -1)
    group = create(store, rank, size, minute, True)
    assert (group.rank(), group.size()) == (rank, size)
    raises(RuntimeError, ["waits for reconfigure"], group.barrier)
    store.set(str(rank), group.get_reconfigure_handle())
    handles = [store.get(str(r)).decode() for r in range(size)]
    reconfigure(group, 5, handles[2:] if rank == 2 else handles[:2])
    assert (group.rank(), group.size()) == (rank % 2, 2 - rank // 2)
    reconfigure(group, 6, handles)
    ones = torch.ones(1)
    group.allreduce([ones], SimpleNamespace(reduceOp=dist.ReduceOp.SUM)).wait()
    equal(ones, torch.full((1,), 3.0))
    if hasattr(dist, "shrink_group"):
        dist.init_process_group("coll", store=store, rank=rank, world_size=size,
                                enable_reconfigure=True)
        store.set(f"world{rank}", dist._get_reconfigure_handle())
        dist._reconfigure(1, [store.get(f"world{r}").decode() for r in range(size)]).wait()
        average_of_ranks()
    group.shutdown()


def fault_left_open(name, rank, size):
    """A program may end without destroy_process_group()."""
    begin(name, rank, size)
    dist.all_reduce(torch.ones(5))
    sys.exit(0)


# ---- ranks -------------------------------------------------------------------------------


def all_operations(name, rank, size):
    begin(name, rank, size)
    for test in named("op_"):
        test()
    dist.destroy_process_group()
    begin(name + "again", rank, size)
    dist.barrier()
    dist.destroy_process_group()


def named(start):
    return [test for name, test in globals().items() if name.startswith(start)]


if __name__ == "__main__":
    main([(all_operations, n) for n in (1, 2, 3, 5)] + [(test, 2) for test in named("train_")]
         + [(test, 3) for test in named("fault_")])
