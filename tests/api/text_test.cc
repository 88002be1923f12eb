#include "api/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace commtune::api {
namespace {

TEST(EditDistance, CountsTheFewestChanges) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);     // s for k, i for e, g at the end
  EXPECT_EQ(edit_distance("resent50", "resnet50"), 1);  // e and n swapped
}

TEST(DidYouMean, FindsTheNearestWord) {
  const std::vector<std::string> known{"bert_base", "bert_large", "resnet50", "vgg16"};
  EXPECT_EQ(did_you_mean("resnet5", known), " (did you mean \"resnet50\"?)");
  EXPECT_EQ(did_you_mean("ResNet-50", known), " (did you mean \"resnet50\"?)");
  EXPECT_EQ(did_you_mean("bert-lagre", known), " (did you mean \"bert_large\"?)");
}

TEST(DidYouMean, TakesABeginningForTheWord) {
  const std::vector<std::string> known{"ddp-25mib", "bsp-ps"};
  EXPECT_EQ(did_you_mean("ddp-25", known), " (did you mean \"ddp-25mib\"?)");
}

TEST(DidYouMean, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> known{"bert_base", "resnet50"};
  EXPECT_EQ(did_you_mean("alexnet", known), "");
  EXPECT_EQ(did_you_mean("x", std::vector<std::string>{}), "");
}

TEST(Columns, CountsCodePointsNotBytes) {
  EXPECT_EQ(columns("311 µs"), 6U);
  EXPECT_EQ(columns(""), 0U);
}

}  // namespace
}  // namespace commtune::api
