#pragma once
// From samples to a cluster that predictions can be made for: a pure function, so that stored samples can be
// refitted at any time.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/fit/fit.h"
#include "probes/sample.h"

namespace commtune::probes {

/// Name of the fact that says which kWireRevision measured.
inline constexpr std::string_view kWireRevisionFact = "wire_revision";

/// What is known about a cluster without timing anything.
struct ClusterFacts {
  std::string name;
  std::string transport;
  std::vector<std::string> rank_hosts;       ///< host name of each rank
  std::map<std::string, std::string> facts;  ///< named as in cluster_facts.h
  TransferTraits traits{};                   ///< with which its samples are measured
  DeviceKind device = DeviceKind::kHost;     ///< in whose memory messages lie
};

/// 16 hexadecimal digits over everything but the cluster's name and the releases that run there. Fits expire
/// when it changes: other machines, other settings, another kWireRevision. A release says nothing by itself;
/// fact_differences() tells of it. Facts without a revision have the fingerprint of the first one.
std::string fingerprint(const ClusterFacts& facts);
/// Whether a fact of this name and value is part of it.
bool enters_fingerprint(const std::string& name, const std::string& value);

/// The samples without those that a later one of the same quantity and size supersedes.
std::vector<ProbeSample> latest(std::span<const ProbeSample> samples);

/// The hosts of the ranks, each with what the links that were measured say about its card.
std::vector<Host> paced_hosts(std::span<const ProbeSample> samples,
                              const std::vector<std::string>& rank_hosts);

/// Fits everything that has at least two distinct sizes, operations as fit_operations() does; the rest is
/// left out. A later sample of the same quantity and size supersedes an earlier one. Links of one class are
/// fitted together by the median over the pairs; hosts whose links depart from it (analyse_links) get a pace
/// of their own. Then the roads that plans were run on are refitted() by the latest factors. Deterministic.
Cluster fit_cluster(std::span<const ProbeSample> samples, const ClusterFacts& facts,
                    const FitOptions& options = {});

}  // namespace commtune::probes
