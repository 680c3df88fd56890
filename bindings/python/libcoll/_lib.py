# SPDX-License-Identifier: BSD-3-Clause
"""Find libcoll.so, load it, and declare the functions that this package calls."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from ctypes import c_char_p, c_double, c_int, c_size_t, c_void_p
from itertools import count
from pathlib import Path
from typing import Any

SONAME = "libcoll.so.0"
OLDEST = (0, 2)

# The parameters of each blocking call, in the order of coll.h, by the names of Call.
ORDERS = {
    "allreduce": "in_ out count type op comm stream",
    "broadcast": "in_ out count type root comm stream",
    "reduce": "in_ out count type op root comm stream",
    "allgather": "in_ out count type comm stream",
    "allgatherv": "in_ out out_counts out_displs type comm stream",
    "reduce_scatter": "in_ out count type op comm stream",
    "reduce_scatterv": "in_ out in_counts type op comm stream",
    "alltoall": "in_ out count type comm stream",
    "alltoallv": "in_ in_counts in_displs out out_counts out_displs type comm stream",
    "gather": "in_ out count type root comm stream",
    "gatherv": "in_ count out out_counts out_displs type root comm stream",
    "scatter": "in_ out count type root comm stream",
    "scatterv": "in_ in_counts in_displs out count type root comm stream",
    "barrier": "comm stream",
    "send": "in_ count type root comm stream",
    "recv": "out count type root comm stream",
    "scan": "in_ out count type op comm stream",
    "exscan": "in_ out count type op comm stream",
    "send_tagged": "in_ count type root tag comm stream",
    "recv_tagged": "out count type root tag comm stream status",
}
_PARAMETERS = {"count": c_size_t, "type": c_int, "op": c_int, "root": c_int, "tag": c_int}

# Every other function: its result, then its parameters, as the letters of _TYPES.
_FUNCTIONS = """
    version s | strerror s i | last_error s | set_log_handler v p p
    type_name s i | type_size n i | op_name s i | collective_name s i
    get_unique_id i p | unique_id_free i p
    comm_handle i p | comm_create_handles i p i p i u64 p
    comm_create i p i p i p | comm_create_env i p p | comm_create_oob i p p p
    comm_split i p i i p | comm_dup i p p | comm_destroy i p
    comm_rank i p | comm_size i p | comm_local_rank i p | comm_local_size i p
    comm_host i p | comm_n_hosts i p | comm_has_spare_core i p | comm_transports s p
    comm_failed i p p p | comm_agree i p p | comm_shrink i p p i i p
    comm_grow i p i p p | comm_waiting i p p
    comm_abort i p s | comm_async_error i p | comm_mem_stats i p p
    op_create_premul i p i p | op_create_user i p p i p | op_destroy i i
    group_start i | group_end i
    request_create i p p p | start i p | test i p | wait i p d | request_destroy i p
    request_status i p | completion_fd i p | progress i
    plan_query i p p p | plan_candidate i p p n p
    mem_alloc i p n | mem_free i p | mem_register i p p n | mem_deregister i p p
"""
_TYPES = {
    **{"s": c_char_p, "i": c_int, "n": c_size_t, "p": c_void_p, "d": c_double, "v": None},
    **{"a32": ctypes.c_char * 32, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16},
    **{"u32": ctypes.c_uint32, "u64": ctypes.c_uint64},
}


def struct(fields: str) -> Any:
    """Make a structure of fields such as "count:n type:i"."""
    pairs = [(name, _TYPES[letter]) for name, letter in (f.split(":") for f in fields.split())]
    return type("struct", (ctypes.Structure,), {"_fields_": pairs})


def sized(kind: Any, **fields: Any) -> Any:
    """Make a structure of coll.h, which begins with its size."""
    for name in fields.keys() - {name for name, _ in kind._fields_}:
        raise TypeError(f"there is no {name}: use {', '.join(n for n, _ in kind._fields_[1:])}")
    return kind(size=ctypes.sizeof(kind), **fields)


def _places() -> Iterator[str]:
    """Where libcoll.so may be: in the wheel, beside the package, the loader's path, beside collrun.

    The package is in PREFIX/lib/python3.X/site-packages/libcoll.
    """
    package = Path(__file__).resolve().parent
    for folder in (package.parent / "libcoll_bundle/lib", package, package.parents[2]):
        if (folder / SONAME).exists():
            yield str(folder / SONAME)
    yield SONAME
    collrun = shutil.which("collrun")
    if collrun:
        yield str(Path(collrun).resolve().parents[1] / "lib" / SONAME)


def _open() -> ctypes.CDLL:
    wanted = os.environ.get("COLL_LIBRARY")
    reasons = []
    for place in [wanted] if wanted else _places():
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError(
        f"{SONAME} cannot be loaded: set COLL_LIBRARY to its path, or add its folder to "
        f"LD_LIBRARY_PATH ({'; '.join(reasons)})"
    )


def _load() -> ctypes.CDLL:
    library = _open()
    try:
        for line in _FUNCTIONS.replace("|", "\n").strip().splitlines():
            name, *letters = line.split()
            function = getattr(library, "coll_" + name)
            function.restype, *function.argtypes = (_TYPES[letter] for letter in letters)
        for name, order in ORDERS.items():
            function = getattr(library, "coll_" + name)
            function.argtypes = [_PARAMETERS.get(word, c_void_p) for word in order.split()]
    except AttributeError as error:
        raise ImportError(f"{library._name} is older than this package: {error}") from None
    version = library.coll_version().decode()
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise ImportError(f"{library._name} is libcoll {version}; {OLDEST} or later is needed")
    return library


lib = _load()


def names(function: str) -> list[str]:
    """Ask the library for all names of an enum, by coll_<function>()."""
    ask, codes = getattr(lib, "coll_" + function), count()
    return list(iter(lambda: ask(next(codes)).decode(), "?"))


COLLECTIVES = {name: code for code, name in enumerate(names("collective_name"))}
