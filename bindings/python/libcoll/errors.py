# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions, one for each status of coll.h; each says what coll_last_error() says.

After InvalidError, OutOfMemoryError, UnsupportedError and TruncatedError the communicator can
be used further; after any other it has failed.
"""

from __future__ import annotations

from ._lib import lib


class Error(Exception):
    """An error of libcoll.  `status` is the value of enum coll_status."""

    status = 0


class InvalidError(Error, ValueError):
    """An argument is wrong."""


class OutOfMemoryError(Error, MemoryError):
    """There is not enough memory."""


class SystemCallError(Error, OSError):
    """A system call failed."""


class PeerError(Error, ConnectionError):
    """A rank died, or cannot be reached any more."""


class DeadlineError(Error, TimeoutError):
    """The deadline passed.  The sentence names the ranks that are missing."""


class MismatchError(Error):
    """Ranks called different operations.  The sentence has both calls."""


class UnsupportedError(Error, NotImplementedError):
    """This build or this machine cannot do it."""


class AbortedError(Error):
    """A rank called Communicator.abort()."""


class BootstrapError(Error):
    """The ranks could not find each other."""


class TransportError(Error):
    """A transport failed."""


class InternalError(Error):
    """A bug in libcoll."""


class TruncatedError(Error):
    """The message is longer than the array.  The message is gone."""


# in the order of their values, from -1 down
_CLASSES = Error.__subclasses__()
for _n, _class in enumerate(_CLASSES):
    _class.status = -1 - _n


def error_of(status: int) -> Error:
    """Make the exception for a status that a call of this thread has just returned."""
    text = (lib.coll_last_error() or lib.coll_strerror(status)).decode(errors="replace")
    error = _CLASSES[-1 - status](text) if -1 - status < len(_CLASSES) else Error(text)
    error.status = status
    return error


def check(status: int) -> None:
    """Raise the exception for a status that is an error."""
    if status < 0:
        raise error_of(status)
