#pragma once
// Where the workers of a job are, and how far the slowest of them is behind.

#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"

namespace commtune {

/// Neighbouring hosts that are alike.
struct HostRow {
  int hosts = 1;
  int ranks = 1;  ///< workers on each, or for spare hosts slots
  HostSlowdown slowdown{};
};

/// Where the N workers of a job are: hosts filled in the cluster's order, slot by slot.
struct Topology {
  int workers = 1;
  int hosts = 1;                 ///< that carry at least one worker
  int per_host = 1;              ///< largest number of workers on one of them
  int fewest = 1;                ///< smallest
  HostSlowdown slowest{};        ///< the largest factors among them: what everybody waits for
  std::vector<HostRow> rows{};   ///< those hosts, in order
  std::vector<HostRow> spare{};  ///< the cluster's other hosts, in order: where dedicated servers live
};
/// A cluster without hosts, or one with fewer slots than workers (a what-if), is taken to go on like its
/// first host, or with one worker a host. One host of which no link to another was measured is taken to have
/// as many slots as there are workers.
Topology topology_of(const Cluster& cluster, int workers);

/// Whether several of the workers share a host and several hosts take part: then sums inside hosts may go
/// before what is sent between them.
bool may_sum_locally(const Topology& place);

/// What a host's network card carries: the workers and servers on it.
struct Card {
  double workers = 0, servers = 0;
  HostSlowdown slowdown{};
};
/// Whether nothing of a job leaves its one host. Dedicated servers on spare hosts do.
bool inside_one_host(const Topology& place, const Road& road);
/// The same of so many workers of a cluster, without their topology.
bool inside_one_host(const Cluster& cluster, int workers, const Road& road);

/// The cards of a job whose S servers are in workers' processes, or, dedicated, on the spare hosts slot by
/// slot, then on further ones with a server each. Alike neighbours are listed once. Inside one host every
/// rank has a card of its own.
std::vector<Card> cards_of(const Topology& place, const ParameterServer& road);

/// Workers that follow each other, the last one being followed by the first.
struct WorkerRow {
  int first = 0, count = 0;
};
/// The longest row of workers whose hosts' cards are of the fastest class: where servers belong. Empty where
/// all of them are, or none.
WorkerRow spared_workers(const Topology& place);
/// The worker beside which the first of so many colocated servers should be: of those where all of them fit.
inline int first_server(const WorkerRow& spared, int servers) {
  return servers <= spared.count ? spared.first : 0;
}

/// A link between two ranks that follow each other on a ring.
struct RingLink {
  Seconds latency{};
  SecondsPerByte per_byte{};
};

/// How far the ranks of a ring may be out of step: `share` of what a message's bytes take, less `latency`.
struct RingSkew {
  double share = 0;  ///< 0: they are in step
  Seconds latency{};
};

/// With the time s of a step on the L slowest of the ring's links, and t_i on each, `share` is the sum of
/// s - t_i divided by L, of 2(N-1) s; `latency` that of all links divided by L. That is by how much the
/// longest cycle of who waits for whom is below all steps on the slowest link.
/// inside, between  links inside a host and between hosts without slowdown; per_byte 0: not known
RingSkew ring_skew(const Topology& place, const RingLink& inside, const RingLink& between);

/// How a cluster treats a job's compute.
struct JobSlowdown {
  double compute = 1;     ///< every layer's time over the profile's: that of the slowest worker, which all
                          ///< others wait for before each message and after each barrier
  double contention = 0;  ///< traffic takes longer by this ratio while compute runs
  Seconds lateness{};     ///< by which the last of the slowest hosts' workers is behind their mean, at least
};
/// Of a job of so many workers.
JobSlowdown slowdown_of(const Cluster& cluster, int workers);

/// E[max] of n independent standard normal values (Blom 1958), 0 for n = 1: how far the slowest worker is
/// behind the mean, in standard deviations.
double expected_maximum(int n);

/// The same from below, by up to 1.5 %: for bounds. Blom's formula with the smallest of the constants that
/// are exact for some n, that of n = 2.
double least_expected_maximum(int n);

}  // namespace commtune
