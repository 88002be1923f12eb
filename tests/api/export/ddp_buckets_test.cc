#include "api/export/ddp_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "perfmodel/base/random.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/perfmodel/synthetic_profile.h"
#include "tuner/messages.h"

namespace commtune::api {
namespace {

using testing::ElementsAre;

/// As DDP does: caps one after the other, the last one for all that follow, and sizes times 2^20 without a
/// fraction.
BucketGroups as_ddp_does(const std::vector<std::uint64_t>& sizes, const std::vector<std::string>& caps) {
  BucketGroups groups;
  std::uint64_t filled = 0;
  std::size_t next = 0, tensors = 0;
  for (const std::uint64_t size : sizes) {
    ++tensors;
    filled += size;
    if (filled < static_cast<std::uint64_t>(std::strtod(caps[next].c_str(), nullptr) * 1048576)) continue;
    groups.push_back(tensors);
    tensors = filled = 0;
    next = std::min(next + 1, caps.size() - 1);
  }
  if (tensors > 0) groups.push_back(tensors);
  return groups;
}

std::vector<std::uint64_t> sizes_as_they_appear(const Profile& profile) {
  std::vector<std::uint64_t> sizes;
  for (const TensorRef& tensor : tensors_of(profile)) sizes.push_back(tensor.bytes.count);
  std::ranges::reverse(sizes);
  return sizes;
}

/// Groups of 1 to 9 tensors.
BucketGroups random_groups(std::size_t tensors, Random& random) {
  BucketGroups groups;
  while (tensors > 0) {
    groups.push_back(std::min<std::size_t>(tensors, 1 + random.below(9)));
    tensors -= groups.back();
  }
  return groups;
}

TEST(DdpBuckets, CapsOfAnyGroupsOfARealModelMakeThem) {
  const Profile profile = *shipped_profile("resnet50");
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const BucketGroups groups = random_groups(profile.tensor_count(), random);
    const std::vector<std::string> caps = cap_list(profile, groups);
    EXPECT_EQ(as_ddp_does(sizes_as_they_appear(profile), caps), groups);
  }
}

TEST(DdpBuckets, CapsHoldInWhateverOrderAGroupsGradientsAppear) {
  const Profile profile = *shipped_profile("bert_base");
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const BucketGroups groups = random_groups(profile.tensor_count(), random);
    std::vector<std::uint64_t> sizes = sizes_as_they_appear(profile);
    std::size_t first = 0;
    for (const std::size_t group : groups) {
      std::rotate(sizes.begin() + static_cast<std::ptrdiff_t>(first),
                  sizes.begin() + static_cast<std::ptrdiff_t>(first + random.below(group)),
                  sizes.begin() + static_cast<std::ptrdiff_t>(first + group));
      first += group;
    }
    EXPECT_EQ(as_ddp_does(sizes, cap_list(profile, groups)), groups);
  }
}

TEST(DdpBuckets, OneCapMakesTheGroupsThatItWasChosenFor) {
  const Profile profile = *shipped_profile("resnet50");
  for (std::uint64_t cap = 1; cap < 200'000'000; cap += 1 + cap / 7) {
    const BucketGroups groups = groups_by_cap(profile, Bytes{cap}, Bytes{cap});
    const std::string text = one_cap(profile, groups, Bytes{cap});
    EXPECT_EQ(as_ddp_does(sizes_as_they_appear(profile), {text}), groups) << cap << " B: " << text;
  }
}

TEST(DdpBuckets, FewDecimalsWhereTheyDo) {
  const Profile equal = synthetic_profile(4, Bytes{4U << 20U}, Seconds{1}, Seconds{1});
  EXPECT_THAT(cap_list(equal, {1, 3}), ElementsAre("4", "12"));
  const Profile small = synthetic_profile(4, Bytes{40'000}, Seconds{1}, Seconds{1});
  EXPECT_THAT(cap_list(small, {1, 3}), ElementsAre("0.03", "1"));
}

TEST(DdpBuckets, AFirstCapOfItsOwn) {
  const Profile equal = synthetic_profile(8, Bytes{1U << 20U}, Seconds{1}, Seconds{1});
  EXPECT_THAT(groups_by_cap(equal, Bytes{1U << 20U}, Bytes{3U << 20U}), ElementsAre(1, 3, 3, 1));
}

TEST(DdpBuckets, DeepSpeedClosesABucketBeforeTheGradientThatWouldNotFit) {
  Profile uneven = synthetic_profile(6, Bytes{4}, Seconds{1}, Seconds{1});
  // As they appear: 8, 4, 4, 40, 4, 4 bytes.
  uneven.layers[5].tensors[0].bytes = 8_B;
  uneven.layers[2].tensors[0].bytes = 40_B;
  EXPECT_THAT(groups_within(uneven, 12_B), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(groups_within(uneven, 16_B), ElementsAre(3, 1, 2));
  EXPECT_THAT(groups_within(uneven, 64_B), ElementsAre(6));
  EXPECT_THAT(groups_within(uneven, 0_B), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(DdpBuckets, OnlyRunsOfWholeTensorsAreBuckets) {
  const Profile profile = synthetic_profile(4, Bytes{64}, Seconds{1}, Seconds{1});
  Plan plan;
  plan.messages = tuner::fused_messages(profile, std::vector<std::size_t>{1, 3});
  EXPECT_EQ(consecutive_groups(plan, profile), (BucketGroups{1, 3}));
  EXPECT_TRUE(in_order_of_gradients(plan));
  std::ranges::reverse(plan.messages);
  EXPECT_EQ(consecutive_groups(plan, profile), (BucketGroups{1, 3}));
  EXPECT_FALSE(in_order_of_gradients(plan));
  Plan apart = plan;
  apart.messages = {{{{3, Bytes{0}, Bytes{64}}, {1, Bytes{0}, Bytes{64}}}},
                    {{{2, Bytes{0}, Bytes{64}}, {0, Bytes{0}, Bytes{64}}}}};
  EXPECT_EQ(consecutive_groups(apart, profile), std::nullopt);
  Plan cut = plan;
  cut.messages = tuner::cut_messages(plan.messages, Bytes{32}, Bytes{4});
  EXPECT_EQ(consecutive_groups(cut, profile), std::nullopt);
}

TEST(DdpBuckets, ABucketThatEndsInsideALayerGoesOnToItsEnd) {
  const Profile two = synthetic_profile(3, Bytes{64}, Seconds{1}, Seconds{1}, 2);
  EXPECT_THAT(with_whole_layers(two, {2, 4}), ElementsAre(2, 4));
  EXPECT_THAT(with_whole_layers(two, {1, 5}), ElementsAre(2, 4));
  EXPECT_THAT(with_whole_layers(two, {1, 1, 4}), ElementsAre(2, 4));
  EXPECT_THAT(with_whole_layers(two, {3, 1, 2}), ElementsAre(4, 2));
  EXPECT_THAT(with_whole_layers(two, {1, 4, 1}), ElementsAre(2, 4));
  EXPECT_THAT(with_whole_layers(two, {6}), ElementsAre(6));
}

TEST(DdpBuckets, BucketsOfWholeLayersHoldInWhateverOrderALayersGradientsAppear) {
  const Profile profile = *shipped_profile("bert_base");
  const std::vector<TensorRef> tensors = tensors_of(profile);
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const BucketGroups groups = with_whole_layers(profile, random_groups(tensors.size(), random));
    std::vector<std::uint64_t> sizes;
    for (std::size_t end = tensors.size(); end > 0;) {
      std::size_t first = end;
      while (first > 0 && tensors[first - 1].layer == tensors[end - 1].layer) --first;
      const std::size_t turned = first + random.below(end - first);
      for (std::size_t at = turned; at < end; ++at) sizes.push_back(tensors[at].bytes.count);
      for (std::size_t at = first; at < turned; ++at) sizes.push_back(tensors[at].bytes.count);
      end = first;
    }
    EXPECT_EQ(as_ddp_does(sizes, cap_list(profile, groups)), groups);
  }
}

}  // namespace
}  // namespace commtune::api
