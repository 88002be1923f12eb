#pragma once
// Where the workers of a job are, and how far the slowest of them is behind.

#include "perfmodel/cluster.h"

namespace commtune {

/// Where the N workers of a job are: hosts filled in the cluster's order, slot by slot.
struct Topology {
  int workers = 1;
  int hosts = 1;     ///< that carry at least one worker
  int per_host = 1;  ///< largest number of workers on one of them
};
/// A cluster without hosts, or one with fewer slots than workers (a what-if), is taken to go on like its
/// first host, or with one worker a host. One host of which no link to another was measured is taken to have
/// as many slots as there are workers.
Topology topology_of(const Cluster& cluster, int workers);

/// E[max] of n independent standard normal values (Blom 1958), 0 for n = 1: how far the slowest worker is
/// behind the mean, in standard deviations.
double expected_maximum(int n);

}  // namespace commtune
