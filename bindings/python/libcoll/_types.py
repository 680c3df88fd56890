# SPDX-License-Identifier: BSD-3-Clause
"""Element types: those of numpy, array interfaces and DLPack, and those of the library.

The library is asked what it has, so that new types and operations need no change here.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

from ._lib import lib, names

NAMES = names("type_name")
SIZES = [lib.coll_type_size(code) for code in range(len(NAMES))]
CODES = {name: code for code, name in enumerate(NAMES)}
OPS = {name: code for code, name in enumerate(names("op_name"))}

# the kinds of memoryview.format; of array interfaces they are the letters themselves
_KINDS = {"?": "b", "c": "u", **dict.fromkeys("bhilqn", "i"), **dict.fromkeys("BHILQN", "u")}
_KINDS.update(dict.fromkeys("efdg", "f"))
# numpy's kinds by the type codes of DLPack; the others have names of their own
_DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_DLPACK_NAMES = {4: "bf16", 10: "f8e4m3", 12: "f8e5m2"}
# what ml_dtypes and torch call types that numpy lacks
EXTENDED = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
_OF_EXTENDED = {theirs: CODES.get(ours) for ours, theirs in EXTENDED.items()}
# records of a value and an index, whatever their names are, by the value's letter
_PAIR = r"T\{([fdi]):[^:]*:i:[^:]*:(?:4x)?\}"
_PAIRS = {"f": "f32_i32", "d": "f64_i32", "i": "i32_i32"}


def _find(kind: str, size: int) -> int | None:
    """Return the type of the library that has this kind (of biufc) and size."""
    return CODES.get("bool" if (kind, size) == ("b", 1) else f"{kind}{8 * size}")


def of_format(text: str, size: int) -> int | None:
    """Return the type of a memoryview's format and item size."""
    if text[0] == "T":
        pair = re.fullmatch(_PAIR, text)
        code = CODES.get(_PAIRS[pair[1]]) if pair else None
        return code if code is not None and SIZES[code] == size else None
    if text[0] in ">!" and size > 1:
        return None
    text = text.lstrip("@=<>!")
    return _find("c", size) if text[0] == "Z" else _find(_KINDS.get(text, "?"), size)


def of_typestr(typestr: str, dtype: Any = None) -> int | None:
    """Return the type of an array interface; dtype tells those that are "V2" there."""
    kind, size = typestr[1], int(typestr[2:])
    if typestr[0] == ">" and size > 1:
        return None
    if kind == "V":
        return _OF_EXTENDED.get(getattr(dtype, "name", ""))
    return _find(kind, size)


def of_dlpack(code: int, bits: int, lanes: int) -> int | None:
    """Return the type of a DLPack tensor."""
    if lanes != 1:
        return None
    if code in _DLPACK_KINDS:
        return _find(_DLPACK_KINDS[code], bits // 8)
    return CODES.get(_DLPACK_NAMES.get(code, ""))


def numpy() -> Any:
    """Import numpy, or say what needs it."""
    try:
        import numpy
    except ImportError:
        raise ImportError("libcoll makes arrays with numpy: install numpy, or pass out=") from None
    return numpy


def dtype_of(code: int) -> Any:
    """Return the numpy dtype of a type.

    For types that numpy lacks it is that of ml_dtypes, or without it the unsigned
    integer of the same size.  A pair is a record of "value" and "index".
    """
    name, size = NAMES[code], SIZES[code]
    if "_" in name:  # a pair, such as f32_i32
        value, index = (f"{part[0]}{int(part[1:]) // 8}" for part in name.split("_"))
        return numpy().dtype([("value", value), ("index", index)], align=True)
    if name in EXTENDED:
        try:
            import ml_dtypes

            return numpy().dtype(getattr(ml_dtypes, EXTENDED[name]))
        except (ImportError, AttributeError):
            return numpy().dtype(f"u{size}")
    return numpy().dtype(f"{name[0]}{size}")


def view(pointer: int, count: int, code: int) -> Any:
    """Make an array of numpy over memory that somebody else keeps."""
    memory = (ctypes.c_char * (count * SIZES[code])).from_address(pointer)
    return numpy().frombuffer(memory, dtype_of(code))
