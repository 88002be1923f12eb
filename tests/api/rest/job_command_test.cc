#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "api/rest/job_runner.h"
#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

/// What is started for a job on a cluster with these facts.
std::vector<std::string> command_on(const std::map<std::string, std::string>& facts, const std::string& kind,
                                    const nlohmann::json& request = {{"plan", 1}},
                                    const std::string& transport = "tcp") {
  Store store = Store::open(":memory:", {});
  Cluster cluster;
  cluster.name = "lab";
  cluster.transport = transport;
  cluster.fingerprint = "0123456789abcdef";
  cluster.hosts = {{"n1", 2}, {"n2", 2}};
  cluster.facts = facts;
  JobRow job;
  job.kind = kind;
  job.cluster = store.put_cluster(cluster);
  job.request = request;
  return job_command(job, store, "/usr/bin/tune");
}

TEST(JobCommand, NamesTheHostsAndTheTransportOfTheCluster) {
  EXPECT_THAT(command_on({}, "probe"), AllOf(Contains("--cluster=lab"), Contains("--host-list=n1:2,n2:2"),
                                             Contains("--network=tcp"), Each(Not(StartsWith("--subnet")))));
}

TEST(JobCommand, LeavesATransportThatThisProgramDoesNotHaveToTune) {
  EXPECT_THAT(command_on({}, "probe", nlohmann::json::object(), "smoke"), Each(Not(StartsWith("--network"))));
}

TEST(JobCommand, ProbesOverWhatTheRequestSays) {
  EXPECT_THAT(command_on({}, "probe", {{"transport", "auto"}}),
              AllOf(Contains("--transport=auto"), Each(Not(StartsWith("--network")))));
  const std::map<std::string, std::string> within{{"setting.subnet", "10.1.0.0/16"}};
  EXPECT_THAT(command_on(within, "probe", {{"transport", "mpi"}}), Each(Not(StartsWith("--subnet"))));
  EXPECT_THAT(command_on(within, "probe", {{"transport", "auto"}}), Contains("--subnet=10.1.0.0/16"));
}

TEST(JobCommand, KeepsToTheSubnetThatTheClusterWasProbedOver) {
  EXPECT_THAT(command_on({{"setting.subnet", "10.1.0.0/16"}}, "probe"), Contains("--subnet=10.1.0.0/16"));
}

// A plan names its transport, or its cluster does, and `tune` finds both in the store.
TEST(JobCommand, LeavesWhatAPlanGoesOverToThePlan) {
  for (const char* kind : {"run", "tune"})
    EXPECT_THAT(command_on({{"setting.subnet", "10.1.0.0/16"}}, kind, {{"plan", 1}, {"model", "resnet50"}}),
                AllOf(Each(Not(StartsWith("--network"))), Each(Not(StartsWith("--subnet")))));
}

TEST(JobCommand, KeepsToTheNetworkOptionsThatTheClusterWasProbedWith) {
  const std::map<std::string, std::string> facts{{"setting.network_options", "device=mlx5_0,connections=2"}};
  EXPECT_THAT(command_on(facts, "probe"), Contains("--network-options=device=mlx5_0,connections=2"));
  EXPECT_THAT(command_on(facts, "run"), Each(Not(StartsWith("--network-options"))));  // `tune run` finds them
  EXPECT_THAT(command_on({}, "probe"), Each(Not(StartsWith("--network-options"))));
}

TEST(JobCommand, VerifiesWithTheNumbersOfTheRequest) {
  const nlohmann::json limits{{"plans", 2}, {"budget_seconds", 5.5}};
  EXPECT_THAT(command_on({}, "tune", {{"model", "resnet50"}, {"draws", 0}, {"seed", 7}, {"verify", limits}}),
              ElementsAre("/usr/bin/tune", "plan", "resnet50", "--draws=0", "--seed=7", "--verify=2",
                          "--verify-budget=5.5s", StartsWith("--db="), "--cluster=lab",
                          "--host-list=n1:2,n2:2", "--progress=json", "--json"));
  EXPECT_THAT(command_on({}, "tune",
                         {{"model", "resnet50"},
                          {"workers", 3},
                          {"servers", 2},
                          {"dedicated_servers", 1},
                          {"strict", true},
                          {"verify", limits}}),
              AllOf(Contains("--workers=3"), Contains("--servers=2"), Contains("--dedicated=1"),
                    Contains("--strict")));
}

TEST(JobCommand, ChecksForTheTimeOfTheRequest) {
  Question question;
  question.check = Seconds{2.5};
  question.allocation.limits.hashed = true;
  question.thorough = true;
  question.cluster.transport = "mpi";
  EXPECT_THAT(command_on({}, "tune", tune_job_request(question, "resnet50")),
              AllOf(Contains("resnet50"), Contains("--check=2.5s"), Contains("--hashed"),
                    Contains("--thorough"), Contains("--transport=mpi"), Each(Not(StartsWith("--verify")))));
}

TEST(JobCommand, PlansForTheBarrierOfTheRequest) {
  Question question;
  EXPECT_THAT(command_on({}, "tune", tune_job_request(question, "resnet50")),
              Each(Not(StartsWith("--barrier"))));
  question.barrier = Barrier::kPerLayer;
  EXPECT_THAT(command_on({}, "tune", tune_job_request(question, "resnet50")),
              Contains("--barrier=per-layer"));
}

TEST(JobCommand, CastsAsTheRequestSays) {
  Question question;
  question.explain = "";
  EXPECT_THAT(command_on({}, "tune", tune_job_request(question, "resnet50")),
              Each(Not(StartsWith("--wire"))));
  question.wire = WireFormat::kFloat16;
  EXPECT_THAT(command_on({}, "tune", tune_job_request(question, "resnet50")), Contains("--wire=fp16"));
}

TEST(JobCommand, ExplainsWhatTheRequestWantsExplained) {
  Question question;
  question.verify.emplace();
  const auto command = [&] { return command_on({}, "tune", tune_job_request(question, "resnet50")); };
  EXPECT_THAT(command(), Each(Not(StartsWith("--explain"))));
  question.explain = "";
  EXPECT_THAT(command(), AllOf(Contains("--explain"), Each(Not(StartsWith("--method")))));
  question.explain = "joint";
  EXPECT_THAT(command(), AllOf(Contains("--explain"), Contains("--method=joint")));
}

TEST(JobCommand, AJobOfALaterVersionIsRefused) { EXPECT_THROW(command_on({}, "dance"), Error); }

}  // namespace
}  // namespace commtune::api::rest
