#pragma once
// Small things to store, and places to store them in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>

#include "perfmodel/base/error.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "store/store.h"

namespace commtune::tests {

/// A folder that goes away with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "commtune-store-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), name);
    }
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The Error that `action` throws; a failure of the test when it throws none.
inline Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return {ErrorCode::kBadInput, ""};
}

MATCHER_P2(IsError, code, part, "") {
  *result_listener << "what: " << arg.what();
  return arg.code() == code && std::string(arg.what()).find(part) != std::string::npos;
}

inline Timestamp noon() { return timestamp_from_iso8601("2026-11-21T12:00:00.000Z"); }

/// A clock that starts at noon and goes a second forward whenever it is read.
inline WallClock ticking_clock() {
  return [now = noon()]() mutable {
    const Timestamp read = now;
    now += std::chrono::seconds(1);
    return read;
  };
}

inline Store memory_store() {
  return Store::open(":memory:", {.version = "0.1.0", .clock = ticking_clock()});
}

/// Two layers, two tensors of 4 KiB and 1 MiB.
inline Profile small_profile() {
  Profile profile;
  profile.model = "small";
  profile.batch = 8;
  profile.origin = {"measured", "a processor", "", ""};
  profile.layers = {
      {"first", Seconds{1e-3}, Seconds{2e-3}, Seconds{0}, {{"first.weight", Bytes{4096}}}, 0},
      {"second", Seconds{2e-3}, Seconds{4e-3}, Seconds{0}, {{"second.weight", Bytes{1 << 20}}}, 0}};
  return profile;
}

/// Everything in one message.
inline Plan small_plan(const std::string& method = "bsp-a2a") {
  const Profile profile = small_profile();
  Plan plan;
  plan.method = method;
  plan.model = profile.model;
  plan.profile = digest(profile);
  plan.workers = 4;
  plan.messages = {{{{1, Bytes{0}, Bytes{1 << 20}}, {0, Bytes{0}, Bytes{4096}}}}};
  plan.priority = {0};
  return plan;
}

/// Machines without fits.
inline Cluster bare_cluster(const std::string& name = "lab") {
  Cluster cluster;
  cluster.name = name;
  cluster.transport = "mpi";
  cluster.fingerprint = "0123456789abcdef";
  cluster.facts = {{"kernel", "6.1"}, {"mtu", "1500"}};
  cluster.hosts = {{"alpha", 2}, {"beta", 2}};
  return cluster;
}

inline Fit small_fit() {
  Fit fit;
  fit.curve = Curve(Seconds{1e-4}, SecondsPerByte{8e-9});
  fit.quality = {12, 0.999, 0.01, 0.03};
  fit.smallest = Bytes{4};
  fit.largest = Bytes{1 << 20};
  return fit;
}

inline Cluster fitted_cluster(const std::string& name = "lab") {
  Cluster cluster = bare_cluster(name);
  cluster.links[LinkClass::kInterHost] = {small_fit(), small_fit(), {}};
  cluster.operations = {{AllReduce{}, Operation::kAllReduce, 4, small_fit(), small_fit()}};
  return cluster;
}

inline NewSample small_sample(std::uint64_t bytes = 1024) {
  NewSample sample;
  sample.kind = "operation";
  sample.operation = Operation::kPushPull;
  sample.road = ParameterServer{2, Placement::kDedicated, Assignment::kHashed};
  sample.workers = 4;
  sample.servers = 2;
  sample.source_rank = 0;
  sample.destination_rank = 3;
  sample.in_flight = 8;
  sample.detail = {{"duplex", true}};
  sample.bytes = Bytes{bytes};
  sample.median = Seconds{1.5e-3};
  sample.half_width = Seconds{2e-5};
  sample.repetitions = 3;
  sample.raw_seconds = {1.4e-3, 1.5e-3, 1.6e-3};
  return sample;
}

/// A running session on a new cluster of this name.
inline RowId running_session(Store& store, const std::string& name = "lab") {
  return store.start_session({.cluster = store.put_cluster(bare_cluster(name))});
}

/// A plan with its profile, without a fit.
inline RowId stored_plan(Store& store, const std::string& method = "bsp-a2a") {
  return store.add_plan({.plan = small_plan(method),
                         .profile = store.put_profile(small_profile()),
                         .predicted = Seconds{0.012}});
}

}  // namespace commtune::tests
