#pragma once
// What the ranks are told to do: one JSON object, handed to rank 0, which tells the others. Format
// "commtune/order/1".

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "executor/run.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "probes/probe.h"

namespace commtune::api {

/// Over what the ranks speak to each other.
enum class Network {
  kMpi,  ///< Open MPI carries everything
  kTcp,  ///< sockets of our own; Open MPI only makes the introductions
};

std::string to_string(Network network);  ///< "mpi", "tcp"

struct ProbeOrder {
  Network network = Network::kMpi;
  probes::ProbeOptions options;
  /// Samples of an earlier probe to go on from, if the cluster still has this fingerprint.
  std::string earlier_fingerprint;
  std::vector<probes::ProbeSample> earlier;
};

struct RunOrder {
  Network network = Network::kMpi;
  Plan plan;
  Profile profile;
  RunOptions options;
};

using Order = std::variant<ProbeOrder, RunOrder>;

nlohmann::json to_json(const Order& order);

/// Throws Error{kBadInput} with the place and the rule.
Order order_from_json(const nlohmann::json& json);

/// The settings of a run or a probe as they are stored beside its results (without plan, profile, samples).
nlohmann::json settings_of(const RunOptions& options);
nlohmann::json settings_of(const probes::ProbeOptions& options);

}  // namespace commtune::api
