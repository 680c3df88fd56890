# SPDX-License-Identifier: BSD-3-Clause
"""horovod_ranks.py FOLDER [TEST...] - libcoll.horovod.torch; horovod.sh starts it.

Functions op_*() run on 1 to 5 ranks, train_*() on two and three.
"""

import os
import random
import time

import torch
from forked import equal, main, raises
from torch import nn

# what horovod/torch/__init__.py of Horovod 0.28 exports, but for elastic
NAMES = """Adasum Average Compression DistributedOptimizer HorovodInternalError Max Min Product
ProcessSet Sum SyncBatchNorm add_process_set allgather allgather_async allgather_object allreduce
allreduce_ allreduce_async allreduce_async_ alltoall alltoall_async barrier broadcast broadcast_
broadcast_async broadcast_async_ broadcast_object broadcast_optimizer_state broadcast_parameters
ccl_built cross_rank cross_size cuda_built ddl_built global_process_set gloo_built gloo_enabled
grouped_allgather grouped_allgather_async grouped_allreduce grouped_allreduce_
grouped_allreduce_async grouped_allreduce_async_ grouped_reducescatter
grouped_reducescatter_async init is_initialized join local_rank local_size mpi_built mpi_enabled
mpi_threads_supported nccl_built poll rank reducescatter reducescatter_async remove_process_set
rocm_built shutdown size sparse_allreduce_async start_timeline stop_timeline synchronize"""

DTYPES = (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.float64)
hvd = None  # imported by the ranks


def inputs(shape, dtype=torch.float32):
    """The tensors of all ranks: small whole numbers."""
    n = torch.Size(shape).numel()
    return [((torch.arange(n) * (r + 1) + r) % 5 + 1).to(dtype).reshape(shape)
            for r in range(hvd.size())]


# ---- operations --------------------------------------------------------------------------


def op_names():
    missing = [name for name in NAMES.split() if not hasattr(hvd, name)]
    assert not missing, missing
    assert hvd.is_initialized() and 0 <= hvd.rank() < hvd.size()
    assert hvd.local_size() == hvd.size() and hvd.local_rank() == hvd.rank()
    assert (hvd.cross_size(), hvd.cross_rank()) == (1, 0) and hvd.is_homogeneous()
    assert not hvd.mpi_built() and not hvd.nccl_built()


def op_allreduce():
    rank = hvd.rank()
    for dtype in DTYPES:
        for shape in ((), (0,), (7,), (3, 1001)):
            everyone = inputs(shape, dtype)
            total = torch.stack(everyone).double().sum(0)
            given = everyone[rank].clone()
            equal(hvd.allreduce(given, op=hvd.Sum).double(), total)
            equal(given, everyone[rank])
            equal(hvd.allreduce(given, op=hvd.Max), torch.stack(everyone).amax(0))
            equal(hvd.allreduce(given, op=hvd.Min), torch.stack(everyone).amin(0))
            factors = [t.double() % 2 + 1 for t in everyone]
            got = hvd.allreduce(factors[rank].to(dtype), op=hvd.Product)
            equal(got.double(), torch.stack(factors).prod(0))
            assert hvd.allreduce_(given, average=False, name="in place") is given
            equal(given.double(), total)
    everyone = inputs((3, 4))
    equal(hvd.allreduce(everyone[rank].t()), (sum(everyone) / hvd.size()).t())  # not contiguous
    columns = torch.zeros(3, 8)[:, ::2].copy_(everyone[rank])
    equal(hvd.allreduce_(columns, op=hvd.Sum), sum(everyone))
    raises(ValueError, ["op parameter"], hvd.allreduce, columns, average=True, op=hvd.Sum)
    fp16 = hvd.allreduce(everyone[rank], op=hvd.Sum, compression=hvd.Compression.fp16)
    assert fp16.dtype == torch.float32
    equal(fp16, sum(everyone))


def op_scales():
    """The product is exact: whole numbers times powers of two."""
    for dtype in (torch.int32, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        everyone = inputs((9,), dtype)
        got = hvd.allreduce(everyone[hvd.rank()], op=hvd.Sum, prescale_factor=4,
                            postscale_factor=0.5)
        equal(got.double(), sum(t.double() for t in everyone) * 2)
        rows = everyone[hvd.rank()].repeat(hvd.size())
        got = hvd.reducescatter(rows, op=hvd.Sum, prescale_factor=4, postscale_factor=0.5)
        equal(got.double(), sum(t.double() for t in everyone) * 2)
        for factors in ((0, 1), (1, 0), (0.5, 0)):
            equal(hvd.allreduce(rows, op=hvd.Sum, prescale_factor=factors[0],
                                postscale_factor=factors[1]), torch.zeros_like(rows))
    mine = torch.full((3,), 1.0 + hvd.rank())
    equal(hvd.allreduce(mine, op=hvd.Max, prescale_factor=2.0),
          torch.full((3,), 2.0 * hvd.size()))
    one = torch.ones(2, dtype=torch.complex64)
    equal(hvd.allreduce(one * 1j, op=hvd.Sum, prescale_factor=0.5), one * 0.5j * hvd.size())


def op_orders():
    """Ranks submit in orders of their own, some names late, several times."""
    shuffle = random.Random(hvd.rank()).shuffle
    for step in range(6):
        numbers = list(range(40))
        shuffle(numbers)
        handles = {}
        for n in numbers:
            tensor = torch.full((n + 1,), float(hvd.rank() + n + step))
            handles[n] = hvd.allreduce_async_(tensor, op=hvd.Sum, name=f"order {n}")
            if n == hvd.rank():
                time.sleep(0.01)
        shuffle(numbers)
        for n in numbers:
            wanted = sum(r + n + step for r in range(hvd.size()))
            equal(hvd.synchronize(handles[n]), torch.full((n + 1,), float(wanted)))
            assert hvd.poll(handles[n])


def op_groups():
    lists = [inputs(shape, dtype) for shape, dtype in
             (((3,), torch.float32), ((2, 2), torch.int64), ((), torch.float32))]
    mine = [everyone[hvd.rank()].clone() for everyone in lists]
    for got in (hvd.grouped_allreduce(mine, op=hvd.Sum, name="group"),
                hvd.synchronize(hvd.grouped_allreduce_async(mine, op=hvd.Sum)),
                hvd.grouped_allreduce_(mine, op=hvd.Sum)):
        for result, everyone in zip(got, lists):
            equal(result, sum(everyone))
    mine = [torch.full((hvd.rank() + n, 2), n) for n in range(2)]
    for n, got in enumerate(hvd.grouped_allgather(mine)):
        equal(got, torch.full((sum(r + n for r in range(hvd.size())), 2), n))
    rows = [torch.full((hvd.size(),), float(n)) for n in range(2)]
    for n, got in enumerate(hvd.grouped_reducescatter(rows, op=hvd.Sum)):
        equal(got, torch.full((1,), float(n * hvd.size())))


def op_gathers():
    rank, size = hvd.rank(), hvd.size()
    for dtype in (*DTYPES, torch.bool, torch.complex64):
        wanted = torch.cat([torch.full((r, 3), r).to(dtype) for r in range(size)])
        equal(hvd.allgather(torch.full((rank, 3), rank).to(dtype), name="rows"), wanted)
    raises(ValueError, ["dimension"], hvd.allgather, torch.tensor(1))
    for root in range(size):
        mine = torch.full((4,), rank)
        equal(hvd.broadcast(mine, root), torch.full((4,), root))
        equal(mine, torch.full((4,), rank))
        assert hvd.broadcast_(mine, root, name="root") is mine
        equal(mine, torch.full((4,), root))
    raises(ValueError, ["root rank"], hvd.broadcast, mine, size)
    equal(hvd.alltoall(torch.arange(2 * size) + 100 * rank),
          torch.cat([torch.arange(2 * rank, 2 * rank + 2) + 100 * r for r in range(size)]))
    splits = torch.arange(size)  # r rows to rank r
    got, received = hvd.alltoall(torch.full((int(splits.sum()), 2), rank), splits)
    equal(received, torch.full((size,), rank, dtype=torch.int32))
    equal(got, torch.arange(size).repeat_interleave(rank).view(-1, 1).expand(-1, 2))
    raises(ValueError, ["rows"], hvd.alltoall, torch.zeros(2), torch.full((size,), 3))
    everyone = inputs((2 * size + 1, 3))  # the first rank gets a row more
    begin = 2 * rank + (rank > 0)
    wanted = sum(everyone)[begin:begin + 2 + (rank == 0)]
    equal(hvd.reducescatter(everyone[rank], op=hvd.Sum), wanted)
    equal(hvd.synchronize(hvd.reducescatter_async(everyone[rank])), wanted / size)


def op_gradients():
    """The gradients that one process has for the sum of all ranks' results."""
    rank, size = hvd.rank(), hvd.size()

    def gradient(function, rows=2):
        tensor = torch.ones(rows, 2, requires_grad=True)
        result = function(tensor)
        (result * (rank + 1)).sum().backward()
        return tensor.grad

    total = sum(r + 1.0 for r in range(size))
    ones = torch.ones(2, 2)
    equal(gradient(lambda t: hvd.allreduce(t, op=hvd.Sum)), ones * total)
    torch.testing.assert_close(gradient(hvd.allreduce), ones * total / size)
    equal(gradient(hvd.allgather, rank + 1), torch.ones(rank + 1, 2) * total)
    equal(gradient(lambda t: hvd.broadcast(t, size - 1)), ones * total * (rank == size - 1))
    equal(gradient(hvd.alltoall, size), torch.arange(1.0, size + 1).view(-1, 1).expand(-1, 2))
    equal(gradient(lambda t: hvd.reducescatter(t, op=hvd.Sum), size),
          torch.arange(1.0, size + 1).view(-1, 1).expand(-1, 2))


def adasum(a, b):
    return (1 - a @ b / (2 * a @ a)) * a + (1 - a @ b / (2 * b @ b)) * b


def op_adasum():
    vectors = [torch.arange(1.0, 6) * (-1) ** r + r for r in range(hvd.size())]
    if hvd.size() & (hvd.size() - 1):
        raises(NotImplementedError, ["power of 2"], hvd.allreduce, vectors[0], op=hvd.Adasum)
        return
    wanted = [v.double() for v in vectors]
    while len(wanted) > 1:
        wanted = [adasum(a, b) for a, b in zip(wanted[::2], wanted[1::2])]
    got = hvd.allreduce(vectors[hvd.rank()], op=hvd.Adasum)
    torch.testing.assert_close(got, wanted[0].float())
    raises(ValueError, ["floating-point"], hvd.allreduce, torch.ones(1).int(), op=hvd.Adasum)


def op_sparse():
    rank, size = hvd.rank(), hvd.size()
    mine = torch.sparse_coo_tensor([[0, rank + 1], [1, 1]], [1.0, 2.0], (size + 1, 2))
    wanted = torch.zeros(size + 1, 2)
    wanted[:, 1] = 2
    wanted[0, 1] = size
    equal(hvd.sparse_allreduce_async(mine, "sparse", hvd.Sum)().to_dense(), wanted)
    got = hvd.synchronize(hvd.sparse_allreduce_async(mine, "sparse", hvd.Average))
    torch.testing.assert_close(got.to_dense(), wanted / size)


def op_objects():
    thing = {"rank": hvd.rank(), "list": [1, "two"]}
    for root in range(hvd.size()):
        assert hvd.broadcast_object(thing, root) == {**thing, "rank": root}
    assert hvd.allgather_object("x" * hvd.rank()) == ["x" * r for r in range(hvd.size())]


def op_parameters():
    """Model and optimizer of the last rank, whose optimizer alone has a state."""
    root = hvd.size() - 1
    torch.manual_seed(hvd.rank())
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5 if hvd.rank() == root else 0.1)
    if hvd.rank() == root:
        model(torch.rand(4, 3)).square().sum().backward()
        optimizer.step()
    hvd.broadcast_parameters(model.state_dict(), root)
    hvd.broadcast_optimizer_state(optimizer, root)
    texts = hvd.allgather_object((
        {k: v.tolist() for k, v in model.state_dict().items()},
        optimizer.param_groups[0]["lr"],
        [s["exp_avg"].tolist() for s in optimizer.state_dict()["state"].values()],
    ))
    assert texts == [texts[root]] * hvd.size() and texts[0][1] == 0.5 and texts[0][2]
    raises(ValueError, ["LBFGS"], hvd.broadcast_optimizer_state,
           torch.optim.LBFGS(model.parameters()), 0)


def op_duplicates():
    """The rank that repeats a name is told at once; the job goes on."""
    last = hvd.size() - 1
    if hvd.rank() != last or last == 0:
        hvd.barrier()
    handle = hvd.allreduce_async(torch.ones(2), name="twice")
    if hvd.rank() == last and last > 0:  # the others are in the barrier
        raises(hvd.HorovodInternalError, ["same name", "twice"],
               hvd.allreduce_async, torch.ones(2), name="twice")
        hvd.barrier()
    equal(hvd.synchronize(handle), torch.ones(2))


def op_mismatches():
    """All ranks get the error, also for a name that they had agreed on before."""
    rank, one = hvd.rank(), torch.ones(4)
    error = hvd.HorovodInternalError
    if hvd.size() == 1:
        return
    for _ in range(2):
        equal(hvd.allreduce(one, name="differs"), one)
        raises(error, ["Mismatched shapes", "differs"],
               hvd.allreduce, torch.ones(4 + (rank == 1)), name="differs")
        raises(error, ["Mismatched types"],
               hvd.allreduce, one.double() if rank == 1 else one, name="differs")
        raises(error, ["Mismatched reduction"],
               hvd.allreduce, one, name="differs", op=hvd.Sum if rank == 1 else hvd.Max)
        raises(error, ["Mismatched scale"],
               hvd.allreduce, one, name="differs", prescale_factor=1.0 + rank)
        raises(error, ["Mismatched root"], hvd.broadcast, one, min(rank, 1), "differs")
        raises(error, ["Mismatched shapes"], hvd.allgather, torch.ones(2, 2 + rank), "differs")


def op_process_sets():
    rank, size = hvd.rank(), hvd.size()
    assert hvd.global_process_set.ranks == list(range(size))
    even = hvd.add_process_set(range(0, size, 2))
    last = hvd.add_process_set(hvd.ProcessSet([size - 1]))
    for process_set in (even, last, hvd.global_process_set):
        members = process_set.ranks
        assert process_set.size() == len(members)
        assert process_set.included() == (rank in members)
        if not process_set.included():
            raises(ValueError, ["not in the process set"], hvd.allreduce, torch.ones(1),
                   process_set=process_set)
            continue
        assert process_set.rank() == members.index(rank)
        got = hvd.allreduce(torch.full((2,), float(rank)), op=hvd.Sum, process_set=process_set)
        equal(got, torch.full((2,), float(sum(members))))
        equal(hvd.allgather(torch.tensor([rank]), process_set=process_set), torch.tensor(members))
        got = hvd.broadcast(torch.tensor(rank), members[-1], process_set=process_set)
        equal(got, torch.tensor(members[-1]))
        assert hvd.allgather_object(rank, process_set=process_set) == members
    raises(ValueError, ["process set takes"], hvd.add_process_set, [size])
    assert hvd.remove_process_set(even) and hvd.remove_process_set(last)
    assert not hvd.remove_process_set(hvd.global_process_set)
    raises(ValueError, ["removed"], hvd.allreduce, torch.ones(1), process_set=even)


def op_join():
    """Rank r has r + 1 steps; the others' zeros are in the sums."""
    rank, size = hvd.rank(), hvd.size()
    for round in range(2):
        for step in range(rank + 1):
            left = float(size - step)  # ranks that have this step
            equal(hvd.allreduce(torch.ones(3), op=hvd.Sum, name="known"), torch.full((3,), left))
            name = f"new in {round} {step}"
            equal(hvd.allreduce(torch.ones(3), op=hvd.Sum, name=name), torch.full((3,), left))
            rows = hvd.allgather(torch.tensor([[rank]]), name="rows")
            equal(rows, torch.arange(step, size).view(-1, 1))
            if step:
                raises(hvd.HorovodInternalError, ["broadcast is not supported with Join"],
                       hvd.broadcast, torch.ones(1), size - 1, "with join")
        assert hvd.join() == size - 1
    equal(hvd.allreduce(torch.ones(3), op=hvd.Sum, name="known"), torch.full((3,), float(size)))


def op_batch_norm():
    """As one batch normalization over the batches of all ranks, which differ in length."""
    rank, size = hvd.rank(), hvd.size()
    torch.manual_seed(1)
    whole = torch.rand(2 * size + 1, 3, 4, dtype=torch.double, requires_grad=True)
    begin, end = 2 * rank + (rank > 0), 2 * rank + 3
    mine = whole.detach()[begin:end].clone().requires_grad_()
    one, ours = nn.BatchNorm1d(3).double(), hvd.SyncBatchNorm(3).double()
    for _ in range(2):
        wanted, got = one(whole), ours(mine)
        torch.testing.assert_close(got, wanted[begin:end])
    (wanted.square() * whole.detach()).sum().backward()
    (got.square() * mine.detach()).sum().backward()
    torch.testing.assert_close(mine.grad, whole.grad[begin:end])
    torch.testing.assert_close(hvd.allreduce(ours.weight.grad, op=hvd.Sum), one.weight.grad)
    torch.testing.assert_close(ours.running_mean, one.running_mean)
    torch.testing.assert_close(ours.running_var, one.running_var)
    ours.eval(), one.eval()
    torch.testing.assert_close(ours(mine), one(whole)[begin:end])


# ---- training -----------------------------------------------------------------------------
#
# One process trains a copy of the model on the batches of all ranks.  Both add up f64 in
# different orders: a step's error is some 1e-16 times the sums, far below the 1e-9 of the
# comparison.  f16 rounds each gradient by 2^-11 of itself, that is 2^-11 of what the
# weights have moved at most, and their sum again.

STEPS, BATCH = 4, 4


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 5)).double()


def batch(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return (torch.rand(BATCH, 1, 8, 8, dtype=torch.double, generator=generator),
            torch.randint(5, (BATCH,), generator=generator))


def backward(model, pixels, labels, share=1.0):
    loss = nn.functional.cross_entropy(model(pixels), labels) * share
    loss.backward()
    return loss.detach()


def reference(has_step=lambda step, rank: True, lr=0.1):
    """Return the model that one process trains, and its last loss."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        ranks = [rank for rank in range(hvd.size()) if has_step(step, rank)]
        loss = sum(backward(model, *batch(step, rank), 1 / hvd.size()) for rank in ranks)
        optimizer.step()
    return model, loss


def compare(model, wanted, moved=0.0):
    for p, q in zip(model.parameters(), wanted.parameters()):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-9 + moved)


def distributed(model, **options):
    hvd.broadcast_parameters(model.state_dict(), 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return hvd.DistributedOptimizer(optimizer, model.named_parameters(), **options)


def train_as_one(name, rank, size):
    """With groups, f16, a factor: the loss and the weights of one process."""
    begin(rank, size)
    wanted, wanted_loss = reference()
    moved = max(float((p - q).abs().max()) for p, q in zip(wanted.parameters(),
                                                          network().parameters()))
    for options in ({}, {"num_groups": 2}, {"gradient_predivide_factor": 4.0},
                    {"groups": [list(network().parameters())[:0]]},
                    {"compression": hvd.Compression.fp16}):
        model = network()
        optimizer = distributed(model, **options)
        assert isinstance(optimizer, torch.optim.SGD)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = hvd.allreduce(backward(model, *batch(step, rank)))
            raises(AssertionError, ["race condition"], optimizer.zero_grad)
            optimizer.step()
        is_rounded = "compression" in options
        compare(model, wanted, moved * STEPS * 2**-9 if is_rounded else 0)
        if not is_rounded:
            torch.testing.assert_close(loss, wanted_loss, rtol=1e-9, atol=0)
    hvd.shutdown()


def train_by_passes(name, rank, size):
    """Two backward passes a step, each of half a batch; clipping between."""
    begin(rank, size)
    wanted, _ = reference()
    model = network()
    optimizer = distributed(model, backward_passes_per_step=2)
    for step in range(STEPS):
        optimizer.zero_grad()
        pixels, labels = batch(step, rank)
        for part in (slice(0, 2), slice(2, 4)):
            backward(model, pixels[part], labels[part], 0.5)
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        with optimizer.skip_synchronize():
            optimizer.step()
    compare(model, wanted)
    for _ in range(2):
        backward(model, pixels, labels)
    raises(AssertionError, ["backward_passes_per_step"], backward, model, pixels, labels)
    optimizer.synchronize()
    hvd.shutdown()


def train_until_join(name, rank, size):
    """A rank has a batch more than the one before it.  The last rank has seen all steps."""
    begin(rank, size)
    wanted, _ = reference(lambda step, r: step < STEPS - size + 1 + r)
    model = network()
    optimizer = distributed(model)
    for step in range(STEPS - size + 1 + rank):
        optimizer.zero_grad()
        backward(model, *batch(step, rank))
        optimizer.step()
    assert hvd.join() == size - 1
    hvd.broadcast_parameters(dict(model.named_parameters()), size - 1)
    compare(model, wanted)
    hvd.shutdown()


def train_sparse(name, rank, size):
    """Gradients of an embedding are sparse, or dense on demand."""
    begin(rank, size)
    rows = [torch.tensor([r, r + 1, 7]) for r in range(size)]

    def embedding():
        torch.manual_seed(5)
        return nn.Embedding(8, 3, sparse=True).double()

    wanted = embedding()
    optimizer = torch.optim.SGD(wanted.parameters(), lr=0.5)
    sum(wanted(r).square().sum() / size for r in rows).backward()
    optimizer.step()
    for options in ({}, {"sparse_as_dense": True}):
        model = embedding()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), **options)
        model(rows[rank]).square().sum().backward()
        optimizer.step()
        compare(model, wanted)
    hvd.shutdown()


def train_adasum(name, rank, size):
    """The steps of the ranks are combined, not the gradients."""
    begin(rank, size)
    if size == 2:
        model, moves = network(), []
        for r in range(2):
            backward(model, *batch(0, r))
            moves.append([-0.1 * p.grad for p in model.parameters()])
            model.zero_grad()
        wanted = network()
        for p, a, b in zip(wanted.parameters(), *moves):
            p.data += adasum(a.flatten(), b.flatten()).view(p.shape)
        optimizer = distributed(model, op=hvd.Adasum)
        backward(model, *batch(0, rank))
        optimizer.step()
        compare(model, wanted)
    raises(ValueError, ["gradient_predivide_factor"], distributed, network(), op=hvd.Adasum,
           gradient_predivide_factor=2.0)
    raises(ValueError, ["not named"], hvd.DistributedOptimizer,
           torch.optim.SGD(network().parameters(), lr=1.0), [("one", torch.ones(1))])
    hvd.shutdown()


# ---- ranks ----------------------------------------------------------------------------------


def begin(rank, size):
    global hvd
    import libcoll.horovod.torch as hvd

    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
    hvd.init()
    return hvd


def all_operations(name, rank, size):
    for _ in range(2):
        begin(rank, size)
        for test in named("op_"):
            test()
        hvd.shutdown()


def named(start):
    return [test for name, test in globals().items() if name.startswith(start)]


if __name__ == "__main__":
    main([(all_operations, n) for n in (1, 2, 3, 5)]
         + [(test, n) for test in named("train_") for n in (2, 3)])
