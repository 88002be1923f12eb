#include "perfmodel/cluster.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Fit two_pieces() {
  Fit fit;
  fit.curve = Curve({{0_B, Seconds{50e-6}, {1e-9}}, {65'537_B, Seconds{200e-6}, {0.8e-9}}});
  fit.quality = {20, 0.999, 0.01, 0.03};
  fit.smallest = 4_B;
  fit.largest = 96_MiB;
  fit.covariance = std::vector<double>(16, 1e-15);
  fit.deviation = {0.03, 0.02};
  return fit;
}

Cluster four_hosts() {
  Cluster cluster;
  cluster.name = "lab";
  cluster.transport = "mpi";
  cluster.fingerprint = "0123456789abcdef";
  cluster.facts = {{"kernel", "6.1"}, {"mtu", "1500"}};
  cluster.hosts = {{"a", 1}, {"b", 1}, {"c", 2, {2, 1.5, 3}}, {"d", 4, {1, 1, 0.5}}};
  cluster.links[LinkClass::kInterHost] = {two_pieces(), two_pieces(), {}};
  cluster.operations = {{AllReduce{}, Operation::kAllReduce, 4, two_pieces(), two_pieces()},
                        {ParameterServer{2}, Operation::kPush, 4, two_pieces(), {}}};
  cluster.reduce_seconds_per_byte = {2e-10, 1e-12};
  cluster.interference = {0.05, 0.01};
  cluster.contention = {1.1, 0.2};
  cluster.head_of_line_seconds = {4e-3, 1e-4};
  cluster.connection_head_of_line_seconds = {2e-3, 1e-4};
  cluster.formula_deviation = {0.3, 0.2};
  cluster.plan_deviation = 0.03;
  return cluster;
}

TEST(Cluster, SumsItsSlots) { EXPECT_EQ(four_hosts().ranks(), 8); }

TEST(Cluster, FindsExactlyWhatWasMeasured) {
  const Cluster cluster = four_hosts();
  EXPECT_EQ(find_operation(cluster, AllReduce{}, Operation::kAllReduce, 4), &cluster.operations[0]);
  EXPECT_EQ(find_operation(cluster, ParameterServer{2}, Operation::kPush, 4), &cluster.operations[1]);
  EXPECT_EQ(find_operation(cluster, AllReduce{}, Operation::kAllReduce, 3), nullptr);
  EXPECT_EQ(find_operation(cluster, AllReduce{Collective::kLibrary}, Operation::kAllReduce, 4), nullptr);
  EXPECT_EQ(find_operation(cluster, ParameterServer{3}, Operation::kPush, 4), nullptr);
  EXPECT_EQ(find_operation(cluster, ParameterServer{2}, Operation::kPull, 4), nullptr);
}

TEST(Cluster, KeepsWhatCastsCost) {
  Cluster cluster = four_hosts();
  EXPECT_FALSE(to_json(cluster).contains("casts"));
  cluster.casts[WireFormat::kBfloat16] = {{4e-10, 1e-12}, {3e-10, 2e-12}};
  const nlohmann::json json = to_json(cluster);
  const Cluster again = cluster_from_json(json);
  ASSERT_EQ(again.casts.size(), 1U);
  EXPECT_EQ(again.casts.at(WireFormat::kBfloat16).cast_seconds_per_byte.value, 4e-10);
  EXPECT_EQ(again.casts.at(WireFormat::kBfloat16).reduce_seconds_per_byte.half_width, 2e-12);
  EXPECT_EQ(to_json(again), json);
}

TEST(Cluster, KeepsWhatGpusTake) {
  Cluster cluster = four_hosts();
  EXPECT_FALSE(to_json(cluster).contains("gpu"));
  EXPECT_FALSE(to_json(cluster).contains("device"));
  cluster.device = DeviceKind::kCuda;
  cluster.gpu = {{4e-6, 1e-7}, {2e-11, 1e-12}, {3e-11, 2e-12}};
  const nlohmann::json json = to_json(cluster);
  const Cluster again = cluster_from_json(json);
  EXPECT_EQ(again.device, DeviceKind::kCuda);
  EXPECT_EQ(again.gpu.launch_seconds.value, 4e-6);
  EXPECT_EQ(again.gpu.upload_seconds_per_byte.value, 2e-11);
  EXPECT_EQ(again.gpu.download_seconds_per_byte.half_width, 2e-12);
  EXPECT_EQ(to_json(again), json);
}

TEST(Cluster, KeepsTheTraitsOfItsTransport) {
  Cluster cluster = four_hosts();
  EXPECT_FALSE(to_json(cluster).contains("traits"));
  EXPECT_TRUE(cluster_from_json(to_json(cluster)).traits.assumed);
  cluster.traits = {.chunk = 256_KiB, .uncut = 32_KiB, .cuts = 2, .window = 8, .assumed = false};
  const nlohmann::json json = to_json(cluster);
  EXPECT_EQ(json["traits"]["chunk_bytes"], 256 << 10);
  EXPECT_EQ(cluster_from_json(json).traits, cluster.traits);
}

TEST(Cluster, KeepsWhatNcclsTuningsCost) {
  Cluster cluster = four_hosts();
  EXPECT_FALSE(to_json(cluster).contains("nccl"));
  const NcclTuning tuning{NcclAlgorithm::kTree, NcclProtocol::kLl128, 8};
  cluster.nccl = {{Operation::kAllGather, tuning, 4, cluster.operations[0].alone},
                  {Operation::kAllGather, {}, 4, cluster.operations[0].alone}};
  nlohmann::json json = to_json(cluster);
  EXPECT_EQ(json["nccl"][0]["tuning"], "Tree+LL128+8");
  const Cluster again = cluster_from_json(json);
  EXPECT_FALSE(json["nccl"][1].contains("tuning"));
  ASSERT_EQ(again.nccl.size(), 2U);
  EXPECT_TRUE(again.nccl[1].tuning.is_own_choice());
  EXPECT_EQ(again.nccl[0].tuning, tuning);
  EXPECT_EQ(again.nccl[0].operation, Operation::kAllGather);
  EXPECT_EQ(to_json(again), json);
  json["nccl"][0]["tuning"] = "Star+LL";
  EXPECT_THAT(bad_input([&] { cluster_from_json(json); }), StartsWith("nccl[0].tuning: expected Ring+LL128"));
}

/// The same over two transports.
Cluster over_both() {
  Cluster cluster = four_hosts(), other = four_hosts();
  other.transport = "tcp";
  other.fingerprint = "fedcba9876543210";
  other.operations.pop_back();
  cluster.others.push_back(other);
  return cluster;
}

TEST(Cluster, OverSeveralTransportsSurvivesJson) {
  const nlohmann::json json = to_json(over_both());
  const Cluster again = cluster_from_json(nlohmann::json::parse(json.dump(2)));
  EXPECT_EQ(to_json(again), json);
  ASSERT_EQ(again.others.size(), 1U);
  EXPECT_EQ(again.others[0].fingerprint, "fedcba9876543210");
  EXPECT_EQ(again.others[0].operations.size(), 1U);
  EXPECT_FALSE(to_json(four_hosts()).contains("others"));
}

TEST(Cluster, IsLookedUpByTransport) {
  Cluster both = over_both();
  EXPECT_EQ(&over_transport(both, ""), &both);
  EXPECT_EQ(&over_transport(both, "mpi"), &both);
  EXPECT_EQ(&over_transport(both, "tcp"), &both.others[0]);
  EXPECT_THAT(over_each_transport(both), testing::ElementsAre(&both, &both.others[0]));
  EXPECT_EQ(transports_of(both), "mpi, tcp");
  EXPECT_EQ(error_text(ErrorCode::kNotFound, [&] { over_transport(both, "verbs"); }),
            "transport verbs: cluster \"lab\" was probed over mpi, tcp");
}

TEST(Cluster, NamesEachTransportOnceAndNestsNone) {
  const auto refusal = [](const auto& change) {
    nlohmann::json json = to_json(over_both());
    change(json);
    return bad_input([&] { cluster_from_json(json); });
  };
  EXPECT_THAT(refusal([](auto& json) { json["others"][0]["transport"] = "mpi"; }),
              HasSubstr("others[0]: transport: mpi is there twice"));
  EXPECT_THAT(refusal([](auto& json) { json["others"][0]["name"] = "cellar"; }),
              HasSubstr("others[0]: name: cellar: must be the cluster's, lab"));
  EXPECT_THAT(refusal([](auto& json) { json["others"][0]["others"] = {to_json(four_hosts())}; }),
              HasSubstr("others[0]: others: one of the others has none of its own"));
}

TEST(Cluster, SurvivesJson) {
  const nlohmann::json json = to_json(four_hosts());
  const Cluster again = cluster_from_json(nlohmann::json::parse(json.dump(2)));
  EXPECT_EQ(to_json(again), json);
  const LinkFit& link = again.links.at(LinkClass::kInterHost);
  EXPECT_EQ(link.alone.curve(1_MiB), two_pieces().curve(1_MiB));
  EXPECT_EQ(link.alone.covariance, two_pieces().covariance);
  EXPECT_TRUE(link.duplex.curve.empty());
  EXPECT_EQ(again.hosts[2].slowdown, (HostSlowdown{2, 1.5, 3}));
  EXPECT_EQ(again.hosts[3].slowdown.compute, 0.5);
  EXPECT_FALSE(json["hosts"][0].contains("compute_factor"));
  EXPECT_EQ(again.facts, four_hosts().facts);
  EXPECT_EQ(again.interference.half_width, 0.01);
  EXPECT_EQ(again.operations[0].streamed.deviation, (Deviation{0.03, 0.02}));
  EXPECT_EQ(again.formula_deviation, (Deviation{0.3, 0.2}));
  EXPECT_EQ(again.plan_deviation, 0.03);
  EXPECT_EQ(again.contention.value, 1.1);
  EXPECT_EQ(again.head_of_line_seconds.value, 4e-3);
  EXPECT_EQ(again.connection_head_of_line_seconds.value, 2e-3);
}

template <typename Change>
std::string cluster_complaint(const Change& change) {
  nlohmann::json json = to_json(four_hosts());
  change(json);
  return bad_input([&] { cluster_from_json(json); });
}

TEST(ClusterFromJson, NamesThePathTheRuleAndTheValue) {
  using json = nlohmann::json;
  EXPECT_EQ(cluster_complaint([](json& j) { j["hosts"][2]["slots"] = 0; }),
            "hosts[2].slots: expected a positive integer, got 0");
  EXPECT_THAT(cluster_complaint([](json& j) { j["hosts"][2]["compute_factor"] = 0; }),
              StartsWith("hosts[2].compute_factor: expected a number from"));
  EXPECT_THAT(cluster_complaint([](json& j) { j["hosts"][2]["name"] = ""; }),
              StartsWith("hosts[2].name: expected 1 to 255"));
  EXPECT_THAT(cluster_complaint([](json& j) { j["links"]["inter-galactic"] = json::object(); }),
              StartsWith("links.inter-galactic: unknown key"));
  EXPECT_EQ(cluster_complaint([](json& j) { j["links"]["inter-host"].erase("alone"); }),
            "links.inter-host.alone: missing");
  EXPECT_THAT(
      cluster_complaint([](json& j) { j["operations"][0]["alone"]["curve"][1]["alpha_seconds"] = 0; }),
      testing::AllOf(StartsWith("operations[0].alone.curve: curve piece 1"), HasSubstr("never falls")));
  EXPECT_THAT(cluster_complaint(
                  [](json& j) { j["operations"][0]["alone"]["curve"][0]["beta_seconds_per_byte"] = -1; }),
              StartsWith("operations[0].alone.curve[0].beta_seconds_per_byte: expected a number from 0"));
  EXPECT_THAT(cluster_complaint([](json& j) { j["operations"][0]["alone"]["covariance"].push_back(1); }),
              HasSubstr("at most 16 elements"));
  EXPECT_THAT(cluster_complaint([](json& j) { j["operations"][0]["alone"]["covariance"].erase(3); }),
              HasSubstr("expected none or 16"));
  EXPECT_THAT(cluster_complaint([](json& j) { j["operations"][0]["alone"]["largest_bytes"] = 3; }),
              StartsWith("operations[0].alone.largest_bytes: expected at least smallest_bytes = 4"));
  EXPECT_THAT(cluster_complaint([](json& j) { j["operations"][0]["operation"] = "all-lose"; }),
              StartsWith("operations[0].operation: expected one of \"all-reduce\""));
  EXPECT_THAT(cluster_complaint([](json& j) {
                j["interference"] = {{"value", 1e300}, {"half_width", 0}};
              }),
              StartsWith("interference.value: expected a number"));
  EXPECT_THAT(cluster_complaint([](json& j) { j["facts"]["mtu"] = 1500; }),
              StartsWith("facts.mtu: expected text, got 1500"));
}

TEST(Names, OfOperationsAndLinks) {
  EXPECT_EQ(to_string(Operation::kReduceScatter), "reduce-scatter");
  EXPECT_EQ(to_string(Operation::kPushPull), "push-pull");
  EXPECT_EQ(to_string(LinkClass::kIntraHost), "intra-host");
}

}  // namespace
}  // namespace commtune
