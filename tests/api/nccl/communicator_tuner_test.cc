#include "api/nccl/communicator_tuner.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace commtune::nccl_tuner {
namespace {

using ::testing::HasSubstr;
using Costs = std::array<float, std::size_t{kAlgorithms} * kProtocols>;

constexpr int kTree = 0, kRing = 1, kLl = 0, kSimple = 2;  // NCCL's numbers

std::size_t at(int algorithm, int protocol) {
  return static_cast<std::size_t>(algorithm) * kProtocols + static_cast<std::size_t>(protocol);
}

/// Rings with LL up to 32 KiB, then trees with 8 channels up to 1 MiB, for 4 ranks on 2 hosts.
std::string table() {
  const NcclTuning ring{NcclAlgorithm::kRing, NcclProtocol::kLl};
  const NcclTuning tree{NcclAlgorithm::kTree, NcclProtocol::kSimple, 8};
  NcclTuningTable table;
  table.choices.push_back(
      {NcclCollective::kAllReduce,
       4,
       2,
       {{1_KiB, 32_KiB, ring, Seconds{20e-6}}, {Bytes{32769}, 1_MiB, tree, Seconds{1e-3}}}});
  return to_text(table);
}

/// The entry that is the least after the tuner was asked; -1: all are as they were.
int chosen(const CommunicatorTuner& tuner, std::size_t bytes, int& channels, int function = kAllReduce,
           int piped = 1, float ring_ll = 50) {
  Costs costs{};
  costs.fill(100);
  costs[at(kRing, kLl)] = ring_ll;
  const Costs before = costs;
  tuner.choose(function, bytes, piped, costs.data(), kAlgorithms, kProtocols, &channels);
  if (costs == before) return -1;
  return static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin());
}

TEST(CommunicatorTuner, MakesTheTablesTuningTheCheapest) {
  const CommunicatorTuner tuner(table(), 4, 2);
  EXPECT_EQ(tuner.problem(), "");
  int channels = 3;
  EXPECT_EQ(chosen(tuner, 4096, channels), static_cast<int>(at(kRing, kLl)));
  EXPECT_EQ(channels, 3) << "NCCL's own number";
  EXPECT_EQ(chosen(tuner, 65536, channels), static_cast<int>(at(kTree, kSimple)));
  EXPECT_EQ(channels, 8);
}

TEST(CommunicatorTuner, LeavesTheRestToNccl) {
  const CommunicatorTuner tuner(table(), 4, 2);
  int channels = 0;
  EXPECT_EQ(chosen(tuner, 1023, channels), -1) << "smaller than measured";
  EXPECT_EQ(chosen(tuner, (1 << 20) + 1, channels), -1) << "larger than measured";
  EXPECT_EQ(chosen(tuner, 4096, channels, kAllGather), -1) << "another collective";
  EXPECT_EQ(chosen(tuner, 4096, channels, kBroadcast), -1);
  EXPECT_EQ(chosen(tuner, 4096, channels, kAllReduce, 2), -1) << "several at once";
  EXPECT_EQ(chosen(tuner, 4096, channels, kAllReduce, 1, kIgnored), -1) << "NCCL has ruled it out";
  EXPECT_EQ(chosen(CommunicatorTuner(table(), 4, 1), 4096, channels), -1) << "other hosts";
  EXPECT_EQ(chosen(CommunicatorTuner(table(), 8, 2), 4096, channels), -1) << "other ranks";
  Costs costs{};
  tuner.choose(kAllReduce, 65536, 1, costs.data(), 0, kProtocols, &channels);
  EXPECT_EQ(costs, Costs{}) << "an NCCL with fewer algorithms";
  EXPECT_EQ(channels, 0);
}

TEST(CommunicatorTuner, SaysWhatIsWrongWithItsTableAndLeavesAllToNccl) {
  const std::string cut_off = table().substr(0, 50);
  const CommunicatorTuner tuner(cut_off, 4, 2);
  EXPECT_THAT(tuner.problem(), HasSubstr("COMMTUNE_NCCL_TUNING: NCCL tuning"));
  EXPECT_THAT(tuner.summary(), HasSubstr("NCCL's own choice stands"));
  int channels = 0;
  EXPECT_EQ(chosen(tuner, 4096, channels), -1);
  EXPECT_EQ(CommunicatorTuner("", 4, 2).problem(), "");
}

int g_warnings = 0;
void count_warnings(int level, unsigned long /*about*/, const char* /*file*/, int /*line*/,
                    const char* /*format*/, ...) {
  g_warnings += level == kLogWarning ? 1 : 0;
}

/// What NCCL loads, by the interface that it knows.
class Plugin : public ::testing::Test {
 protected:
  void SetUp() override { setenv(kTableVariable, table().c_str(), 1); }
  void TearDown() override { unsetenv(kTableVariable); }
  template <typename Tuner>
  const Tuner& tuner(const char* name) {
    void* const library = dlopen(COMMTUNE_TUNER_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return *static_cast<const Tuner*>(dlsym(library, name));
  }
  static void expect_ring(TuningFunction get_tuning, void* context) {
    Costs costs{};
    costs.fill(100);
    int channels = 0;
    EXPECT_EQ(get_tuning(context, kAllReduce, 4096, 1, reinterpret_cast<float**>(costs.data()), kAlgorithms,
                         kProtocols, 0, &channels),
              kSuccess);
    EXPECT_EQ(costs[at(kRing, kLl)], 0);
  }
};

TEST_F(Plugin, AnswersInVersion4) {
  const auto& plugin = tuner<TunerV4>("ncclTunerPlugin_v4");
  void* context = nullptr;
  ASSERT_EQ(plugin.init(4, 2, nullptr, &context), kSuccess);
  expect_ring(plugin.get_tuning, context);
  EXPECT_EQ(plugin.close(context), kSuccess);
}

TEST_F(Plugin, AnswersInVersions5To7) {
  for (const char* const name : {"ncclTunerPlugin_v5", "ncclTunerPlugin_v6", "ncclTunerPlugin_v7"}) {
    const auto& plugin = tuner<TunerV5>(name);  // which the others begin with
    void* context = nullptr;
    std::array<double, 200> constants{};
    constants.fill(7);
    const auto before = constants;
    NvlinkDomains domains{};
    ASSERT_EQ(plugin.init(&context, 1, 4, 2, nullptr, &domains, constants.data()), kSuccess);
    EXPECT_EQ(constants, before) << "NCCL's own choice elsewhere";
    expect_ring(plugin.get_tuning, context);
    EXPECT_EQ(plugin.close(context), kSuccess);
  }
  EXPECT_EQ(tuner<TunerV6>("ncclTunerPlugin_v6").get_chunk, nullptr);
}

TEST_F(Plugin, FailsNoCommunicatorForABadTable) {
  setenv(kTableVariable, "nonsense", 1);
  const auto& plugin = tuner<TunerV5>("ncclTunerPlugin_v5");
  void* context = nullptr;
  g_warnings = 0;
  EXPECT_EQ(plugin.init(&context, 1, 4, 2, count_warnings, nullptr, nullptr), kSuccess);
  EXPECT_EQ(g_warnings, 1);
  int channels = 0;
  EXPECT_EQ(plugin.get_tuning(context, kAllReduce, 4096, 1, nullptr, 0, 0, 0, &channels), kSuccess);
  EXPECT_EQ(plugin.close(context), kSuccess);
  EXPECT_EQ(plugin.get_tuning(nullptr, kAllReduce, 4096, 1, nullptr, 0, 0, 0, &channels), kSuccess);
}

}  // namespace
}  // namespace commtune::nccl_tuner
