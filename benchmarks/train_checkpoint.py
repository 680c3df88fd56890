# SPDX-License-Identifier: BSD-3-Clause
"""Read a checkpoint of coll_train into the same network of PyTorch.

The format is that of trainer/checkpoint.c.  coll_train's layers have their parameters in
the order of trainer/models.c, where the shortcut of a residual block comes first; a dense
layer's weights lie as [inputs][outputs], and a convolution's values, which the first dense
layer reads, as [height][width][channel].
"""
import sys
import zlib

import torch
import torch.nn as nn

VERSION, N_PARAMS, OPTIM, N_STATE, EPOCH = range(1, 6)  # words, of N_WORDS
N_WORDS = 16
SGD = 0  # enum optim_kind


def read(path):
    """Return a checkpoint's words, its parameters and its optimizer's state."""
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    if zlib.crc32(raw[:-4]) != int.from_bytes(raw[-4:], sys.byteorder):
        sys.exit(f"{path} is damaged, or no checkpoint; name another one")
    words = torch.frombuffer(raw, dtype=torch.int64, count=N_WORDS)
    words = words.tolist()
    if words[VERSION] != 3:
        sys.exit(f"{path} is of another version of coll_train; save a new one")
    n = words[N_PARAMS] + words[N_STATE]
    floats = torch.frombuffer(raw, dtype=torch.float32, offset=8 * N_WORDS,
                              count=n)
    return words, floats[:words[N_PARAMS]], floats[words[N_PARAMS]:]


def layers_of(module):
    """Yield the layers that have parameters, in coll_train's order."""
    if hasattr(module, "beside"):
        yield from layers_of(module.beside)
        yield from layers_of(module.body)
    elif isinstance(module, (nn.Conv2d, nn.BatchNorm2d, nn.Linear)):
        yield module
    else:
        for child in module.children():
            yield from layers_of(child)


def parts_of(model, flat):
    """Yield each parameter with its values among the flat ones."""
    at, channels = 0, 0
    for layer in layers_of(model):
        for parameter in layer.parameters(recurse=False):
            values = flat[at:at + parameter.numel()]
            at += parameter.numel()
            if isinstance(layer, nn.Linear) and parameter.dim() == 2:
                values = values.reshape(-1, channels, layer.out_features)
                values = values.permute(2, 1, 0)
            yield parameter, values.reshape(parameter.shape)
        channels = layer.weight.shape[0]


def begin(path, model, optimizer):
    """Put a checkpoint's parameters into the model, and its momentum into the optimizer,
    which is SGD.  Return the number of the epoch that comes next."""
    words, params, state = read(path)
    n_params = sum(p.numel() for p in model.parameters())
    if words[N_PARAMS] != n_params or words[OPTIM] != SGD:
        sys.exit(f"{path} is of another model or optimizer; name another one")
    with torch.no_grad():
        for parameter, values in parts_of(model, params):
            parameter.copy_(values)
        for parameter, values in parts_of(model, state):
            optimizer.state[parameter]["momentum_buffer"] = \
                values.to(parameter.device, copy=True)
    return words[EPOCH]
