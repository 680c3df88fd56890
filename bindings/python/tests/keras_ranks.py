# SPDX-License-Identifier: BSD-3-Clause
"""keras_ranks.py FOLDER [death] - libcoll.horovod.tensorflow and .keras; keras.sh starts it
on two and three ranks, through the names of Horovod."""

import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import horovod.keras as hvd
import horovod.tensorflow as hvd_tf
import horovod.tensorflow.keras.callbacks as callbacks
import keras
import numpy
import tensorflow as tf
from horovod.common.exceptions import HorovodInternalError

N = 24  # examples: every rank has as many


def equal(got, wanted):
    numpy.testing.assert_array_equal(numpy.asarray(got), numpy.asarray(wanted))


def near(got, wanted, bound=1e-4):
    numpy.testing.assert_allclose(got, wanted, rtol=bound, atol=bound / 100)


def raises(kind, words, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        assert all(word in str(error) for word in words), f"'{error}' has nothing of {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def operations(wrap):
    """Every operation, and its gradient; wrap is tf.function, or leaves a function alone."""
    n, r = hvd.size(), hvd.rank()
    ranks = range(n)
    for dtype in ("uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"):
        given = tf.cast(tf.fill([2, 3], r + 1), dtype)
        got = wrap(lambda t: hvd_tf.allreduce(t, op=hvd_tf.Sum))(given)
        assert got.dtype == given.dtype and got.shape == (2, 3)
        equal(tf.cast(got, "int32"), numpy.full((2, 3), n * (n + 1) // 2))
    given = tf.fill([2], float(r))
    equal(wrap(hvd_tf.allreduce)(given), numpy.full(2, (n - 1) / 2, "f4"))
    equal(wrap(lambda t: hvd_tf.allreduce(t, compression=hvd.Compression.fp16))(given),
          numpy.full(2, (n - 1) / 2, "f4"))
    equal(wrap(lambda t: hvd_tf.allreduce(t, op=hvd.Max, name="max"))(given), [n - 1, n - 1])
    scaled = wrap(lambda t: hvd_tf.allreduce(t, op=hvd.Sum, prescale_factor=2.0,
                                             postscale_factor=0.5))
    equal(scaled(given), numpy.full(2, sum(ranks)))
    one, two = wrap(lambda t: hvd_tf.grouped_allreduce([t, 2 * t], op=hvd.Sum))(given)
    equal([one[0], two[0]], [sum(ranks), 2 * sum(ranks)])
    rows = tf.fill([r + 1, 2], float(r))
    equal(wrap(hvd_tf.allgather)(rows)[:, 0], [q for q in ranks for _ in range(q + 1)])
    equal(wrap(lambda t: hvd_tf.broadcast(t, n - 1))(given), [n - 1, n - 1])
    equal(wrap(hvd_tf.alltoall)(tf.fill([n], r)), list(ranks))
    rows = tf.fill([n * (n - 1) // 2], r)
    out, received = wrap(lambda t: hvd_tf.alltoall(t, tf.range(n)))(rows)
    equal(out, [q for q in ranks for _ in range(r)])
    equal(received, [r] * n)
    equal(wrap(lambda t: hvd_tf.reducescatter(t, op=hvd.Sum))(tf.range(n)), [n * r])
    if n == 2:
        equal(wrap(lambda t: hvd_tf.allreduce(t, op=hvd.Adasum))(tf.one_hot(r, 2)), [1, 1])
    slices = tf.IndexedSlices(tf.fill([1, 2], float(r)), tf.constant([r]), tf.constant([n, 2]))
    total = wrap(lambda: tf.convert_to_tensor(hvd_tf.allreduce(slices, op=hvd.Sum)))()
    equal(total, [[q, q] for q in ranks])

    def gradient(function, given):
        def run(t):
            with tf.GradientTape() as tape:
                tape.watch(t)
                loss = tf.reduce_sum(function(t) * (r + 1.0))
            return tape.gradient(loss, t)
        return wrap(run)(given)

    weights = n * (n + 1) / 2  # the sum of all r + 1
    equal(gradient(lambda t: hvd_tf.allreduce(t, op=hvd.Sum), given), [weights] * 2)
    equal(gradient(lambda t: hvd_tf.broadcast(t, 0), given), [0 if r else weights] * 2)
    equal(gradient(hvd_tf.allgather, tf.ones([r + 1])), [weights] * (r + 1))
    equal(gradient(hvd_tf.alltoall, tf.ones([n])), [q + 1 for q in ranks])
    equal(gradient(lambda t: hvd_tf.reducescatter(t, op=hvd.Sum), tf.ones([n])),
          [q + 1 for q in ranks])


def others():
    n, r = hvd.size(), hvd.rank()
    assert hvd.local_size() == n and hvd.local_rank() == r and not hvd.mpi_built()
    assert hvd.broadcast_object({"rank": r}, n - 1) == {"rank": n - 1}
    assert hvd.allgather_object("x" * r) == ["x" * q for q in range(n)]
    variable = tf.Variable([float(r)])
    tf.function(lambda: hvd.broadcast_variables([variable], n - 1))()
    equal(variable, [n - 1])
    equal(hvd.allreduce(float(r), name="value"), (n - 1) / 2)
    raises(HorovodInternalError, ["Mismatched shapes"], hvd_tf.allreduce, tf.ones([r + 1]))
    raises(ValueError, ["bool"], hvd_tf.allreduce, tf.constant([True]))
    raises(ValueError, ["root rank"], hvd_tf.broadcast, variable, n)
    jit = tf.function(hvd_tf.allreduce, jit_compile=True)
    raises(NotImplementedError, ["XLA"], jit, tf.ones([2]))
    hvd.barrier()
    if r:  # the others go on without rank 0, which adds zeros
        equal(hvd_tf.allreduce(tf.ones([2]), op=hvd.Sum, name="joined"), [n - 1, n - 1])
    hvd.join()


def orders():
    """Gradients of one tape meet by name, whatever their order is."""
    a, b = tf.Variable([1.0], name="a"), tf.Variable([2.0, 3.0], name="b")
    variables = [a, b] if hvd.rank() else [b, a]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(a) * 2 + tf.reduce_sum(b) * hvd.rank()
        return hvd_tf.DistributedGradientTape(tape, op=hvd.Sum).gradient(loss, variables)

    for _ in range(3):
        got = dict(zip("ab" if hvd.rank() else "ba", step()))
        equal(got["a"], [2 * hvd.size()])
        equal(got["b"], [sum(range(hvd.size()))] * 2)


# ---- training ----------------------------------------------------------------------------


def examples(seed=1, n=N * 3):
    random = numpy.random.default_rng(seed)
    labels = random.integers(0, 10, n)
    pixels = random.random((n, 12, 12, 1), "f4")
    pixels[numpy.arange(n), labels, 0] += 1
    return pixels, labels


def network(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([
        keras.Input((12, 12, 1)), keras.layers.Conv2D(4, 3, activation="relu"),
        keras.layers.Flatten(), keras.layers.Dense(10),
    ])


def loss_of():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def part(data):
    """This rank's examples: those of one process's batches, dealt out."""
    return [array[: N * hvd.size()][hvd.rank() :: hvd.size()] for array in data]


def same_on_all_ranks(model):
    for n, weight in enumerate(model.get_weights()):
        for other in hvd.allgather_object(weight, name=f"weight {n}"):
            equal(other, weight)


def fit(model, optimizer, data, batch, **options):
    model.compile(optimizer, loss_of(), metrics=["accuracy"])
    return model.fit(*data, batch, epochs=3, shuffle=False, verbose=0, **options).history


def train_fit():
    """Model.fit() on parts of each batch ends where one process ends with whole batches."""
    whole = [array[: N * hvd.size()] for array in examples()]
    alone = network(1)
    wanted = fit(alone, keras.optimizers.SGD(0.05, momentum=0.9), whole, 8 * hvd.size())
    model = network(1)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.05, momentum=0.9))
    # the broadcast is behind the first batch, which all ranks begin with the same weights
    got = fit(model, optimizer, part(examples()), 8,
              callbacks=[callbacks.BroadcastGlobalVariablesCallback(0),
                         callbacks.MetricAverageCallback()])
    near(got["loss"], wanted["loss"])
    near(got["accuracy"], wanted["accuracy"])
    for one, other in zip(model.get_weights(), alone.get_weights()):
        near(one, other, 1e-3)
    same_on_all_ranks(model)


def train_broadcast():
    """Ranks that begin with different weights have those of the root; only it is saved."""
    model = network(hvd.rank() + 1)
    fit(model, hvd.DistributedOptimizer(keras.optimizers.Adam(0.01), sparse_as_dense=True),
        part(examples()), 8, callbacks=[callbacks.BroadcastGlobalVariablesCallback(1)])
    same_on_all_ranks(model)
    path = f"{sys.argv[1]}/model.keras"
    if hvd.rank() == 0:
        model.save(path)
    hvd.barrier()
    plain = keras.models.load_model(path)
    assert type(plain.optimizer) is keras.optimizers.Adam
    loaded = hvd.load_model(path)
    assert type(loaded.optimizer) is not keras.optimizers.Adam
    for one, other in zip(loaded.optimizer.variables, model.optimizer.variables):
        equal(one, other)
    loaded.fit(*part(examples()), 8, verbose=0)
    same_on_all_ranks(loaded)
    raises(ValueError, ["already"], hvd.DistributedOptimizer, loaded.optimizer)


def train_passes():
    """Gradients of two batches are added up before the ranks exchange them."""
    models = []
    for passes, batch in ((2, 4), (1, 8)):
        model = network(3)
        optimizer = hvd.DistributedOptimizer(
            keras.optimizers.SGD(0.05), backward_passes_per_step=passes,
            average_aggregated_gradients=True)
        fit(model, optimizer, part(examples()), batch)
        same_on_all_ranks(model)
        models.append(model)
    for one, other in zip(*(model.get_weights() for model in models)):
        near(one, other, 1e-3)


def train_tape():
    """A loop of one's own, with the tutorial's broadcast in its first step."""
    model, optimizer = network(hvd.rank() + 1), keras.optimizers.SGD(0.05)
    pixels, labels = part(examples())

    @tf.function
    def step(pixels, labels, is_first):
        with tf.GradientTape() as tape:
            loss = loss_of()(labels, model(pixels, training=True))
        tape = hvd_tf.DistributedGradientTape(tape, compression=hvd.Compression.fp16)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        if is_first:
            hvd_tf.broadcast_variables(model.variables, root_rank=0)
            hvd_tf.broadcast_variables(optimizer.variables, root_rank=0)
        return loss

    losses = [float(step(pixels, labels, n == 0)) for n in range(12)]
    assert losses[-1] < losses[1], losses
    same_on_all_ranks(model)


def train_rates():
    """The learning rate grows to its value in two epochs; then a schedule lowers it."""
    model, rates = network(1), []

    class Note(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            rates.append(float(self.model.optimizer.learning_rate))

    history = fit(model, hvd.DistributedOptimizer(keras.optimizers.SGD(9.0)), part(examples()), 8,
                  callbacks=[callbacks.LearningRateWarmupCallback(0.3, warmup_epochs=2),
                             callbacks.LearningRateScheduleCallback(0.3, 0.1, start_epoch=2),
                             Note()])
    steps, n = N // 8, hvd.size()
    warm = [0.3 / n * (1 + (n - 1) * (s + 1) / steps / 2) for s in range(2 * steps)]
    near(rates, warm + [0.03] * steps)
    near(history["lr"], [warm[steps - 1], 0.3, 0.03])


def death():
    """In eager mode and in a function the others hear which rank has died."""
    reduce = tf.function(lambda t: hvd_tf.allreduce(t, name="known"))
    reduce(tf.ones([1]))
    if hvd.rank() == 1:
        os._exit(0)
    raises(tf.errors.UnknownError, ["HorovodInternalError", "rank 1"], reduce, tf.ones([1]))
    raises(HorovodInternalError, ["rank 1"], hvd_tf.allreduce, tf.ones([1]))


def main():
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    if sys.argv[2:] == ["death"]:
        death()
    else:
        operations(lambda function: function)
        operations(tf.function)
        for test in (others, orders, train_fit, train_broadcast, train_passes, train_tape,
                     train_rates):
            test()
            if hvd.rank() == 0:
                print("ok", test.__name__, flush=True)
    print("passed", flush=True)
    hvd.shutdown()


main()
