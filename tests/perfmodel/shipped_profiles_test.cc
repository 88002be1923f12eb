#include "perfmodel/shipped_profiles.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

namespace commtune {
namespace {

std::uint64_t parameters(const Profile& profile) {
  return profile.gradient_bytes().count / element_size(profile.type).count;
}

Bytes bytes_of(const Profile& profile, std::string_view tensor) {
  for (const Layer& layer : profile.layers) {
    for (const Tensor& t : layer.tensors) {
      if (t.name == tensor) {
        return t.bytes;
      }
    }
  }
  ADD_FAILURE() << "no tensor " << tensor;
  return {};
}

double macs(const Profile& profile) {
  double sum = 0;
  for (const Layer& layer : profile.layers) {
    sum += layer.macs_per_sample;
  }
  return sum;
}

TEST(ShippedProfiles, HaveTheNamesOfTheirModels) {
  EXPECT_THAT(shipped_profile_names(),
              testing::ElementsAre("bert_base", "bert_large", "bert_qa", "gpt2", "llama3_1b", "llama3_8b",
                                   "resnet101", "resnet50", "resnet50_v100", "vgg16", "vgg16_v100"));
  EXPECT_FALSE(shipped_profile("resnet51"));
  for (const std::string& name : shipped_profile_names()) {
    EXPECT_EQ(shipped_profile(name)->model, name);
  }
}

TEST(ShippedProfiles, NameEachTensorOnceAndSayWhereTheirTimesComeFrom) {
  for (const std::string& name : shipped_profile_names()) {
    const Profile profile = shipped_profile(name).value();
    std::set<std::string> names;
    for (const Layer& layer : profile.layers) {
      for (const Tensor& tensor : layer.tensors) {
        EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
      }
    }
    EXPECT_NE(profile.origin.source, "");
    EXPECT_NE(profile.origin.note, "");
  }
}

TEST(ShippedProfiles, ResNet50HasTorchvisionsTensors) {
  // 53 convolutions, 53 batch norms with weight and bias, one linear layer with both: 53 + 106 + 2 = 161.
  const Profile profile = shipped_profile("resnet50").value();
  EXPECT_EQ(profile.tensor_count(), 161U);
  EXPECT_EQ(parameters(profile), 25'557'032U);
  EXPECT_EQ(profile.gradient_bytes(), Bytes{102'228'128});
  EXPECT_EQ(bytes_of(profile, "conv1.weight"), Bytes{4ULL * 64 * 3 * 7 * 7});
  EXPECT_EQ(bytes_of(profile, "layer1.0.conv2.weight"), Bytes{4ULL * 64 * 64 * 9});
  EXPECT_EQ(bytes_of(profile, "layer1.0.downsample.1.bias"), Bytes{4ULL * 256});
  EXPECT_EQ(bytes_of(profile, "layer4.2.bn3.weight"), Bytes{4ULL * 2048});
  EXPECT_EQ(bytes_of(profile, "fc.weight"), Bytes{4ULL * 2048 * 1000});
  EXPECT_EQ(profile.layers.front().tensors.front().name, "conv1.weight");
  EXPECT_EQ(profile.layers.back().tensors.back().name, "fc.bias");
  EXPECT_EQ(macs(profile), 4'089'184'256);
  // 64 samples at 253.1 samples a second
  EXPECT_NEAR((profile.forward() + profile.backward()).count(), 64 / 253.1, 1e-4);
}

TEST(ShippedProfiles, Vgg16HasTorchvisionsTensors) {
  // 13 convolutions and 3 linear layers, each with weight and bias.
  const Profile profile = shipped_profile("vgg16").value();
  EXPECT_EQ(profile.tensor_count(), 32U);
  EXPECT_EQ(parameters(profile), 138'357'544U);
  EXPECT_EQ(bytes_of(profile, "features.0.weight"), Bytes{4ULL * 64 * 3 * 9});
  EXPECT_EQ(bytes_of(profile, "features.28.weight"), Bytes{4ULL * 512 * 512 * 9});
  EXPECT_EQ(bytes_of(profile, "classifier.0.weight"), Bytes{4ULL * 25'088 * 4096});
  EXPECT_EQ(bytes_of(profile, "classifier.6.bias"), Bytes{4ULL * 1000});
  EXPECT_NEAR(macs(profile), 15.47e9, 0.01e9);
}

/// Parameters of BERT for pre-training with hidden size h, l layers, vocabulary v, 512 positions, two
/// segments.
std::uint64_t bert_parameters(std::uint64_t h, std::uint64_t l, std::uint64_t v) {
  const std::uint64_t norm = 2 * h;
  const std::uint64_t embeddings = v * h + 512 * h + 2 * h + norm;
  const std::uint64_t attention = 4 * (h * h + h) + norm;
  const std::uint64_t feed_forward = (4 * h * h + 4 * h) + (4 * h * h + h) + norm;
  const std::uint64_t pooler = h * h + h;
  const std::uint64_t heads =
      (h * h + h) + norm + v + (2 * h + 2);  // transform, decoder's bias, next sentence
  return embeddings + l * (attention + feed_forward) + pooler + heads;
}

TEST(ShippedProfiles, BertHasTheTensorsOfItsArchitecture) {
  struct Size {
    const char* name;
    std::uint64_t hidden, layers, parameters;
  };
  for (const Size& size :
       {Size{"bert_base", 768, 12, 110'111'042}, Size{"bert_large", 1024, 24, 336'232'258}}) {
    const Profile profile = shipped_profile(size.name).value();
    EXPECT_EQ(parameters(profile), size.parameters);
    EXPECT_EQ(parameters(profile), bert_parameters(size.hidden, size.layers, 30'528));
    // Embeddings 5, a layer 16, pooler 2, heads 7.
    EXPECT_EQ(profile.tensor_count(), 5 + 16 * size.layers + 2 + 7);
    EXPECT_EQ(bytes_of(profile, "bert.encoder.layer.0.attention.self.query.weight"),
              Bytes{4ULL * size.hidden * size.hidden});
    EXPECT_EQ(bytes_of(profile, "cls.seq_relationship.weight"), Bytes{4ULL * 2 * size.hidden});
  }
}

TEST(ShippedProfiles, BertsTiedEmbeddingIsOneTensorNeededFirst) {
  for (const char* name : {"bert_base", "bert_large"}) {
    const Profile profile = shipped_profile(name).value();
    EXPECT_EQ(profile.layers.front().tensors.front().name, "bert.embeddings.word_embeddings.weight");
    for (const Layer& layer : profile.layers) {
      for (const Tensor& tensor : layer.tensors) {
        EXPECT_NE(tensor.name, "cls.predictions.decoder.weight");
      }
    }
  }
}

TEST(ShippedProfiles, WhoseGradientsWereTimedSayThatTheirBatchIsUnknown) {
  // Parameters of the models as PyTorch has them, and the sums of their gradients' times.
  struct Timed {
    const char* name;
    std::uint64_t parameters;
    std::size_t tensors;
    Seconds backward;
  };
  for (const Timed& timed : {Timed{"bert_qa", 108'897'794, 199, Seconds{0.066335}},
                             Timed{"gpt2", 124'439'808, 148, Seconds{0.211329}},
                             Timed{"resnet101", 44'549'160, 314, Seconds{0.120391}},
                             Timed{"resnet50_v100", 25'557'032, 161, Seconds{0.063533}},
                             Timed{"vgg16_v100", 138'357'544, 32, Seconds{0.08531}}}) {
    const Profile profile = shipped_profile(timed.name).value();
    EXPECT_EQ(profile.batch, 0);
    EXPECT_EQ(profile.origin.how, "published");
    EXPECT_EQ(parameters(profile), timed.parameters);
    EXPECT_EQ(profile.tensor_count(), timed.tensors);
    EXPECT_NEAR(profile.backward().count(), timed.backward.count(), 1e-9);
    EXPECT_NEAR(profile.forward().count(), timed.backward.count() / 2, 1e-9);
    EXPECT_EQ(profile.layers.back().backward, Seconds{0});  // its gradient is the first
  }
}

TEST(ShippedProfiles, OneModelTimedTwiceSendsTheSameTensors) {
  for (const char* name : {"resnet50", "vgg16"}) {
    std::map<std::string, Bytes> sizes[2];
    for (int i = 0; i < 2; ++i) {
      const Profile profile = shipped_profile(std::string(name) + (i == 0 ? "" : "_v100")).value();
      for (const Layer& layer : profile.layers)
        for (const Tensor& tensor : layer.tensors) sizes[i][tensor.name] = tensor.bytes;
    }
    EXPECT_EQ(sizes[0], sizes[1]);
  }
}

TEST(ShippedProfiles, LlamasHaveTheTensorsOfTheirArchitecture) {
  struct Size {
    const char* name;
    std::uint64_t hidden, inner, layers, parameters;
    bool tied;
  };
  for (const Size& size : {Size{"llama3_1b", 2048, 8192, 16, 1'235'814'400, true},
                           Size{"llama3_8b", 4096, 14'336, 32, 8'030'261'248, false}}) {
    const Profile profile = shipped_profile(size.name).value();
    EXPECT_EQ(profile.type, DataType::kBfloat16);
    EXPECT_EQ(profile.origin.how, "derived");
    EXPECT_EQ(parameters(profile), size.parameters);
    EXPECT_EQ(profile.tensor_count(), 9 * size.layers + (size.tied ? 2 : 3));
    // Queries and output, keys and values of a quarter, three of the inner size; a token's attention over
    // half of the sequence, for scores and for values. The head at the end.
    const double tokens = 8192, h = static_cast<double>(size.hidden), inner = static_cast<double>(size.inner);
    const double layer = 2 * h * h + 2 * h * h / 4 + 3 * h * inner + tokens * h;
    EXPECT_NEAR(macs(profile) / (tokens * (static_cast<double>(size.layers) * layer + 128'256 * h)), 1,
                1e-12);
    EXPECT_NEAR(profile.forward().count(), 2 * macs(profile) / (0.4 * 989e12), 1e-6);
    EXPECT_NEAR(profile.backward() / profile.forward(), 2, 1e-6);
    EXPECT_NEAR(profile.update().count(), 28 * static_cast<double>(size.parameters) / 3.35e12, 1e-6);
  }
}

}  // namespace
}  // namespace commtune
