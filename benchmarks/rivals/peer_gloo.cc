/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_gloo.cc - Gloo over its TCP transport: on the loopback device, the one
 * way that it has inside of a host, or between hosts.
 *
 * Of the two algorithms that its allreduce offers, the faster one for a count
 * is found by trying both at the first call.  There is no reduce_scatter: the
 * only one, an object of the older interface, overwrites what it still sends
 * when vectors are large, and gives wrong sums.
 */
#include "benchmarks/rivals/peer.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

namespace
{

using Options = gloo::AllreduceOptions;
using Clock = std::chrono::steady_clock;

enum { TRIALS = 3 };         /* of an algorithm */
const size_t once = 1 << 18; /* elements from which one has to do */

std::shared_ptr<gloo::rendezvous::Context> context;
std::map<size_t, Options::Algorithm> best; /* by count */
std::string last_error;

/* Exceptions end at the border to C. */
template <typename F> int guarded(F f)
{
    try {
        f();
        return 0;
    } catch (const std::exception &e) {
        last_error = e.what();
        return -1;
    }
}

int from_environment(const char *name)
{
    const char *text = std::getenv(name);

    if (!text)
        throw std::runtime_error(std::string(name) + " is not set");
    return std::atoi(text);
}

int init(int *, char ***, int *rank, int *ranks)
{
    return guarded([&] {
        const char *folder = std::getenv(PEER_FOLDER);
        const char *interface = std::getenv(PEER_INTERFACE);
        gloo::transport::tcp::attr attr(interface ? "" : "127.0.0.1");
        if (interface)
            attr.iface = interface;
        auto device = gloo::transport::tcp::CreateDevice(attr);

        *rank = from_environment("COLL_RANK");
        *ranks = from_environment("COLL_SIZE");
        gloo::rendezvous::FileStore store(folder ? folder : ".");
        context = std::make_shared<gloo::rendezvous::Context>(*rank, *ranks);
        context->setTimeout(std::chrono::seconds(120));
        context->connectFullMesh(store, device);
    });
}

void fini() { context.reset(); }

const char *version()
{
    static const std::string text = std::to_string(GLOO_VERSION_MAJOR) + "." +
                                    std::to_string(GLOO_VERSION_MINOR) + "." +
                                    std::to_string(GLOO_VERSION_PATCH);

    return text.c_str();
}

const char *error() { return last_error.c_str(); }

void sum_by(Options::Algorithm algorithm, const float *in, float *out,
            size_t count)
{
    Options options(context);

    options.setAlgorithm(algorithm);
    options.setInput(const_cast<float *>(in), count);
    options.setOutput(out, count);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(
            &gloo::sum<float>));
    gloo::allreduce(options);
}

/* Seconds of the slowest rank, equal on all; small ones warm up first. */
float try_out(Options::Algorithm algorithm, const float *in, float *out,
              size_t count)
{
    Options options(context);
    Clock::time_point start = Clock::now();
    float mine, most;

    for (int i = count < once ? -1 : TRIALS - 1; i < TRIALS; i++) {
        if (i == 0)
            start = Clock::now();
        sum_by(algorithm, in, out, count);
    }
    mine = std::chrono::duration<float>(Clock::now() - start).count();
    options.setInput(&mine, 1);
    options.setOutput(&most, 1);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(
            &gloo::max<float>));
    gloo::allreduce(options);
    return most;
}

/* BCUBE is for powers of its base, 2. */
Options::Algorithm choose(const float *in, float *out, size_t count)
{
    if (context->size & (context->size - 1))
        return Options::Algorithm::RING;
    return try_out(Options::Algorithm::BCUBE, in, out, count) <
                   try_out(Options::Algorithm::RING, in, out, count)
               ? Options::Algorithm::BCUBE
               : Options::Algorithm::RING;
}

int allreduce(const float *in, float *out, size_t count, int)
{
    return guarded([&] {
        auto known = best.find(count);

        if (known == best.end())
            known = best.emplace(count, choose(in, out, count)).first;
        sum_by(known->second, in, out, count);
    });
}

int broadcast(const float *, float *out, size_t count, int root)
{
    return guarded([&] {
        gloo::BroadcastOptions options(context);

        options.setOutput(out, count);
        options.setRoot(root);
        gloo::broadcast(options);
    });
}

int allgather(const float *in, float *out, size_t count, int)
{
    return guarded([&] {
        gloo::AllgatherOptions options(context);

        options.setInput(const_cast<float *>(in), count);
        options.setOutput(out, count * static_cast<size_t>(context->size));
        gloo::allgather(options);
    });
}

int alltoall(const float *in, float *out, size_t count, int)
{
    return guarded([&] {
        size_t all = count * static_cast<size_t>(context->size);
        gloo::AlltoallOptions options(context);

        options.setInput(const_cast<float *>(in), all);
        options.setOutput(out, all);
        gloo::alltoall(options);
    });
}

int barrier(const float *, float *, size_t, int)
{
    return guarded([&] {
        gloo::BarrierOptions options(context);

        gloo::barrier(options);
    });
}

} // namespace

const struct peer_lib peer_lib = {
    init,
    fini,
    version,
    error,
    {allreduce, broadcast, allgather, nullptr, alltoall, barrier},
    nullptr,
    nullptr,
    0,
};
