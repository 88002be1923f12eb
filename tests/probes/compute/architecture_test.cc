#include "probes/compute/architecture.h"

#include <gtest/gtest.h>

#include "perfmodel/shipped_profiles.h"

namespace commtune::compute {
namespace {

class Shapes : public testing::TestWithParam<std::string> {
 protected:
  const Architecture architecture_ = architecture_of(GetParam()).value();
  const Profile profile_ = shipped_profile(GetParam()).value();
};

TEST_P(Shapes, HaveTheLayersOfTheShippedProfile) {
  ASSERT_EQ(architecture_.layers.size(), profile_.layers.size());
  for (std::size_t i = 0; i < profile_.layers.size(); ++i) {
    EXPECT_EQ(architecture_.layers[i].name, profile_.layers[i].name) << i;
  }
}

/// The profile's came from elsewhere (its attention's are spread over query, key and value: only sums agree).
TEST_P(Shapes, HaveTheProductsOfTheShippedProfile) {
  double ours = 0, theirs = 0;
  for (const ComputeLayer& layer : architecture_.layers) {
    for (const Work& work : layer.work) ours += macs(work);
  }
  for (const Layer& layer : profile_.layers) theirs += layer.macs_per_sample;
  EXPECT_NEAR(ours / theirs, 1, 1e-6);
}

std::int64_t weights(const Work& work) {
  if (const auto* c = std::get_if<Convolution>(&work))
    return std::int64_t{c->in} * c->out * c->kernel * c->kernel;
  if (const auto* l = std::get_if<Linear>(&work)) return std::int64_t{l->in} * l->out;
  if (const auto* n = std::get_if<BatchNorm>(&work)) return n->channels;
  if (const auto* n = std::get_if<LayerNorm>(&work)) return n->width;
  if (const auto* e = std::get_if<Embedding>(&work)) return std::int64_t{e->vocabulary} * e->width;
  return 0;
}

TEST_P(Shapes, HaveWeightsOfTheTensorsSizes) {
  for (std::size_t i = 0; i < profile_.layers.size(); ++i) {
    const Layer& layer = profile_.layers[i];
    if (layer.name == "cls.predictions.decoder") continue;  // its weight is the word embedding's
    std::int64_t elements = 0;
    for (const Work& work : architecture_.layers[i].work) elements += weights(work);
    EXPECT_EQ(elements * 4, static_cast<std::int64_t>(layer.tensors.front().bytes.count)) << layer.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, Shapes, testing::Values("resnet50", "vgg16", "bert_base", "bert_large"));

TEST(ArchitectureOf, IsThereForEachOfItsNames) {
  for (const std::string_view name : architecture_names())
    EXPECT_EQ(architecture_of(name).value().model, name);
}

TEST(ArchitectureOf, IsNothingForOtherNames) { EXPECT_FALSE(architecture_of("resnet5").has_value()); }

TEST(Macs, AreOutputsTimesInputsOfEach) {
  // 2 outputs of 2 x 2 (4 pixels, 2 x 2 kernel, stride 2), each from 3 channels of 4 pixels: 8 * 12 = 96.
  EXPECT_EQ(macs(Convolution{3, 2, 4, 2, 2, 0}), 96);
  EXPECT_EQ(macs(Linear{3, 2, 5}), 30);
  // Q K^T: 4 * 4 products of 8 in all heads, and as many with V.
  EXPECT_EQ(macs(Attention{2, 4, 8}), 256);
  EXPECT_EQ(macs(BatchNorm{8, 8}), 0);
}

}  // namespace
}  // namespace commtune::compute
