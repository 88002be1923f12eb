#include "perfmodel/nccl/tuning_table.h"

#include <gmock/gmock.h>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/error.h"
#include "perfmodel/nccl/tuning.h"
#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::HasSubstr;

constexpr NcclTuning kRingLl{NcclAlgorithm::kRing, NcclProtocol::kLl};
constexpr NcclTuning kTreeSimple{NcclAlgorithm::kTree, NcclProtocol::kSimple, 8};

NcclTuningTable two_choices() {
  NcclTuningTable table;
  table.choices.push_back(
      {NcclCollective::kAllReduce,
       4,
       2,
       {{1_KiB, Bytes{32767}, kRingLl, Seconds{21.4e-6}}, {32_KiB, 64_MiB, kTreeSimple, Seconds{9e-3}}}});
  table.choices.push_back({NcclCollective::kAllGather, 2, 1, {}});
  return table;
}

/// As to_text() ends a text.
std::string with_digest(const std::string& text) { return text + ":" + Digest().add(text).hex(); }

std::string why_refused(const std::string& text) {
  return bad_input([&] { nccl_tuning_table_from_text(text); });
}

TEST(NcclTuning, IsNamedAsNcclsVariablesNameIt) {
  EXPECT_EQ(to_string(kRingLl), "Ring+LL");
  EXPECT_EQ(to_string(kTreeSimple), "Tree+Simple+8");
  EXPECT_EQ(to_string(NcclTuning{}), "");
  for (const auto& [algorithm_name, algorithm] : kNcclAlgorithms) {
    for (const auto& [protocol_name, protocol] : kNcclProtocols) {
      for (const std::uint32_t channels : {0U, 1U, kMostNcclChannels}) {
        const NcclTuning tuning{algorithm, protocol, channels};
        EXPECT_EQ(nccl_tuning_named(to_string(tuning)), tuning);
      }
    }
  }
  EXPECT_TRUE(nccl_tuning_named("")->is_own_choice());
  for (const char* wrong : {"Ring", "ring+ll", "Ring+", "Ring+LL+", "Ring+LL+0", "Ring+LL+65", "Ring+LL+8+8",
                            "Ring+LL+ 8", "Ring+LL+08", "+LL", "Ring LL"})
    EXPECT_FALSE(nccl_tuning_named(wrong)) << wrong;
}

TEST(NcclTuningTable, ComesBackFromItsText) {
  const NcclTuningTable table = two_choices();
  const std::string text = to_text(table);
  EXPECT_THAT(text,
              HasSubstr("nccl-tuning-1:AllReduce/4/2/1024-32767=Ring+LL@21400/32768-67108864=Tree+Simple+8@"
                        "9000000:AllGather/2/1:"));
  const NcclTuningTable back = nccl_tuning_table_from_text(text);
  EXPECT_EQ(to_text(back), text);
  ASSERT_EQ(back.choices.size(), 2U);
  EXPECT_EQ(back.choices[0].ranges[1].tuning, kTreeSimple);
  EXPECT_EQ(nccl_tuning_table_from_text(to_text({})), NcclTuningTable{});
  // A shell, Slurm's --export and a file of variables take it as it is.
  EXPECT_EQ(text.find_first_of(" ,;'\"$&|<>\\"), std::string::npos);
}

TEST(NcclTuningTable, FindsASizesRange) {
  const NcclTuningTable table = two_choices();
  EXPECT_EQ(table.find(NcclCollective::kAllReduce, 4, 1), nullptr);
  EXPECT_EQ(table.find(NcclCollective::kReduceScatter, 4, 2), nullptr);
  const NcclChoices& choices = *table.find(NcclCollective::kAllReduce, 4, 2);
  EXPECT_EQ(range_of(choices, Bytes{1023}), nullptr);
  EXPECT_EQ(range_of(choices, Bytes{32767})->tuning, kRingLl);
  EXPECT_EQ(range_of(choices, 32_KiB)->tuning, kTreeSimple);
  EXPECT_EQ(range_of(choices, Bytes{(64 << 20) + 1}), nullptr);
}

TEST(NcclTuningTable, RefusesWhatWasCutOffOrChanged) {
  const std::string text = to_text(two_choices());
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_THAT(why_refused(text.substr(0, length)), HasSubstr("cut off or changed")) << length;
  std::string changed = text;
  changed[changed.find("32768")] = '4';
  EXPECT_THAT(why_refused(changed), HasSubstr("cut off or changed"));
}

TEST(NcclTuningTable, NamesWhatIsWrong) {
  const auto refused = [](const std::string& text) { return why_refused(with_digest(text)); };
  EXPECT_THAT(refused("nccl-tuning-2"), HasSubstr("nccl-tuning-1 first"));
  EXPECT_THAT(refused("nccl-tuning-1:Broadcast/2/1"), HasSubstr("AllReduce, ReduceScatter or AllGather"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2"), HasSubstr("a collective, ranks and nodes"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/3"), HasSubstr("from 1 to 2"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/1/4-8=Ring+LL"), HasSubstr("'@' and nanoseconds"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/1/Ring+LL@5"), HasSubstr("sizes, '=' and a tuning"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/1/4=Ring+LL@5"), HasSubstr("two sizes"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/1/4-8=Star+LL@5"), HasSubstr("of Tree, Ring"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/1/8-4=Ring+LL@5"), HasSubstr("from 8 to"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/1/4-8=Ring+LL@5/8-9=Ring+LL@5"), HasSubstr("from 9 to"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/1:AllReduce/2/1"), HasSubstr("once"));
  EXPECT_THAT(refused("nccl-tuning-1:AllReduce/2/1/" + std::string(70'000, '4')), HasSubstr("at most"));
}

}  // namespace
}  // namespace commtune
