#include "probes/compute/cuda/layer_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "perfmodel/base/overloaded.h"

namespace commtune::compute {
namespace {

/// Elements that a work reads and writes, of one sample.
struct Elements {
  std::int64_t in = 0, out = 0;
};

Elements elements_of(const Work& work) {
  const auto image = [](int channels, int size) { return std::int64_t{channels} * size * size; };
  const auto table = [](int rows, int width) { return std::int64_t{rows} * width; };
  return match(
      work,
      [&](const Convolution& c) {
        return Elements{image(c.in, c.size), image(c.out, c.out_size())};
      },
      [&](const Linear& l) {
        return Elements{table(l.rows, l.in), table(l.rows, l.out)};
      },
      [&](const BatchNorm& n) {
        return Elements{image(n.channels, n.size), image(n.channels, n.size)};
      },
      [&](const LayerNorm& n) {
        return Elements{table(n.rows, n.width), table(n.rows, n.width)};
      },
      [&](const Activation& a) {
        return Elements{a.elements, a.elements};
      },
      [&](const Pooling& p) {
        return Elements{image(p.channels, p.size), image(p.channels, p.out_size())};
      },
      [&](const Addition& a) {
        return Elements{a.elements, a.elements};
      },
      [&](const Softmax& s) {
        return Elements{table(s.rows, s.width), table(s.rows, s.width)};
      },
      [&](const Attention& a) {
        return Elements{3 * table(a.rows, a.width), table(a.rows, a.width)};
      },
      [&](const Embedding& e) {
        return Elements{0, table(e.rows, e.width)};
      });
}

constexpr std::uint32_t kBlock = 256;
constexpr std::int64_t kTileColumns = 32, kTileRows = 64;  // as in kernels/profile.cu

std::uint32_t tiles_of(std::int64_t rows, std::int64_t columns) {
  const auto up = [](std::int64_t count, std::int64_t part) { return (count + part - 1) / part; };
  return static_cast<std::uint32_t>(up(columns, kTileColumns) * up(rows, kTileRows));
}

std::uint64_t number(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// So wide that a product of `inner` values of about 1 with such weights is about 1 too.
float spread_for(std::int64_t inner) { return std::sqrt(3.0F / static_cast<float>(inner)); }

/// A layer's parameters as its update sees them: float32, one behind the other.
class Parameters {
 public:
  Parameters(GpuMath& math, std::int64_t elements) : math_(math), elements_(elements) {
    constexpr std::int64_t kSlack = 16 * kAlign;  // of a layer's tensors, each may begin at a boundary
    const auto bytes = static_cast<std::size_t>(elements_ + kSlack) * sizeof(float);
    if (elements_ == 0) return;
    for (DevicePointer* block : {&values_, &gradient_}) {
      *block = math_.allocate(bytes);
      math_.fill(*block, elements_ + kSlack, true, 0, 0);
    }
  }

  struct Taken {
    DevicePointer values = 0, gradient = 0;
  };
  /// What does not fit, such as weights that another layer owns, gets memory of its own.
  Taken take(std::int64_t count, float middle, float spread) {
    Taken taken;
    if (taken_ + count <= elements_ + 15 * kAlign && count <= elements_) {
      taken = {values_ + number(taken_) * sizeof(float), gradient_ + number(taken_) * sizeof(float)};
      taken_ += (count + kAlign - 1) / kAlign * kAlign;
    } else {
      const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
      taken = {math_.allocate(bytes), math_.allocate(bytes)};
    }
    math_.fill(taken.values, count, true, middle, spread);
    math_.fill(taken.gradient, count, true, 0, spread);
    return taken;
  }

  std::vector<Step> update(Optimizer optimizer) const {
    if (elements_ == 0) return {};
    const auto state = [&] {
      const DevicePointer data = math_.allocate(static_cast<std::size_t>(elements_) * sizeof(float));
      math_.fill(data, elements_, true, 0, 0);
      return data;
    };
    KernelCall call;
    call.grid = blocks_for(elements_, kBlock);
    call.arguments = {values_, gradient_, state()};
    if (optimizer == Optimizer::kAdam) call.arguments.push_back(state());
    call.name = optimizer == Optimizer::kAdam ? "commtune_profile_adam" : "commtune_profile_momentum";
    call.arguments.push_back(number(elements_));
    call.arguments.push_back(argument_of(0));
    return {math_.kernel(call)};
  }

 private:
  static constexpr std::int64_t kAlign = 64;  // elements: 256 bytes
  GpuMath& math_;
  const std::int64_t elements_;
  DevicePointer values_ = 0, gradient_ = 0;
  std::int64_t taken_ = 0;
};

/// Makes the steps of one work after the other.
class Builder {
 public:
  Builder(GpuMath& math, const Architecture& architecture, int batch, Precision precision)
      : math_(math), batch_(batch), precision_(precision) {
    std::int64_t most = 0;
    for (const ComputeLayer& layer : architecture.layers) {
      for (const Work& work : layer.work) {
        most = std::max({most, elements_of(work).in, elements_of(work).out});
        ++left_;
      }
    }
    for (DevicePointer& buffer : gradients_) buffer = filled(most, 1);
  }

  LayerSteps layer(const ComputeLayer& layer, std::int64_t parameters, Optimizer optimizer) {
    Parameters own(math_, parameters);
    parameters_ = &own;
    steps_ = {};
    std::vector<std::vector<Step>> backward;
    backward.reserve(layer.work.size());
    for (const Work& work : layer.work) {
      backward_.clear();
      place(work);
      std::visit([&](const auto& shape) { add(shape); }, work);
      previous_ = data_.output;
      previous_elements_ = elements_of(work).out;
      backward.push_back(std::move(backward_));
    }
    for (auto steps = backward.rbegin(); steps != backward.rend(); ++steps)
      std::move(steps->begin(), steps->end(), std::back_inserter(steps_.backward));
    steps_.update = own.update(optimizer);
    parameters_ = nullptr;
    return std::move(steps_);
  }

 private:
  DevicePointer filled(std::int64_t elements_of_sample, float spread) {
    const std::int64_t elements = elements_of_sample * batch_;
    const DevicePointer data = math_.allocate(static_cast<std::size_t>(elements) * math_.element_bytes());
    math_.fill(data, elements, is_float(), 0, spread);
    return data;
  }
  bool is_float() const { return precision_ != Precision::kBf16; }
  std::string typed(const std::string& name) const {
    return "commtune_profile_" + name + (is_float() ? "_fp32" : "_bf16");
  }
  void forward(Step step) { steps_.forward.push_back(std::move(step)); }
  void backward(Step step) { backward_.push_back(std::move(step)); }
  void both(StepPair steps) {
    forward(std::move(steps.forward));
    backward(std::move(steps.backward));
  }
  Step kernel(std::string name, std::uint32_t grid, std::vector<std::uint64_t> arguments) {
    return math_.kernel({std::move(name), grid, kBlock, std::move(arguments)});
  }
  /// A thread for 16 bytes.
  std::uint32_t grid_for(std::int64_t elements) const {
    return blocks_for(elements * static_cast<std::int64_t>(math_.element_bytes()) / 16, kBlock);
  }

  void place(const Work& work) {
    const auto [in, out] = elements_of(work);
    if (in == 0) {
      data_.input = 0;
    } else {
      data_.input = previous_elements_ >= in ? previous_ : filled(in, 1);
    }
    data_.output = filled(out, 1);
    // The loss' gradient is not computed: it stays as it was filled.
    const bool last = --left_ == 0;
    data_.output_gradient = last ? filled(out, 1) : gradients_[(turn_ + 1) % 2];
    data_.input_gradient = gradients_[turn_ % 2];
    ++turn_;
  }

  /// What is multiplied: the parameters themselves, or a copy of them in bfloat16.
  struct Weights {
    DevicePointer values = 0, gradient = 0;
    Step gradient_cast;
  };
  Weights weights(std::int64_t count, float spread) {
    const Parameters::Taken taken = parameters_->take(count, 0, spread);
    if (is_float()) return {taken.values, taken.gradient, {}};
    const auto bytes = static_cast<std::size_t>(count) * math_.element_bytes();
    const Weights copies{math_.allocate(bytes), math_.allocate(bytes), {}};
    math_.fill(copies.gradient, count, false, 0, spread);
    math_.fill(copies.values, count, false, 0, spread);
    const std::uint32_t grid = blocks_for(count / 8, kBlock);
    forward(kernel("commtune_cast_fp32_bf16", grid, {copies.values, taken.values, number(count)}));
    return {copies.values, copies.gradient,
            kernel("commtune_cast_bf16_fp32", grid, {taken.gradient, copies.gradient, number(count)})};
  }
  void cast_gradient(Weights& weights) {
    if (weights.gradient_cast) backward(std::move(weights.gradient_cast));
  }
  NormMemory norm_parameters(int width) {
    const Parameters::Taken scale = parameters_->take(width, 1, 0), shift = parameters_->take(width, 0, 0);
    return {scale.values, shift.values, scale.gradient, shift.gradient};
  }

  void add(const Convolution& c) {
    const std::int64_t inner = std::int64_t{c.in} * c.kernel * c.kernel;
    Weights kernels = weights(inner * c.out, spread_for(inner));
    Weights bias;
    if (c.bias) bias = weights(c.out, spread_for(inner));
    ConvolutionMemory memory{data_, kernels.values, kernels.gradient, bias.values, bias.gradient};
    if (!c.input_gradient) memory.data.input_gradient = 0;
    both(math_.convolution(c, batch_, memory));
    cast_gradient(kernels);
    cast_gradient(bias);
  }

  void add(const Linear& l) {
    const int rows = l.rows * batch_;
    Weights matrix = weights(std::int64_t{l.in} * l.out, spread_for(l.in));
    const Parameters::Taken bias = parameters_->take(l.out, 0, spread_for(l.in));
    forward(math_.product({rows, l.out, l.in, false, true, data_.input, matrix.values, data_.output}));
    forward(kernel(typed("add_bias"), grid_for(std::int64_t{rows} * l.out),
                   {data_.output, bias.values, number(rows), number(l.out)}));
    backward(math_.product(
        {rows, l.in, l.out, false, false, data_.output_gradient, matrix.values, data_.input_gradient}));
    backward(
        math_.product({l.out, l.in, rows, true, false, data_.output_gradient, data_.input, matrix.gradient}));
    cast_gradient(matrix);
    backward(math_.zero(bias.gradient, static_cast<std::size_t>(l.out) * sizeof(float)));
    backward(kernel(typed("bias_gradient"), tiles_of(rows, l.out),
                    {data_.output_gradient, bias.gradient, number(rows), number(l.out)}));
  }

  void add(const BatchNorm& n) { both(math_.batch_norm(n, batch_, data_, norm_parameters(n.channels))); }

  void add(const LayerNorm& n) {
    const std::int64_t rows = std::int64_t{n.rows} * batch_;
    const NormMemory memory = norm_parameters(n.width);
    const DevicePointer saved = math_.allocate(static_cast<std::size_t>(rows) * 2 * sizeof(float));
    const auto grid = static_cast<std::uint32_t>(rows);
    const auto bytes = static_cast<std::size_t>(n.width) * sizeof(float);
    forward(kernel(typed("layer_norm_forward"), grid,
                   {data_.input, memory.scale, memory.shift, data_.output, saved, number(n.width)}));
    backward(kernel(
        typed("layer_norm_backward"), grid,
        {data_.input, data_.output_gradient, memory.scale, saved, data_.input_gradient, number(n.width)}));
    backward(math_.zero(memory.scale_gradient, bytes));
    backward(math_.zero(memory.shift_gradient, bytes));
    backward(kernel(typed("layer_norm_parameters"), tiles_of(rows, n.width),
                    {data_.input, data_.output_gradient, saved, memory.scale_gradient, memory.shift_gradient,
                     number(rows), number(n.width)}));
  }

  void add(const Activation& a) {
    const std::int64_t count = a.elements * batch_;
    const auto which = static_cast<std::int64_t>(a.function);
    forward(kernel(typed("activation_forward"), grid_for(count),
                   {data_.input, data_.output, number(count), number(which)}));
    backward(
        kernel(typed("activation_backward"), grid_for(count),
               {data_.input, data_.output_gradient, data_.input_gradient, number(count), number(which)}));
  }

  void add(const Pooling& p) { both(math_.pooling(p, batch_, data_)); }

  /// Backward, the gradients of both ways into the sum are added up where they meet: another addition.
  void add(const Addition& a) {
    const std::int64_t count = a.elements * batch_;
    const DevicePointer shortcut = filled(a.elements, 1);
    forward(kernel(typed("addition"), grid_for(count), {data_.input, shortcut, data_.output, number(count)}));
    backward(kernel(typed("addition"), grid_for(count),
                    {data_.output_gradient, shortcut, data_.input_gradient, number(count)}));
  }

  void add(const Softmax& s) { both(math_.softmax(std::int64_t{s.rows} * batch_, s.width, data_)); }

  void add(const Attention& a) {
    const int groups = batch_ * a.heads, depth = a.width / a.heads, rows = a.rows;
    const std::uint64_t part =
        number(std::int64_t{a.rows} * a.width * batch_) * math_.element_bytes();  // of query, key or value
    const DevicePointer q = data_.input, k = q + part, v = k + part, out = data_.output;
    const DevicePointer d_out = data_.output_gradient, d_q = data_.input_gradient, d_k = d_q + part,
                        d_v = d_k + part;
    const std::int64_t scores_of_sample = std::int64_t{a.heads} * rows * rows;
    const DevicePointer scores = filled(scores_of_sample, 1), shares = filled(scores_of_sample, 1);
    const DevicePointer d_shares = filled(scores_of_sample, 1);
    const float factor = 1 / std::sqrt(static_cast<float>(depth));

    forward(math_.product({rows, rows, depth, false, true, q, k, scores, groups, factor}));
    StepPair softmax = math_.softmax(std::int64_t{groups} * rows, rows, {scores, shares, d_shares, d_shares});
    forward(std::move(softmax.forward));
    forward(math_.product({rows, depth, rows, false, false, shares, v, out, groups}));

    backward(math_.product({rows, depth, rows, true, false, shares, d_out, d_v, groups}));
    backward(math_.product({rows, rows, depth, false, true, d_out, v, d_shares, groups}));
    backward(std::move(softmax.backward));
    backward(math_.product({rows, depth, rows, false, false, d_shares, k, d_q, groups, factor}));
    backward(math_.product({rows, depth, rows, true, false, d_shares, q, d_k, groups, factor}));
  }

  void add(const Embedding& e) {
    const std::int64_t count = std::int64_t{e.vocabulary} * e.width;
    const Parameters::Taken table = parameters_->take(count, 0, 1);
    const auto rows = static_cast<std::uint32_t>(e.rows * batch_);
    forward(kernel(typed("embedding_forward"), rows,
                   {table.values, data_.output, number(e.vocabulary), number(e.width)}));
    backward(math_.zero(table.gradient, static_cast<std::size_t>(count) * sizeof(float)));
    backward(kernel(typed("embedding_backward"), rows,
                    {data_.output_gradient, table.gradient, number(e.vocabulary), number(e.width)}));
  }

  GpuMath& math_;
  const int batch_;
  const Precision precision_;
  std::array<DevicePointer, 2> gradients_{};  // of activations: one is read while the other is written
  std::size_t turn_ = 0, left_ = 0;           // works so far, and those to come
  DevicePointer previous_ = 0;                // what the work before wrote
  std::int64_t previous_elements_ = 0;        // of one sample
  Parameters* parameters_ = nullptr;          // of the layer at hand
  Activations data_;                          // of the work at hand
  LayerSteps steps_;
  std::vector<Step> backward_;
};

std::int64_t elements_of(const Layer& layer, DataType type) {
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : layer.tensors) bytes += tensor.bytes.count;
  return static_cast<std::int64_t>(bytes / element_size(type).count);
}

}  // namespace

Optimizer optimizer_of(const Architecture& architecture) {
  for (const ComputeLayer& layer : architecture.layers) {
    for (const Work& work : layer.work)
      if (std::holds_alternative<Embedding>(work)) return Optimizer::kAdam;
  }
  return Optimizer::kMomentum;
}

std::vector<LayerSteps> steps_of(const Architecture& architecture, const Profile& tensors, int batch,
                                 Precision precision, GpuMath& math) {
  const Optimizer optimizer = optimizer_of(architecture);
  Builder builder(math, architecture, batch, precision);
  std::vector<LayerSteps> layers;
  layers.reserve(architecture.layers.size());
  for (std::size_t i = 0; i < architecture.layers.size(); ++i) {
    const std::int64_t parameters = elements_of(tensors.layers.at(i), tensors.type);
    layers.push_back(builder.layer(architecture.layers[i], parameters, optimizer));
  }
  return layers;
}

}  // namespace commtune::compute
