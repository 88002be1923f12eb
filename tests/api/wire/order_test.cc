#include "api/wire/order.h"

#include <gtest/gtest.h>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

RunOrder small_run() {
  RunOrder order;
  order.profile.model = "one";
  order.profile.origin.how = "derived";
  order.profile.layers = {{"a", Seconds{1e-3}, Seconds{2e-3}, Seconds{0}, {{"a.weight", Bytes{40}}}, 0}};
  Plan plan;
  plan.method = "wfbp";
  plan.model = order.profile.model;
  plan.profile = digest(order.profile);
  plan.workers = 2;
  plan.messages = {{{{0, Bytes{0}, Bytes{40}}}}};
  plan.priority = {0};
  order.plans = {{plan, {}}};
  return order;
}

std::string subnet_after_a_trip(const Order& order) {
  return std::visit([](const auto& one) { return one.subnet; }, order_from_json(to_json(order)));
}

TEST(Order, TellsRanksWhichSubnetToUse) {
  RunOrder run = small_run();
  run.subnet = "10.1.0.0/16";
  EXPECT_EQ(subnet_after_a_trip(run), "10.1.0.0/16");
  ProbeOrder probe;
  probe.options.cluster_name = "lab";
  probe.subnet = "10.2.0.0/16";
  EXPECT_EQ(subnet_after_a_trip(probe), "10.2.0.0/16");
}

TEST(Order, TellsRanksWhatTheirNetworkAloneKnows) {
  RunOrder run = small_run();
  run.network_options = "device=mlx5_0";
  EXPECT_EQ(std::get<RunOrder>(order_from_json(to_json(Order(run)))).network_options, "device=mlx5_0");
  EXPECT_FALSE(to_json(Order(small_run())).contains("network_options"));
}

TEST(Order, WithoutASubnetIsWhatItWasBeforeThereWereAny) {
  const nlohmann::json order = to_json(Order(small_run()));
  EXPECT_FALSE(order.contains("subnet"));
  EXPECT_EQ(subnet_after_a_trip(order_from_json(order)), "");
}

probes::ProbeOptions unusual_probe() {
  probes::ProbeOptions options;
  options.budget = Seconds{7.5};
  options.traffic = Bytes{1000};
  options.first = Bytes{8};
  options.last = Bytes{4096};
  options.factor = 2;
  options.warmup = 2;
  options.iterations = 4;
  options.max_iterations = 9;
  options.width = 0.25;
  options.algorithms = {Collective::kRing, Collective::kLibrary};
  options.servers = {{2, Placement::kDedicated, Assignment::kEven, LocalSum::kFirst, 0}};
  options.groups = {2, 3};
  options.most_pairs_hosts = 5;
  options.seed = 11;
  options.exclusive = false;
  options.timeout = Seconds{3};
  options.settings = {{"btl", "tcp"}};
  options.cluster_name = "lab";
  options.models = {"tiny"};
  return options;
}

// As they are stored beside the samples that were measured with them.
TEST(Order, StoresAllOptionsOfAProbe) {
  EXPECT_EQ(settings_of(unusual_probe()), nlohmann::json::parse(R"({
      "budget_seconds": 7.5, "traffic_bytes": 1000, "first_bytes": 8, "last_bytes": 4096, "factor": 2.0,
      "warmup": 2, "iterations": 4, "max_iterations": 9, "width": 0.25,
      "algorithms": [{"kind": "all-to-all", "algorithm": "ring"},
                     {"kind": "all-to-all", "algorithm": "library"}],
      "servers": [{"kind": "parameter-server", "servers": 2, "placement": "dedicated", "assignment": "even",
                   "local_sum": "first"}],
      "groups": [2, 3], "most_pairs_hosts": 5, "seed": 11, "exclusive": 0, "timeout_seconds": 3.0,
      "settings": {"btl": "tcp"}, "cluster_name": "lab", "for": ["tiny"]})"));
  probes::ProbeOptions usual;
  EXPECT_FALSE(settings_of(usual).contains("budget_seconds"));
  EXPECT_FALSE(settings_of(usual).contains("for"));
}

TEST(Order, StoresAllOptionsOfARun) {
  EXPECT_EQ(settings_of(RunOptions{5, 1, 2, Result::kSum, Seconds{9}, Bytes{4096}, "traces", 4}),
            nlohmann::json::parse(R"({
      "iterations": 5, "warmup": 1, "check_iterations": 2, "result": "sum", "timeout_seconds": 9.0,
      "chunk_bytes": 4096, "trace_directory": "traces", "trace_steps": 4})"));
}

TEST(Order, ReachesTheRanksAsItIs) {
  ProbeOrder probe;
  probe.network = "mpi";
  probe.options = unusual_probe();
  probe.earlier_fingerprint = "0123456789abcdef";
  probe.earlier.resize(1);
  probe.earlier.front().quantity.source = 0;
  probe.earlier.front().quantity.destination = 1;
  probe.compare = true;
  probe.profiles = {small_run().profile};
  RunOrder run = small_run();
  run.plans.front().options = {5, 1, 2, Result::kSum, Seconds{9}, Bytes{4096}, "traces", 4};
  run.plans.push_back(run.plans.front());
  run.rounds = 3;
  run.pace = 1e9;
  SessionOrder session;
  session.network = "mpi";
  session.workers = 3;
  session.profile = run.profile;
  session.result = Result::kSum;
  session.timeout = Seconds{9};
  session.chunk = Bytes{4096};
  session.pace = 1e9;
  session.subnet = "10.1.0.0/16";
  for (const Order& order : {Order(probe), Order(run), Order(session)}) {
    const nlohmann::json told = to_json(order);
    EXPECT_EQ(to_json(order_from_json(told)), told);
  }
}

TEST(NextPlan, IsReadAsItWasWritten) {
  PlannedRun next = small_run().plans.front();
  next.options = {5, 1, 2, Result::kSum, Seconds{9}, Bytes{4096}, "traces", 4};
  const nlohmann::json line = next_plan_to_json(next);
  const auto read = next_plan_from_json(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->plan, next.plan);
  EXPECT_EQ(next_plan_to_json(read), line);
  EXPECT_FALSE(next_plan_from_json(next_plan_to_json(std::nullopt)));
  EXPECT_THROW(next_plan_from_json(to_json(Order(small_run()))), Error);
  EXPECT_THROW(next_plan_from_json({{"order", "end"}}), Error);  // no format
}

TEST(Order, OfAnUnknownKindIsRefused) {
  nlohmann::json order = to_json(Order(small_run()));
  order["order"] = "dance";
  EXPECT_THROW(order_from_json(order), Error);
}

}  // namespace
}  // namespace commtune::api
