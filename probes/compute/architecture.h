#pragma once
// The shapes of a model's layers: what has to be computed, without a framework and without weights.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace commtune::compute {

/// Square images and kernels. Sizes are of one sample.
struct Convolution {
  int in = 0, out = 0;  ///< channels
  int size = 0;         ///< of the input, in pixels a side
  int kernel = 1, stride = 1, padding = 0;
  bool bias = false;
  bool input_gradient = true;  ///< false for the layer that sees the data
  int out_size() const { return (size + 2 * padding - kernel) / stride + 1; }
  bool operator==(const Convolution&) const = default;
};
struct Linear {
  int in = 0, out = 0;
  int rows = 1;  ///< of a sample: positions of a sequence
  bool operator==(const Linear&) const = default;
};
struct BatchNorm {
  int channels = 0, size = 0;
  bool operator==(const BatchNorm&) const = default;
};
struct LayerNorm {
  int width = 0, rows = 1;
  bool operator==(const LayerNorm&) const = default;
};
enum class Function { kRelu, kGelu, kTanh };
struct Activation {
  Function function = Function::kRelu;
  std::int64_t elements = 0;
  bool operator==(const Activation&) const = default;
};
struct Pooling {
  bool maximum = true;  ///< false: average
  int channels = 0, size = 0, kernel = 2, stride = 2, padding = 0;
  int out_size() const { return (size + 2 * padding - kernel) / stride + 1; }
  bool operator==(const Pooling&) const = default;
};
struct Addition {
  std::int64_t elements = 0;  ///< a residual connection
  bool operator==(const Addition&) const = default;
};
struct Softmax {
  int width = 0, rows = 1;
  bool operator==(const Softmax&) const = default;
};
/// softmax(Q K^T) V over all heads, without the projections.
struct Attention {
  int heads = 1, rows = 1, width = 0;  ///< width of all heads together
  bool operator==(const Attention&) const = default;
};
/// Rows of a table are picked; the gradient is the whole table, as frameworks send it.
struct Embedding {
  int vocabulary = 0, width = 0, rows = 1;
  bool operator==(const Embedding&) const = default;
};

using Work = std::variant<Convolution, Linear, BatchNorm, LayerNorm, Activation, Pooling, Addition, Softmax,
                          Attention, Embedding>;

/// One layer of a profile: what has parameters, and what follows it that has none.
struct ComputeLayer {
  std::string name;
  std::vector<Work> work;
};

struct Architecture {
  std::string model;
  std::string source;  ///< of the shapes
  std::vector<ComputeLayer> layers;
};

/// "resnet50" (v1.5: He et al. 2016, stride in the 3x3 convolution), "vgg16" (Simonyan and Zisserman 2015),
/// "bert_base" and "bert_large" (Devlin et al. 2019, both pre-training heads, sequences of 64). Layers and
/// their order are those of the shipped profiles. Nothing for other names.
std::optional<Architecture> architecture_of(std::string_view model);
/// Those names, sorted.
std::span<const std::string_view> architecture_names();

/// Multiply-adds of the forward pass for one sample; 0 for what has no products.
double macs(const Work& work);

std::string describe(const Work& work);  ///< "convolution 64 -> 64, 3x3, 56x56"

}  // namespace commtune::compute
