# SPDX-License-Identifier: BSD-3-Clause
"""horovod_keras.py - a small CNN that tells digits apart, trained by Horovod's Keras interface.

    horovodrun -np 2 python horovod_keras.py
    collrun -n 2 python -m libcoll.horovod horovod_keras.py

Without --data the images are random, each with a bright bar whose place is its label; --data
FILE is an mnist.npz, as keras.datasets.mnist loads it.
"""

import argparse

import horovod.tensorflow.keras as hvd
import keras
import numpy


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="mnist.npz")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each process")
    parser.add_argument("--lr", type=float, default=0.02, help="of one process")
    parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as f16")
    parser.add_argument("--save", help="file for the best model")
    return parser.parse_args()


def images(path):
    """This process's examples for training, and those for validation."""
    if path:
        with numpy.load(path) as file:
            pixels, labels = file["x_train"][..., None] / numpy.float32(255), file["y_train"]
    else:
        random = numpy.random.default_rng(1)
        labels = random.integers(0, 10, 1280)
        pixels = random.random((len(labels), 28, 28, 1), "f4")
        pixels[numpy.arange(len(labels)), 2 * labels + 4] += 1
    # the same number for each: all processes have to take as many steps
    n = len(labels) // hvd.size() * hvd.size()
    pixels, labels = (array[:n][hvd.rank() :: hvd.size()] for array in (pixels, labels))
    n_training = len(labels) * 4 // 5
    training = pixels[:n_training], labels[:n_training]
    return training, (pixels[n_training:], labels[n_training:])


def network():
    return keras.Sequential([
        keras.Input((28, 28, 1)), keras.layers.Conv2D(8, 5, strides=2, activation="relu"),
        keras.layers.Conv2D(16, 5, strides=2, activation="relu"), keras.layers.Flatten(),
        keras.layers.Dense(10),
    ])  # fmt: skip


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch}: loss {logs['loss']:.4f}, accuracy {100 * logs['val_accuracy']:.1f} %")


def main():
    args = arguments()
    hvd.init()
    keras.utils.set_random_seed(42)
    training, validation = images(args.data)
    # a batch of all processes is larger, and so may the steps be
    lr = args.lr * hvd.size()
    compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        keras.optimizers.SGD(lr, momentum=0.9), compression=compression
    )
    model = network()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),  # before those that use metrics
        hvd.callbacks.LearningRateWarmupCallback(lr, warmup_epochs=1),
    ]
    if hvd.rank() == 0:
        callbacks.append(Report())
        if args.save:
            callbacks.append(keras.callbacks.ModelCheckpoint(args.save, save_best_only=True))
    model.fit(*training, args.batch_size, args.epochs, verbose=0, callbacks=callbacks,
              validation_data=validation)  # fmt: skip


if __name__ == "__main__":
    main()
