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
#include "tuner/messages.h"

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
  const Exported exported = export_plan("ddp", plan(8), profile(), {best_with_four});
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
  const Exported worse = export_plan("ddp", layers, profile(), {best_with_four});
  EXPECT_EQ(worse.settings.front(), std::pair(std::string("bucket_cap_mb"), std::string("8")));
  EXPECT_THAT(worse.not_expressed, Contains(HasSubstr("is faster with equal buckets then")));
  Plan four = plan(2);
  four.road = ParameterServer{2, Placement::kDedicated, Assignment::kHashed};
  four.barrier = Barrier::kPerLayer;
  const Exported equal = export_plan("ddp", four, profile(), {best_with_four});
  EXPECT_EQ(equal.settings.front().first, "bucket_cap_mb_list");
}

TEST(Export, DdpGetsBucketsOfWholeLayers) {
  const Profile two = synthetic_profile(2, Bytes{4U << 20U}, Seconds{0.04}, Seconds{0.08}, 2);
  Plan inside = plan(8);
  inside.profile = digest(two);
  inside.messages = tuner::fused_messages(two, std::vector<std::size_t>{1, 3});
  inside.priority = {0, 1};
  const Exported exported = export_plan("ddp", inside, two);
  EXPECT_EQ(exported.settings.front(), std::pair(std::string("bucket_cap_mb_list"), std::string("[8, 8]")));
  EXPECT_THAT(exported.not_expressed, Contains(HasSubstr("their buckets end with that layer")));
  inside.messages = tuner::fused_messages(two, std::vector<std::size_t>{2, 2});
  EXPECT_THAT(export_plan("ddp", inside, two).not_expressed, Not(Contains(HasSubstr("end inside a layer"))));
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

TEST(Export, DdpSingleGetsOneCapAlone) {
  EXPECT_EQ(settings("ddp-single", plan(2)),
            (std::map<std::string, std::string>{
                {"bucket_cap_mb", "8"}, {"gradient_as_bucket_view", "True"}, {"static_graph", "True"}}));
  EXPECT_THAT(gaps("ddp-single", plan(2)), testing::ElementsAre(HasSubstr("see the target nccl")));
  const Exported exported = export_plan("ddp-single", plan(8), profile(), {best_with_four});
  EXPECT_EQ(exported.settings.front(), std::pair(std::string("bucket_cap_mb"), std::string("8")));
  EXPECT_EQ(to_json(exported).at("predicted_seconds"), nlohmann::json({{"bucket_cap_mb", 1.0}}));
  EXPECT_THAT(exported.not_expressed, Contains(AllOf(HasSubstr("the plan's 1 messages of 32.0 MiB"),
                                                     HasSubstr("this one makes 4 of 8.0 MiB to 8.0 MiB"))));
  // The first bucket of 1 MiB takes one tensor, so that 4 buckets need three for the seven others.
  EXPECT_THAT(exported.text, HasSubstr("whose first bucket is 1 MiB whatever the cap, 1.00 s an iteration "
                                       "predicted:\n# model = torch.nn.parallel.DistributedDataParallel(\n"
                                       "#     model, bucket_cap_mb=12, "));
}

/// Messages of 1, 3 and 4 tensors: one cap that closes buckets by reaching it cannot make them.
Plan uneven_plan() {
  Plan out = plan(8);
  std::vector<Piece> pieces = out.messages.front().pieces;
  out.messages = {{{pieces.begin(), pieces.begin() + 1}},
                  {{pieces.begin() + 1, pieces.begin() + 4}},
                  {{pieces.begin() + 4, pieces.end()}}};
  out.priority = {0, 1, 2};
  check(out, profile());
  return out;
}

TEST(Export, DeepSpeedGetsElements) {
  const Exported exported = export_plan("deepspeed", plan(2), profile());
  // 8 MiB of float32.
  const nlohmann::json zero = nlohmann::json::parse(exported.text).at("zero_optimization");
  EXPECT_EQ(zero.at("reduce_bucket_size"), 2U << 20U);
  EXPECT_EQ(zero.at("allgather_bucket_size"), 8U << 20U);  // all 32 MiB: nothing computes meanwhile
  EXPECT_EQ(zero.at("overlap_comm"), true);
  EXPECT_EQ(zero.at("reduce_scatter"), false);
  EXPECT_EQ(zero.at("stage"), 1);
  EXPECT_EQ(settings("deepspeed", plan(2)).at("zero_optimization.reduce_bucket_size"), "2097152");
  EXPECT_THAT(exported.not_expressed, Not(Contains(HasSubstr("one size for all buckets"))));
  EXPECT_THAT(exported.not_expressed, Contains(HasSubstr("gathers the parameters of other ranks after")));
  EXPECT_THAT(gaps("deepspeed", uneven_plan()), Contains(HasSubstr("one size for all buckets")));
}

TEST(Export, MegatronGetsArguments) {
  const Exported exported = export_plan("megatron", plan(2), profile());
  EXPECT_EQ(exported.text, "--overlap-grad-reduce --ddp-bucket-size 2097152\n");
  EXPECT_EQ(settings("megatron", plan(2)).at("--ddp-bucket-size"), "2097152");
  EXPECT_THAT(exported.not_expressed, Contains(HasSubstr("--use-distributed-optimizer")));
  EXPECT_THAT(exported.not_expressed, Not(Contains(HasSubstr("travel as float32"))));
  Profile half = profile();
  half.type = DataType::kBfloat16;
  const Exported halved = export_plan("megatron", plan(2), half);
  EXPECT_EQ(halved.text, "--overlap-grad-reduce --ddp-bucket-size 4194304\n");
  EXPECT_THAT(halved.not_expressed, Contains(HasSubstr("travel as float32: twice the bytes")));
}

TEST(Export, BucketSizesAreThoseOfTheLeastPredictedTime) {
  for (const char* target : {"deepspeed", "megatron"}) {
    const Exported exported = export_plan(target, plan(8), profile(), {best_with_four});
    EXPECT_THAT(exported.text, HasSubstr("2097152")) << target;
    ASSERT_EQ(exported.predicted.size(), 1U) << target;
    EXPECT_EQ(exported.predicted.front().second, Seconds{1}) << target;
    EXPECT_THAT(exported.not_expressed, Contains(HasSubstr("this one makes 4 of 8.0 MiB to 8.0 MiB")))
        << target;
  }
}

/// A module with a parameter beside those of the module inside it, as the names of PyTorch say.
Profile nested_profile() {
  Profile made = synthetic_profile(5, Bytes{64}, Seconds{0.04}, Seconds{0.08});
  const char* const names[] = {"stem.weight", "blocks.0.scale", "blocks.0.first.weight", "blocks.1.weight",
                               "head.weight"};
  for (std::size_t i = 0; i < 5; ++i) made.layers[i].tensors[0].name = names[i];
  made.layers[2].tensors.push_back({"blocks.0.first.bias", Bytes{4}});
  return made;
}

/// Whole tensors, a message for each list.
Plan nested_plan(const std::vector<std::vector<TensorId>>& messages) {
  const Profile made = nested_profile();
  const std::vector<TensorRef> tensors = tensors_of(made);
  Plan out = plan(1);
  out.profile = digest(made);
  out.messages.clear();
  for (const std::vector<TensorId>& message : messages) {
    out.messages.emplace_back();
    for (const TensorId tensor : message)
      out.messages.back().pieces.push_back({tensor, Bytes{0}, tensors[tensor].bytes});
  }
  out.priority.resize(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) out.priority[i] = static_cast<int>(i);
  check(out, made);
  return out;
}

std::string groups_of(const std::vector<std::vector<TensorId>>& messages) {
  const Exported exported = export_plan("fsdp2", nested_plan(messages), nested_profile());
  return exported.settings.front().second;
}

TEST(Export, Fsdp2GetsTheModulesOfEachMessage) {
  EXPECT_EQ(groups_of({{5, 4}, {3, 2, 1}, {0}}), R"([["stem"],["blocks.0"],["blocks.1","head"]])");
  // The outer module's call comes after the inner one's, and takes what that left.
  EXPECT_EQ(groups_of({{5, 4, 3, 2}, {1, 0}}),
            R"([["stem","blocks.0"],["blocks.0.first","blocks.1","head"]])");
  // Messages that end inside a module: it goes with the later one.
  EXPECT_EQ(groups_of({{5, 4, 3}, {2, 1, 0}}), R"([["stem","blocks.0"],["blocks.1","head"]])");
  const Exported exported = export_plan("fsdp2", nested_plan({{5, 4, 3}, {2, 1, 0}}), nested_profile());
  EXPECT_THAT(exported.not_expressed, Contains(HasSubstr("a group is made of whole modules")));
  EXPECT_THAT(export_plan("fsdp2", nested_plan({{5, 4}, {3, 2, 1}, {0}}), nested_profile()).not_expressed,
              Not(Contains(HasSubstr("whole modules"))));
}

TEST(Export, Fsdp2JoinsGroupsThatWouldTakeEachOthersModules) {
  // "blocks.0" would take the module inside it, which is in an earlier group.
  EXPECT_EQ(groups_of({{5, 4}, {1, 0}, {3, 2}}),
            R"([["stem","blocks.0"],["blocks.0.first"],["blocks.1","head"]])");
  Profile reversed = nested_profile();
  reversed.layers[1].tensors[0].name = "blocks.0.first.weight";
  reversed.layers[2].tensors = {{"blocks.0.scale", Bytes{64}}, {"blocks.0.shift", Bytes{4}}};
  const Exported exported = export_plan("fsdp2", nested_plan({{5, 4}, {3, 2}, {1, 0}}), reversed);
  EXPECT_EQ(exported.settings.front().second, R"([["stem","blocks.0"],["blocks.1","head"]])");
}

TEST(Export, Fsdp2GathersInTheNextForwardPass) {
  std::optional<Plan> asked;
  const auto predict = [&asked](const Plan& of) {
    if (!asked) asked = of;  // the plan's own groups
    return std::optional(Seconds{2});
  };
  const Exported exported =
      export_plan("fsdp2", nested_plan({{5, 4}, {3, 2, 1}, {0}}), nested_profile(), {predict});
  ASSERT_TRUE(asked);
  check(*asked, nested_profile());
  EXPECT_EQ(asked->barrier, Barrier::kPerLayer);
  EXPECT_EQ(asked->sequence, (std::vector<Step>{{0, Stage::kReduce},
                                                {1, Stage::kReduce},
                                                {2, Stage::kReduce},
                                                {2, Stage::kDistribute},
                                                {1, Stage::kDistribute},
                                                {0, Stage::kDistribute}}));
  EXPECT_EQ(exported.predicted.front(), std::pair(std::string("groups"), Seconds{2}));
  EXPECT_THAT(exported.text, HasSubstr("# PyTorch 2.6 and newer, 2.00 s an iteration predicted\n"));
  EXPECT_THAT(exported.text, HasSubstr("    [\"blocks.1\",\"head\"],\n]\nfor names in reversed(groups):\n"));
}

TEST(Export, Fsdp2GetsTheGroupsOfTheLeastPredictedTime) {
  const auto best_with_two = [](const Plan& of) {
    check(of, nested_profile());
    return std::optional(Seconds{1 + std::abs(2 - static_cast<double>(of.messages.size()))});
  };
  // 64, 64, 64 + 4, 64, 64 bytes from the stem on: half of 324 is reached by the third module from the end.
  const Exported exported =
      export_plan("fsdp2", nested_plan({{5}, {4}, {3}, {2}, {1}, {0}}), nested_profile(), {best_with_two});
  EXPECT_EQ(exported.settings.front().second,
            R"([["stem","blocks.0"],["blocks.0.first","blocks.1","head"]])");
  EXPECT_EQ(exported.predicted.front().second, Seconds{1});
  EXPECT_THAT(exported.not_expressed, Contains(HasSubstr("there are 2 of 128 B to 196 B")));
}

TEST(Export, Fsdp2LeavesTheModelsOwnParametersToTheLastCall) {
  Profile flat = nested_profile();
  flat.layers[0].tensors[0].name = "token";
  const Exported exported = export_plan("fsdp2", nested_plan({{5, 4}, {3, 2}, {1, 0}}), flat);
  EXPECT_EQ(exported.settings.front().second, R"([["blocks.0.first"],["blocks.1","head"]])");
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
  servers.pulls = servers.messages;
  EXPECT_THAT(gaps("byteps", servers), Contains(HasSubstr("cut otherwise than what is pushed")));
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

TEST(Export, NcclGetsTheTuningsThatWereMeasured) {
  ExportPlace place;
  const NcclTuning ring{NcclAlgorithm::kRing, NcclProtocol::kLl};
  const NcclTuning nvls{NcclAlgorithm::kNvlsTree, NcclProtocol::kSimple, 16};
  place.nccl.choices.push_back(
      {NcclCollective::kAllReduce, 4, 2, {{1_KiB, 32_KiB, ring, {}}, {1_MiB, 64_MiB, nvls, {}}}});
  const Exported exported = export_plan("nccl", plan(2), profile(), place);
  EXPECT_EQ(
      exported.settings,
      (std::vector<std::pair<std::string, std::string>>{{"COMMTUNE_NCCL_TUNING", to_text(place.nccl)}}));
  EXPECT_THAT(exported.text, HasSubstr("allreduce,1024,32768,ring,ll,-1,2,4,-1,-1\n"
                                       "allreduce,1048576,67108864,nvls_tree,simple,16,2,4,-1,-1\n"));
  EXPECT_THAT(export_plan("env", plan(2), profile(), place).text,
              HasSubstr("export COMMTUNE_NCCL_TUNING=" + to_text(place.nccl) + "\n"));
}

TEST(Export, WhatOnlyOurExecutorCanDoIsSaid) {
  Plan free = plan(1);
  free.barrier = Barrier::kPerLayer;
  // The first tensor in two halves.
  free.messages.front().pieces.front().length = Bytes{2U << 20U};
  free.messages.push_back({{{7, Bytes{2U << 20U}, Bytes{2U << 20U}}}});
  free.priority.push_back(8);
  check(free, profile());
  for (const char* target : {"ddp", "ddp-single", "deepspeed", "megatron", "horovod"}) {
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
