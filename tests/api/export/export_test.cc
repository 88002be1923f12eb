#include "api/export/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/export/variables.h"
#include "api/question/answer.h"
#include "api/settings.h"
#include "api/view/outcome_json.h"
#include "perfmodel/base/error.h"
#include "tests/perfmodel/synthetic_profile.h"

namespace commtune::api {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// Eight layers of one tensor of 4 MiB: 32 MiB of gradients; the backward pass takes 80 ms.
Profile profile() { return synthetic_profile(8, Bytes{4U << 20U}, Seconds{0.04}, Seconds{0.08}); }

/// A message for each `together` tensors, last layer first, over a ring.
Plan plan(std::size_t together) {
  const Profile made = profile();
  Plan out;
  out.method = "mg-wfbp";
  out.model = made.model;
  out.profile = digest(made);
  out.workers = 4;
  for (std::size_t first = 0; first < 8; first += together) {
    Message message;
    for (std::size_t i = first; i < first + together; ++i)
      message.pieces.push_back({static_cast<TensorId>(7 - i), Bytes{0}, Bytes{4U << 20U}});
    out.priority.push_back(static_cast<int>(out.messages.size()));
    out.messages.push_back(message);
  }
  out.credit = Bytes{1ULL << 40U};
  check(out, made);
  return out;
}

std::map<std::string, std::string> settings(std::string_view target, const Plan& of) {
  const Exported exported = export_plan(target, of, profile());
  return {exported.settings.begin(), exported.settings.end()};
}

std::vector<std::string> gaps(std::string_view target, const Plan& of) {
  return export_plan(target, of, profile()).not_expressed;
}

TEST(Export, DdpGetsACapForEachMessage) {
  EXPECT_EQ(settings("ddp", plan(2)).at("bucket_cap_mb_list"), "[8, 8, 8, 8]");
  EXPECT_EQ(settings("ddp", plan(8)).at("bucket_cap_mb_list"), "[32]");
  EXPECT_THAT(export_plan("ddp", plan(2), profile()).text,
              HasSubstr("\nmodel = torch.nn.parallel.DistributedDataParallel(\n    model, bucket_cap_mb_list="
                        "[8, 8, 8, 8], gradient_as_bucket_view=True, static_graph=True)\n"));
  EXPECT_THAT(gaps("ddp", plan(2)), Contains(HasSubstr("the first two iterations")));
  EXPECT_THAT(gaps("ddp", plan(8)), Not(Contains(HasSubstr("the first two iterations"))));
}

TEST(Export, DdpGetsAsManyBucketsWhereNothingIsPredicted) {
  EXPECT_EQ(settings("ddp", plan(2)).at("bucket_cap_mb"), "8");
  EXPECT_THAT(gaps("ddp", plan(2)), Contains(HasSubstr("their first bucket is 1 MiB whatever the cap")));
}

/// An iteration takes as many seconds as buckets lie between it and four of them.
std::optional<Seconds> best_with_four(const Plan& of) {
  check(of, profile());
  EXPECT_EQ(of.barrier, Barrier::kFull);
  EXPECT_FALSE(goes_through_servers(of.road));
  return Seconds{1 + std::abs(4 - static_cast<double>(of.messages.size()))};
}

TEST(Export, DdpGetsTheSingleCapOfTheLeastPredictedTime) {
  const Exported exported = export_plan("ddp", plan(8), profile(), best_with_four);
  const std::map<std::string, std::string> made{exported.settings.begin(), exported.settings.end()};
  EXPECT_EQ(made.at("bucket_cap_mb"), "8");
  EXPECT_EQ(to_json(exported).at("predicted_seconds"),
            nlohmann::json({{"bucket_cap_mb", 1.0}, {"bucket_cap_mb_list", 4.0}}));
  EXPECT_THAT(exported.text, HasSubstr("# PyTorch 2.13 and newer, 4.00 s an iteration predicted\n"));
  EXPECT_THAT(exported.text,
              HasSubstr("# older ones: the best single cap, 1.00 s an iteration predicted\n"
                        "# model = torch.nn.parallel.DistributedDataParallel(\n#     model, "));
}

TEST(Export, DdpGetsThePlansGroupsOnlyWhereTheyPayWithAFullBarrier) {
  Plan layers = plan(1);
  layers.barrier = Barrier::kPerLayer;
  EXPECT_EQ(settings("ddp", layers).count("bucket_cap_mb_list"), 1U);
  const Exported worse = export_plan("ddp", layers, profile(), best_with_four);
  EXPECT_EQ(worse.settings.front(), std::pair(std::string("bucket_cap_mb"), std::string("8")));
  EXPECT_THAT(worse.not_expressed, Contains(HasSubstr("is faster with equal buckets then")));
  Plan four = plan(2);
  four.road = ParameterServer{2, Placement::kDedicated, Assignment::kHashed};
  four.barrier = Barrier::kPerLayer;
  const Exported equal = export_plan("ddp", four, profile(), best_with_four);
  EXPECT_EQ(equal.settings.front().first, "bucket_cap_mb_list");
}

TEST(Export, DdpCannotCut) {
  Plan cut = plan(1);
  cut.messages.front().pieces.front().length = Bytes{2U << 20U};
  cut.messages.push_back({{{7, Bytes{2U << 20U}, Bytes{2U << 20U}}}});
  cut.priority.push_back(8);
  check(cut, profile());
  EXPECT_FALSE(settings("ddp", cut).contains("bucket_cap_mb_list"));
  EXPECT_THAT(gaps("ddp", cut), Contains(HasSubstr("a bucket is a run of whole tensors")));
}

TEST(Export, HorovodGetsTheLargestMessageAsThreshold) {
  EXPECT_EQ(settings("horovod", plan(2)).at("HOROVOD_FUSION_THRESHOLD"), std::to_string(8U << 20U));
  // Nothing is fused: 0 turns fusion off.
  EXPECT_EQ(settings("horovod", plan(1)).at("HOROVOD_FUSION_THRESHOLD"), "0");
  // Half of the time in which a message's gradients appear: 80 ms / 4 / 2.
  EXPECT_EQ(settings("horovod", plan(2)).at("HOROVOD_CYCLE_TIME"), "10");
  EXPECT_EQ(settings("horovod", plan(2)).at("HOROVOD_HIERARCHICAL_ALLREDUCE"), "0");
  Plan hierarchical = plan(2);
  hierarchical.road = AllReduce{Collective::kHierarchical};
  EXPECT_EQ(settings("horovod", hierarchical).at("HOROVOD_HIERARCHICAL_ALLREDUCE"), "1");
}

TEST(Export, BytepsGetsServersAndPartitions) {
  Plan servers = plan(1);
  servers.road = ParameterServer{2, Placement::kDedicated, Assignment::kHashed};
  servers.order = commtune::Order::kPriority;
  EXPECT_EQ(settings("byteps", servers).at("DMLC_NUM_SERVER"), "2");
  EXPECT_EQ(settings("byteps", servers).at("DMLC_NUM_WORKER"), "4");
  EXPECT_EQ(settings("byteps", servers).at("BYTEPS_PARTITION_BYTES"), std::to_string(4U << 20U));
  EXPECT_FALSE(settings("byteps", servers).contains("BYTEPS_SCHEDULING_CREDIT"));
  EXPECT_THAT(gaps("byteps", servers), testing::ElementsAre(HasSubstr("in turn")));
  // 8 MiB in flight are two partitions of 4 MiB.
  servers.credit = Bytes{8U << 20U};
  EXPECT_EQ(settings("byteps", servers).at("BYTEPS_SCHEDULING_CREDIT"), "2");
  EXPECT_THAT(gaps("byteps", plan(1)), Contains(HasSubstr("parameter servers only")));
}

TEST(Export, NcclGetsTheAlgorithmWhereItHasOne) {
  EXPECT_EQ(settings("nccl", plan(2)).at("NCCL_ALGO"), "Ring");
  EXPECT_THAT(export_plan("nccl", plan(2), profile()).text,
              HasSubstr("allreduce,8388608,8388608,ring,simple,-1,-1,4,-1,-1\n"));
  Plan doubling = plan(2);
  doubling.road = AllReduce{Collective::kHalvingDoubling};
  EXPECT_FALSE(settings("nccl", doubling).contains("NCCL_ALGO"));
  EXPECT_THAT(gaps("nccl", doubling), Contains(HasSubstr("halving-doubling")));
}

TEST(Export, WhatOnlyOurExecutorCanDoIsSaid) {
  Plan free = plan(1);
  free.barrier = Barrier::kPerLayer;
  // The first tensor in two halves.
  free.messages.front().pieces.front().length = Bytes{2U << 20U};
  free.messages.push_back({{{7, Bytes{2U << 20U}, Bytes{2U << 20U}}}});
  free.priority.push_back(8);
  check(free, profile());
  for (const char* target : {"ddp", "horovod"}) {
    EXPECT_THAT(gaps(target, free), Contains(HasSubstr("layer by layer"))) << target;
    EXPECT_THAT(gaps(target, free), Contains(HasSubstr("2 of 9 messages carry a part"))) << target;
    EXPECT_THAT(gaps(target, plan(1)), Not(Contains(HasSubstr("layer by layer")))) << target;
  }
}

TEST(Export, EnvIsWhatTheOthersExport) {
  const Exported env = export_plan("env", plan(2), profile());
  EXPECT_THAT(env.text, HasSubstr("export HOROVOD_FUSION_THRESHOLD=8388608\n"));
  EXPECT_THAT(env.text, HasSubstr("export NCCL_ALGO=Ring\n"));
  EXPECT_THAT(env.text, HasSubstr("export COMMTUNE_PLAN_DIGEST=" + digest(plan(2))));
}

TEST(Export, AnUnknownTargetNamesTheKnownOnes) {
  EXPECT_THROW(export_plan("hovorod", plan(1), profile()), Error);
}

std::vector<std::string_view> table() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kVariables));
  for (const VariableRow& row : kVariables) names.push_back(row.name);
  return names;
}

/// One of each kind of road and form of messages.
std::vector<Plan> all_kinds() {
  std::vector<Plan> plans{plan(1), plan(8)};
  for (const Collective algorithm :
       {Collective::kRing, Collective::kDoubleBinaryTree, Collective::kHierarchical,
        Collective::kHalvingDoubling, Collective::kLibrary}) {
    plans.push_back(plan(2));
    plans.back().road = AllReduce{algorithm};
  }
  for (const Placement placement : {Placement::kColocated, Placement::kDedicated}) {
    plans.push_back(plan(1));
    plans.back().road = ParameterServer{2, placement, Assignment::kHashed};
    plans.back().credit = Bytes{8U << 20U};
  }
  return plans;
}

TEST(HostileVariables, ExportersWriteNoNameThatTheTableLacks) {
  for (const Plan& of : all_kinds())
    for (const char* target : {"horovod", "byteps", "nccl", "env"})
      for (const auto& [name, value] : export_plan(target, of, profile()).settings)
        EXPECT_THAT(table(), Contains(name)) << target;
}

TEST(HostileVariables, ServiceAnswersWithNoNameThatTheTableLacks) {
  for (const Plan& of : all_kinds()) {
    const nlohmann::json environment = environment_of(of, profile(), 7, Seconds{0.1});
    for (const auto& [name, value] : environment.items()) EXPECT_THAT(table(), Contains(name));
  }
}

TEST(HostileVariables, TableNamesNoCodeAndNoProgram) {
  for (const std::string_view name : table()) {
    // Whole families: the loader's, interpreters', Open MPI's and Slurm's settings.
    for (const char* family : {"LD_", "DYLD_", "PYTHON", "PERL", "OMPI_", "PMIX_", "PRTE_", "UCX_", "SLURM_",
                               "SBATCH_", "BASH", "GIT_", "SSH_", "XDG_"})
      EXPECT_FALSE(name.starts_with(family)) << name;
    for (const char* whole : {"PATH", "HOME", "SHELL", "ENV", "IFS", "USER", "EDITOR", "PAGER"})
      EXPECT_NE(name, whole);
    // What names a file, a library, a program or a host in the settings of frameworks.
    for (const char* word : {"PATH", "PLUGIN", "LIB", "FILE", "DIR", "SCRIPT", "PROGRAM", "COMMAND", "AGENT",
                             "URI", "URL", "HOST", "TOKEN", "CONFIG"})
      EXPECT_EQ(name.find(word), std::string_view::npos) << name;
  }
}

TEST(HostileVariables, TableHasNoSettingOfOurs) {
  for (const SettingRow& setting : setting_rows()) EXPECT_THAT(table(), Not(Contains(setting.variable)));
  for (const char* helper :
       {"COMMTUNE_URL", "COMMTUNE_PLAIN_HTTP", "COMMTUNE_TOKEN_FILE", "COMMTUNE_CA_FILE", "COMMTUNE_SECONDS",
        "COMMTUNE_SBATCH", "COMMTUNE_TUNE", "COMMTUNE_MODEL", "COMMTUNE_CONFIG"})
    EXPECT_THAT(table(), Not(Contains(helper)));
}

TEST(HostileVariables, ValueIsNoCommandForTheShellThatEvaluatesIt) {
  Plan of = plan(2);
  of.method = "a; touch 'x' $(touch y)\nexport PATH=/tmp";
  EXPECT_THAT(export_plan("env", of, profile()).text,
              HasSubstr("export COMMTUNE_PLAN_METHOD='a; touch '\\''x'\\'' $(touch y)\nexport PATH=/tmp'\n"));
}

}  // namespace
}  // namespace commtune::api
