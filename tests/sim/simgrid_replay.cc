// SPDX-License-Identifier: BSD-3-Clause
// simgrid_replay.cc - a graph of activities that wait for each other: a message
// is one Comm for its send and its receive, work is an Exec on a host with one
// core for each rank.
//
// What SimGrid has not: the pause between two messages of one rank, and their
// order: those that are ready at the same time share its link, or with
// in_order each waits for the end of the one before.  A queue lies in between.
//
// SimGrid rounds times to about a nanosecond, so its second is our microsecond.
#include "tests/sim/simgrid_replay.h"

#include <simgrid/s4u.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace sg = simgrid::s4u;

namespace {

constexpr double scale = 1e6; // simulated seconds in a second of ours

class Machine {
public:
    explicit Machine(const replay &r) : replay_(r)
    {
        zone_ = sg::create_full_zone("machine");
        for (int i = 0; i < r.all->nranks; i++)
            hosts_.push_back(zone_->create_host("r" + std::to_string(i), 1.0));
        for (int i = 0; i < r.n_links; i++)
            links_.push_back(make_link(i));
        for (int from = 0; from < r.all->nranks; from++)
            for (int to = 0; to < r.all->nranks; to++)
                if (from != to)
                    add_route(from, to);
        zone_->seal();
    }

    sg::Host *host(int rank) const { return hosts_[rank]; }

    // Bytes a simulated second of one message alone.
    double rate(int from, int to) const
    {
        double beta = 0;

        for (int i = begin(from, to); i < begin(from, to + 1); i++)
            beta = std::max(beta, replay_.links[replay_.hops[i]].beta);
        return 1 / beta / scale;
    }

private:
    int begin(int from, int to) const
    {
        return replay_.first[from * replay_.all->nranks + to];
    }

    // A rank's own way out has the overhead of messages in its latency.
    bool is_way_out(int link) const
    {
        int p = replay_.all->nranks;

        for (int i = 0; i < p * p; i++)
            if (replay_.first[i] < replay_.first[i + 1] &&
                replay_.hops[replay_.first[i]] == link)
                return true;
        return false;
    }

    sg::Link *make_link(int i)
    {
        const replay_link &of = replay_.links[i];
        double latency = of.latency + (is_way_out(i) ? replay_.overhead : 0);

        return zone_->create_link("l" + std::to_string(i), 1 / of.share / scale)
            ->set_latency(latency * scale)
            ->seal();
    }

    void add_route(int from, int to)
    {
        std::vector<sg::LinkInRoute> route;

        for (int i = begin(from, to); i < begin(from, to + 1); i++)
            route.emplace_back(links_[replay_.hops[i]]);
        zone_->add_route(hosts_[from]->get_netpoint(),
                         hosts_[to]->get_netpoint(), nullptr, nullptr, route,
                         false);
    }

    const replay &replay_;
    sg::NetZone *zone_;
    std::vector<sg::Host *> hosts_;
    std::vector<sg::Link *> links_;
};

// One Comm or one Exec, and where it runs: it must not know that before all
// that it waits for is named, or it would begin at once.
struct Node {
    sg::CommPtr comm;
    sg::ExecPtr exec;
    int from, to;

    sg::ActivityPtr activity() const
    {
        return comm ? sg::ActivityPtr(comm) : sg::ActivityPtr(exec);
    }

    void precede(const Node &then) const
    {
        if (then.activity()->get_dependencies().count(activity()))
            return;
        if (comm)
            comm->add_successor(then.activity());
        else
            exec->add_successor(then.activity());
    }

    void start(const Machine &machine) const
    {
        if (comm)
            comm->set_source(machine.host(from))
                ->set_destination(machine.host(to));
        else
            exec->set_host(machine.host(from));
        if (activity()->get_state() == sg::Activity::State::INITED)
            activity()->vetoable_start();
    }
};

// The activities of all steps: a step begins with one and ends with one, which
// differ for RECV_REDUCE.
class Graph {
public:
    Graph(const replay &r, const Machine &machine)
        : replay_(r), machine_(machine), begins_(r.all->n_steps),
          ends_(r.all->n_steps)
    {
        for (int rank = 0; rank < r.all->nranks; rank++)
            for (int i = r.all->first[rank]; i < r.all->first[rank + 1]; i++)
                add_local(rank, i);
        for (int i = 0; i < r.all->n_lanes; i++)
            add_lane(r.all->lanes[i]);
        for (int i = 0; i < r.all->n_steps; i++)
            add_edges(i);
        if (r.in_order)
            for (int rank = 0; rank < r.all->nranks; rank++)
                put_in_order(rank);
    }

    void start() const
    {
        for (const auto &node : nodes_)
            node.start(machine_);
    }

    bool is_done() const
    {
        for (const auto &node : nodes_)
            if (node.activity()->get_state() !=
                sg::Activity::State::FINISHED)
                return false;
        return true;
    }

private:
    int add_work(int rank, double bytes)
    {
        sg::ExecPtr exec = sg::Exec::init();

        exec->set_flops_amount(bytes * replay_.gamma * scale);
        nodes_.push_back({nullptr, exec, rank, rank});
        return (int)nodes_.size() - 1;
    }

    int add_comm(int from, int to, size_t bytes)
    {
        sg::CommPtr comm = sg::Comm::sendto_init();

        comm->set_payload_size(bytes ? bytes : 1); // 0 would never end
        comm->set_rate(machine_.rate(from, to));
        nodes_.push_back({comm, nullptr, from, to});
        return (int)nodes_.size() - 1;
    }

    void add_local(int rank, int i)
    {
        const coll__sim_step &step = replay_.all->steps[i];

        if (step.kind == SIM_WORK)
            begins_[i] = ends_[i] = add_work(rank, (double)step.len);
        else if (step.kind == SIM_FREE)
            begins_[i] = ends_[i] = add_work(rank, 0);
    }

    void add_lane(const coll__sim_lane &lane)
    {
        const coll__sim_step *steps = replay_.all->steps;
        int s = lane.send, r = lane.recv;

        for (; s >= 0 && r >= 0; s = steps[s].next, r = steps[r].next) {
            int comm = add_comm(lane.from, lane.to, steps[s].len);

            begins_[s] = begins_[r] = ends_[s] = ends_[r] = comm;
            if (steps[r].kind == SIM_RECV_REDUCE ||
                steps[r].len <= COLL__EAGER) {
                ends_[r] = add_work(lane.to, steps[r].kind == SIM_RECV
                                                 ? 0
                                                 : (double)steps[r].len);
                nodes_[comm].precede(nodes_[ends_[r]]);
            }
            if (steps[r].len <= COLL__EAGER) {
                begins_[r] = ends_[r];
                begins_[s] = ends_[s] = add_work(lane.from, 0);
                nodes_[ends_[s]].precede(nodes_[comm]);
            }
        }
    }

    void add_edges(int i)
    {
        const coll__sim_step *steps = replay_.all->steps;

        for (int e = steps[i].first_after; e < steps[i + 1].first_after; e++)
            nodes_[ends_[i]].precede(nodes_[begins_[replay_.all->after[e]]]);
    }

    void put_in_order(int rank)
    {
        const coll__sim_steps *all = replay_.all;
        int last = -1;

        for (int i = all->first[rank]; i < all->first[rank + 1]; i++) {
            if (all->steps[i].kind != SIM_SEND)
                continue;
            if (last >= 0)
                nodes_[ends_[last]].precede(nodes_[begins_[i]]);
            last = i;
        }
    }

    const replay &replay_;
    const Machine &machine_;
    std::vector<int> begins_, ends_;
    std::vector<Node> nodes_;
};

double simulate(const replay &r)
{
    std::vector<std::string> words = {
        "replay", "--log=root.thresh:error", "--cfg=network/model:CM02",
        "--cfg=network/latency-factor:1", "--cfg=network/bandwidth-factor:1",
        "--cfg=network/weight-S:0", "--cfg=network/TCP-gamma:0",
        "--cfg=network/crosstraffic:0"};
    std::vector<char *> argv;
    int argc = (int)words.size();

    for (auto &word : words)
        argv.push_back(&word[0]);
    argv.push_back(nullptr);

    sg::Engine engine(&argc, argv.data());
    Machine machine(r);
    Graph graph(r, machine);

    graph.start();
    engine.run();
    return graph.is_done() ? sg::Engine::get_clock() / scale : -1;
}

} // namespace

double replay_seconds(const struct replay *replay)
{
    double seconds = -1;
    int ends[2], status = 0;
    pid_t child;

    if (pipe(ends))
        return -1;
    child = fork();
    if (child == 0) {
        seconds = simulate(*replay);
        _exit(write(ends[1], &seconds, sizeof(seconds)) != sizeof(seconds));
    }
    close(ends[1]);
    if (read(ends[0], &seconds, sizeof(seconds)) != sizeof(seconds))
        seconds = -1;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        return -1;
    return seconds;
}
