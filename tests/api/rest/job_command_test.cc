#include <gmock/gmock.h>

#include "api/rest/job_runner.h"

namespace commtune::api::rest {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Not;
using testing::StartsWith;

/// What is started for a job on a cluster with these facts.
std::vector<std::string> command_on(const std::map<std::string, std::string>& facts,
                                    const std::string& kind) {
  Store store = Store::open(":memory:", {});
  Cluster cluster;
  cluster.name = "lab";
  cluster.transport = "tcp";
  cluster.fingerprint = "0123456789abcdef";
  cluster.hosts = {{"n1", 2}, {"n2", 2}};
  cluster.facts = facts;
  JobRow job;
  job.kind = kind;
  job.cluster = store.put_cluster(cluster);
  job.request = {{"plan", 1}};
  return job_command(job, store, "/usr/bin/tune");
}

TEST(JobCommand, NamesTheHostsAndTheTransportOfTheCluster) {
  EXPECT_THAT(command_on({}, "probe"), AllOf(Contains("--cluster=lab"), Contains("--host-list=n1:2,n2:2"),
                                             Contains("--network=tcp"), Each(Not(StartsWith("--subnet")))));
}

TEST(JobCommand, KeepsToTheSubnetThatTheClusterWasProbedOver) {
  for (const char* kind : {"probe", "run"})
    EXPECT_THAT(command_on({{"setting.subnet", "10.1.0.0/16"}}, kind), Contains("--subnet=10.1.0.0/16"));
}

}  // namespace
}  // namespace commtune::api::rest
