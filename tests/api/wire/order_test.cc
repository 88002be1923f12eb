#include "api/wire/order.h"

#include <gtest/gtest.h>

#include "perfmodel/error.h"

namespace commtune::api {
namespace {

RunOrder small_run() {
  RunOrder order;
  order.profile.model = "one";
  order.profile.origin.how = "derived";
  order.profile.layers = {{"a", Seconds{1e-3}, Seconds{2e-3}, Seconds{0}, {{"a.weight", Bytes{40}}}, 0}};
  order.plan.method = "wfbp";
  order.plan.model = order.profile.model;
  order.plan.profile = digest(order.profile);
  order.plan.workers = 2;
  order.plan.messages = {{{{0, Bytes{0}, Bytes{40}}}}};
  order.plan.priority = {0};
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

TEST(Order, WithoutASubnetIsWhatItWasBeforeThereWereAny) {
  const nlohmann::json order = to_json(Order(small_run()));
  EXPECT_FALSE(order.contains("subnet"));
  EXPECT_EQ(subnet_after_a_trip(order_from_json(order)), "");
}

TEST(Order, OfAnUnknownKindIsRefused) {
  nlohmann::json order = to_json(Order(small_run()));
  order["order"] = "dance";
  EXPECT_THROW(order_from_json(order), Error);
}

}  // namespace
}  // namespace commtune::api
