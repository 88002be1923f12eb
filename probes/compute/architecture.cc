#include "probes/compute/architecture.h"

#include <array>

#include "perfmodel/base/overloaded.h"

namespace commtune::compute {

namespace {

std::int64_t area(int channels, int size) { return std::int64_t{channels} * size * size; }

Activation relu(std::int64_t elements) { return {Function::kRelu, elements}; }

// --- resnet50 -------------------------------------------------------------------------------------------

class ResNet {
 public:
  ResNet() {
    convolve("conv1", {3, 64, 224, 7, 2, 3, false, false});
    normalise("bn1", 64, 112);
    last().push_back(relu(area(64, 112)));
    last().push_back(Pooling{true, 64, 112, 3, 2, 1});
    int in = 64, size = 56;
    constexpr std::array kBlocks{3, 4, 6, 3};  // of each stage: He et al., CVPR 2016, table 1, 50 layers
    for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
      const int width = 64 << stage;
      for (int block = 0; block < kBlocks[stage]; ++block) {
        const int stride = block == 0 && stage > 0 ? 2 : 1;
        add_block("layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".", in, width, size,
                  stride, block == 0);
        in = 4 * width;
        size /= stride;
      }
    }
    last().push_back(Pooling{false, in, size, size, size, 0});
    layers_.push_back({"fc", {Linear{in, 1000, 1}, Softmax{1000, 1}}});
  }

  std::vector<ComputeLayer> take() { return std::move(layers_); }

 private:
  std::vector<Work>& last() { return layers_.back().work; }
  void convolve(const std::string& name, const Convolution& shape) { layers_.push_back({name, {shape}}); }
  void normalise(const std::string& name, int channels, int size) {
    layers_.push_back({name, {BatchNorm{channels, size}}});
  }

  /// 1x1, 3x3 and 1x1, with a shortcut that is projected where the shape changes.
  void add_block(const std::string& name, int in, int width, int size, int stride, bool projected) {
    const int out = 4 * width, small = size / stride;
    convolve(name + "conv1", {in, width, size, 1, 1, 0, false, true});
    normalise(name + "bn1", width, size);
    last().push_back(relu(area(width, size)));
    convolve(name + "conv2", {width, width, size, 3, stride, 1, false, true});
    normalise(name + "bn2", width, small);
    last().push_back(relu(area(width, small)));
    convolve(name + "conv3", {width, out, small, 1, 1, 0, false, true});
    normalise(name + "bn3", out, small);
    if (projected) {
      convolve(name + "downsample.0", {in, out, size, 1, stride, 0, false, true});
      normalise(name + "downsample.1", out, small);
    }
    last().push_back(Addition{area(out, small)});
    last().push_back(relu(area(out, small)));
  }

  std::vector<ComputeLayer> layers_;
};

// --- vgg16 ----------------------------------------------------------------------------------------------

std::vector<ComputeLayer> vgg16_layers() {
  // Channels and convolutions of each stage, and below the neurons of the last layers: Simonyan and
  // Zisserman, ICLR 2015, table 1, column D.
  constexpr std::array<std::array<int, 2>, 5> kStages{{{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}};
  std::vector<ComputeLayer> layers;
  int in = 3, size = 224, index = 0;
  for (const auto& [out, count] : kStages) {
    for (int i = 0; i < count; ++i) {
      layers.push_back({"features." + std::to_string(index),
                        {Convolution{in, out, size, 3, 1, 1, true, index > 0}, relu(area(out, size))}});
      in = out;
      index += 2;  // the activation has a number too
    }
    layers.back().work.push_back(Pooling{true, out, size, 2, 2, 0});
    size /= 2;
    ++index;
  }
  constexpr int kHidden = 4096, kClasses = 1000;
  layers.push_back({"classifier.0", {Linear{in * size * size, kHidden, 1}, relu(kHidden)}});
  layers.push_back({"classifier.3", {Linear{kHidden, kHidden, 1}, relu(kHidden)}});
  layers.push_back({"classifier.6", {Linear{kHidden, kClasses, 1}, Softmax{kClasses, 1}}});
  return layers;
}

// --- bert -----------------------------------------------------------------------------------------------

struct Bert {
  int layers, width, heads;
  int rows = 64, vocabulary = 30528, positions = 512, kinds = 2;
};

std::vector<ComputeLayer> bert_layers(const Bert& bert) {
  const int width = bert.width, rows = bert.rows;
  const std::int64_t all = std::int64_t{width} * rows;
  const Linear square{width, width, rows};
  const LayerNorm norm{width, rows};
  std::vector<ComputeLayer> layers;
  const std::string embeddings = "bert.embeddings.";
  layers.push_back({embeddings + "word_embeddings", {Embedding{bert.vocabulary, width, rows}}});
  layers.push_back(
      {embeddings + "position_embeddings", {Embedding{bert.positions, width, rows}, Addition{all}}});
  layers.push_back(
      {embeddings + "token_type_embeddings", {Embedding{bert.kinds, width, rows}, Addition{all}}});
  layers.push_back({embeddings + "LayerNorm", {norm}});
  for (int i = 0; i < bert.layers; ++i) {
    const std::string name = "bert.encoder.layer." + std::to_string(i) + ".";
    layers.push_back({name + "attention.self.query", {square}});
    layers.push_back({name + "attention.self.key", {square}});
    layers.push_back({name + "attention.self.value", {square, Attention{bert.heads, rows, width}}});
    layers.push_back({name + "attention.output.dense", {square}});
    layers.push_back({name + "attention.output.LayerNorm", {Addition{all}, norm}});
    layers.push_back({name + "intermediate.dense",
                      {Linear{width, 4 * width, rows}, Activation{Function::kGelu, 4 * all}}});
    layers.push_back({name + "output.dense", {Linear{4 * width, width, rows}}});
    layers.push_back({name + "output.LayerNorm", {Addition{all}, norm}});
  }
  layers.push_back({"bert.pooler.dense", {Linear{width, width, 1}, Activation{Function::kTanh, width}}});
  layers.push_back({"cls.predictions.transform.dense", {square, Activation{Function::kGelu, all}}});
  layers.push_back({"cls.predictions.transform.LayerNorm", {norm}});
  layers.push_back(
      {"cls.predictions.decoder", {Linear{width, bert.vocabulary, rows}, Softmax{bert.vocabulary, rows}}});
  layers.push_back({"cls.seq_relationship", {Linear{width, 2, 1}, Softmax{2, 1}}});
  return layers;
}

std::string square(int size) { return std::to_string(size) + "x" + std::to_string(size); }

std::string table(int rows, int width) { return std::to_string(rows) + " x " + std::to_string(width); }

std::string name_of(Function function) {
  switch (function) {
    case Function::kRelu:
      return "relu";
    case Function::kGelu:
      return "gelu";
    case Function::kTanh:
      return "tanh";
  }
  return {};
}

}  // namespace

std::span<const std::string_view> architecture_names() {
  static constexpr std::array<std::string_view, 4> kNames{"bert_base", "bert_large", "resnet50", "vgg16"};
  return kNames;
}

std::optional<Architecture> architecture_of(std::string_view model) {
  if (model == "resnet50") {
    return Architecture{"resnet50", "He et al., CVPR 2016; torchvision's v1.5", ResNet().take()};
  }
  if (model == "vgg16") {
    return Architecture{"vgg16", "Simonyan and Zisserman, ICLR 2015, configuration D", vgg16_layers()};
  }
  const std::string bert = "Devlin et al., NAACL 2019; both pre-training heads, sequence length 64";
  if (model == "bert_base") return Architecture{"bert_base", bert, bert_layers({12, 768, 12})};
  if (model == "bert_large") return Architecture{"bert_large", bert, bert_layers({24, 1024, 16})};
  return std::nullopt;
}

double macs(const Work& work) {
  return match(
      work,
      [](const Convolution& c) {
        return static_cast<double>(area(c.out, c.out_size())) * c.in * c.kernel * c.kernel;
      },
      [](const Linear& l) { return static_cast<double>(l.in) * l.out * l.rows; },
      [](const Attention& a) { return 2.0 * a.rows * a.rows * a.width; },
      [](const BatchNorm&) { return 0.0; }, [](const LayerNorm&) { return 0.0; },
      [](const Activation&) { return 0.0; }, [](const Pooling&) { return 0.0; },
      [](const Addition&) { return 0.0; }, [](const Softmax&) { return 0.0; },
      [](const Embedding&) { return 0.0; });
}

std::string describe(const Work& work) {
  return match(
      work,
      [](const Convolution& c) {
        return "convolution " + std::to_string(c.in) + " -> " + std::to_string(c.out) + ", " +
               square(c.kernel) + ", " + square(c.size);
      },
      [](const Linear& l) {
        return "linear " + std::to_string(l.in) + " -> " + std::to_string(l.out) + ", " +
               std::to_string(l.rows) + " rows";
      },
      [](const BatchNorm& n) {
        return "batch normalisation " + std::to_string(n.channels) + ", " + square(n.size);
      },
      [](const LayerNorm& n) { return "layer normalisation " + table(n.rows, n.width); },
      [](const Activation& a) { return name_of(a.function) + " " + std::to_string(a.elements); },
      [](const Pooling& p) {
        return std::string(p.maximum ? "maximum" : "average") + " pooling " + std::to_string(p.channels) +
               ", " + square(p.size);
      },
      [](const Addition& a) { return "addition " + std::to_string(a.elements); },
      [](const Softmax& s) { return "softmax " + table(s.rows, s.width); },
      [](const Attention& a) {
        return "attention " + std::to_string(a.heads) + " heads, " + table(a.rows, a.width);
      },
      [](const Embedding& e) { return "embedding " + table(e.vocabulary, e.width); });
}

}  // namespace commtune::compute
