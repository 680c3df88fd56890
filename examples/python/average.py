# SPDX-License-Identifier: BSD-3-Clause
"""average.py - the average of an array over all ranks: collrun -n 4 python3 average.py"""

import libcoll
import numpy

with libcoll.Communicator.from_env() as comm:
    rng = numpy.random.default_rng(comm.rank)
    sample = rng.normal(size=100_000)
    comm.allreduce(sample, "avg")
    if comm.rank == 0:
        print(f"{comm.size} ranks: the deviation of the average is {sample.std():.3f},")
        print(f"1/sqrt(ranks) is {comm.size ** -0.5:.3f}")
