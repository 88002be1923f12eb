#pragma once
// Clusters and jobs made up for the tuner's tests.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "perfmodel/cluster.h"
#include "perfmodel/cost/road_factor.h"
#include "perfmodel/profile.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

inline const Road kRing = AllReduce{Collective::kRing};
inline const Road kServers = ParameterServer{4};

/// Messages alone and streams of a road are off by the same.
inline RoadFactor off_by(const Road& road, double startup, double rate) {
  return {road, {startup, rate}, {startup, rate}};
}

/// The ranking's entry of that method, which there is.
inline const Entry& entry_of(const Answer& answer, std::string_view method) {
  return *std::ranges::find(answer.ranking, method, &Entry::method);
}

/// Hosts of one rank each, joined by links of this latency (of which a tenth is overhead) and time per byte.
inline Cluster made_cluster(int hosts, double alpha_seconds, double beta_seconds_per_byte) {
  Cluster cluster;
  cluster.name = "made";
  for (int i = 0; i < hosts; ++i) cluster.hosts.push_back({"h" + std::to_string(i), 1});
  LinkFit link;
  link.alone.curve = Curve{Seconds{alpha_seconds}, SecondsPerByte{beta_seconds_per_byte}};
  link.streamed.curve = Curve{Seconds{alpha_seconds / 10}, SecondsPerByte{beta_seconds_per_byte}};
  link.alone.largest = link.streamed.largest = Bytes{std::uint64_t{1} << 30};
  cluster.links[LinkClass::kInterHost] = link;
  cluster.reduce_seconds_per_byte.value = beta_seconds_per_byte / 20;
  return cluster;
}

/// The same with so many ranks on each host, joined there by links ten times as good.
inline Cluster made_cluster_of_hosts(int hosts, int slots, double alpha_seconds,
                                     double beta_seconds_per_byte) {
  Cluster cluster = made_cluster(hosts, alpha_seconds, beta_seconds_per_byte);
  for (Host& host : cluster.hosts) host.slots = slots;
  cluster.links[LinkClass::kIntraHost] =
      made_cluster(1, alpha_seconds / 10, beta_seconds_per_byte / 10).links[LinkClass::kInterHost];
  return cluster;
}

/// What an all-reduce of a message takes on four ranks: 1 ms, and so much a byte.
inline OperationFit all_reduce(const Road& road, double beta, double deviation) {
  OperationFit fit{road, Operation::kAllReduce, 4, {}, {}};
  fit.alone.curve = fit.streamed.curve = Curve{Seconds{1e-3}, SecondsPerByte{beta}};
  fit.alone.largest = fit.streamed.largest = Bytes{std::uint64_t{1} << 30};
  fit.alone.deviation = fit.streamed.deviation = {deviation, deviation};
  return fit;
}

/// A model of up to `most_layers` layers with one tensor or two each, sizes and times over several decades.
inline Profile made_profile(std::mt19937_64& random, std::size_t most_layers) {
  const auto log_uniform = [&](double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random));
  };
  Profile profile;
  profile.model = "made";
  profile.batch = 32;
  const std::size_t layers = 1 + random() % most_layers;
  for (std::size_t i = 0; i < layers; ++i) {
    Layer layer;
    layer.name = "l" + std::to_string(i);
    layer.forward = Seconds{log_uniform(2e-4, 5e-3)};
    layer.backward = layer.forward * 2;
    layer.update = Seconds{random() % 4 == 0 ? 1e-4 : 0};
    const std::size_t tensors = random() % 3;
    for (std::size_t t = 0; t < tensors; ++t) {
      layer.tensors.push_back({layer.name + "." + std::to_string(t),
                               Bytes{4 * static_cast<std::uint64_t>(log_uniform(100, 3e6))}});
    }
    profile.layers.push_back(layer);
  }
  return profile;
}

}  // namespace commtune::tuner
