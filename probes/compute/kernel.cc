#include "probes/compute/kernel.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perfmodel/base/error.h"

namespace commtune::compute {

namespace {

using dnnl::memory;
using dnnl::prop_kind;
using Tag = memory::format_tag;
using Descriptor = memory::desc;
using Arguments = std::unordered_map<int, memory>;

// Keeps a variance of 0 from being divided by, as in PyTorch. No time depends on it.
constexpr float kEpsilon = 1e-5F;

dnnl::engine& engine() {
  static dnnl::engine one(dnnl::engine::kind::cpu, 0);
  return one;
}

dnnl::stream& stream() {
  static dnnl::stream one(engine());
  return one;
}

Descriptor floats(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

/// Touched, so that its pages exist, with values that are neither zero nor denormal.
memory filled(const Descriptor& descriptor) {
  memory result(descriptor, engine());
  auto* values = static_cast<float*>(result.get_data_handle());
  const std::size_t count = descriptor.get_size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.01F * static_cast<float>(1 + i % 7);
  return result;
}

/// Primitives in their order, with what they work on.
class Steps {
 public:
  template <typename Primitive, typename Description>
  void add(const Description& description, Arguments arguments) {
    steps_.emplace_back(Primitive(description), std::move(arguments));
  }

  void operator()() const {
    for (const auto& [primitive, arguments] : steps_) primitive.execute(stream(), arguments);
    stream().wait();
  }

 private:
  std::vector<std::pair<dnnl::primitive, Arguments>> steps_;
};

// --- products -------------------------------------------------------------------------------------------

Kernel make(const Convolution& c, int batch) {
  const memory::dims stride{c.stride, c.stride}, pad{c.padding, c.padding};
  const Descriptor src = floats({batch, c.in, c.size, c.size}, Tag::any);
  const Descriptor weights = floats({c.out, c.in, c.kernel, c.kernel}, Tag::any);
  const Descriptor bias = c.bias ? floats({c.out}, Tag::a) : Descriptor();
  const Descriptor dst = floats({batch, c.out, c.out_size(), c.out_size()}, Tag::any);
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  Steps forward, backward;

  using Forward = dnnl::convolution_forward;
  const Forward::primitive_desc there(
      {prop_kind::forward_training, kAlgorithm, src, weights, bias, dst, stride, pad, pad}, engine());
  Arguments with{{DNNL_ARG_SRC, filled(there.src_desc())},
                 {DNNL_ARG_WEIGHTS, filled(there.weights_desc())},
                 {DNNL_ARG_DST, filled(there.dst_desc())}};
  if (c.bias) with.emplace(DNNL_ARG_BIAS, filled(bias));
  forward.add<Forward>(there, with);

  if (c.input_gradient) {
    using Data = dnnl::convolution_backward_data;
    const Data::primitive_desc back({kAlgorithm, src, weights, dst, stride, pad, pad}, engine(), there);
    backward.add<Data>(back, {{DNNL_ARG_DIFF_SRC, filled(back.diff_src_desc())},
                              {DNNL_ARG_WEIGHTS, filled(back.weights_desc())},
                              {DNNL_ARG_DIFF_DST, filled(back.diff_dst_desc())}});
  }
  using Weights = dnnl::convolution_backward_weights;
  const Weights::primitive_desc grow({kAlgorithm, src, weights, bias, dst, stride, pad, pad}, engine(),
                                     there);
  Arguments grown{{DNNL_ARG_SRC, filled(grow.src_desc())},
                  {DNNL_ARG_DIFF_WEIGHTS, filled(grow.diff_weights_desc())},
                  {DNNL_ARG_DIFF_DST, filled(grow.diff_dst_desc())}};
  if (c.bias) grown.emplace(DNNL_ARG_DIFF_BIAS, filled(bias));
  backward.add<Weights>(grow, std::move(grown));
  return {forward, backward};
}

Kernel make(const Linear& l, int batch) {
  const memory::dim rows = memory::dim{batch} * l.rows;
  const Descriptor src = floats({rows, l.in}, Tag::any), weights = floats({l.out, l.in}, Tag::any);
  const Descriptor bias = floats({l.out}, Tag::a), dst = floats({rows, l.out}, Tag::any);
  Steps forward, backward;

  using Forward = dnnl::inner_product_forward;
  const Forward::primitive_desc there({prop_kind::forward_training, src, weights, bias, dst}, engine());
  forward.add<Forward>(there, {{DNNL_ARG_SRC, filled(there.src_desc())},
                               {DNNL_ARG_WEIGHTS, filled(there.weights_desc())},
                               {DNNL_ARG_BIAS, filled(bias)},
                               {DNNL_ARG_DST, filled(there.dst_desc())}});
  using Data = dnnl::inner_product_backward_data;
  const Data::primitive_desc back({src, weights, dst}, engine(), there);
  backward.add<Data>(back, {{DNNL_ARG_DIFF_SRC, filled(back.diff_src_desc())},
                            {DNNL_ARG_WEIGHTS, filled(back.weights_desc())},
                            {DNNL_ARG_DIFF_DST, filled(back.diff_dst_desc())}});
  using Weights = dnnl::inner_product_backward_weights;
  const Weights::primitive_desc grow({src, weights, bias, dst}, engine(), there);
  backward.add<Weights>(grow, {{DNNL_ARG_SRC, filled(grow.src_desc())},
                               {DNNL_ARG_DIFF_WEIGHTS, filled(grow.diff_weights_desc())},
                               {DNNL_ARG_DIFF_BIAS, filled(bias)},
                               {DNNL_ARG_DIFF_DST, filled(grow.diff_dst_desc())}});
  return {forward, backward};
}

void multiply(Steps& steps, const memory& a, const memory& b, const memory& c) {
  const dnnl::matmul::primitive_desc description({a.get_desc(), b.get_desc(), c.get_desc()}, engine());
  steps.add<dnnl::matmul>(description, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
}

/// The same values, with the last two dimensions exchanged.
memory transposed(const memory& values) {
  const memory::dims dims = values.get_desc().dims();
  return {floats({dims[0], dims[2], dims[1]}, Tag::acb), engine(), values.get_data_handle()};
}

Kernel make(const Attention& a, int batch) {
  const memory::dim groups = memory::dim{batch} * a.heads, depth = a.width / a.heads;
  const auto of_width = [&] { return filled(floats({groups, a.rows, depth}, Tag::abc)); };
  const auto of_rows = [&] { return filled(floats({groups, a.rows, a.rows}, Tag::abc)); };
  const memory q = of_width(), k = of_width(), v = of_width(), out = of_width();
  const memory scores = of_rows(), shares = of_rows();
  Steps forward, backward;

  multiply(forward, q, transposed(k), scores);
  using Forward = dnnl::softmax_forward;
  const Forward::primitive_desc there({prop_kind::forward_training, scores.get_desc(), 2}, engine());
  forward.add<Forward>(there, {{DNNL_ARG_SRC, scores}, {DNNL_ARG_DST, shares}});
  multiply(forward, shares, v, out);

  const memory d_out = of_width(), d_q = of_width(), d_k = of_width(), d_v = of_width();
  const memory d_shares = of_rows(), d_scores = of_rows();
  multiply(backward, transposed(shares), d_out, d_v);
  multiply(backward, d_out, transposed(v), d_shares);
  using Backward = dnnl::softmax_backward;
  const Backward::primitive_desc back({d_scores.get_desc(), scores.get_desc(), 2}, engine(), there);
  backward.add<Backward>(
      back, {{DNNL_ARG_DST, shares}, {DNNL_ARG_DIFF_DST, d_shares}, {DNNL_ARG_DIFF_SRC, d_scores}});
  multiply(backward, d_scores, k, d_q);
  multiply(backward, transposed(d_scores), q, d_k);
  // Transposed views lend their memory, which belongs to these.
  const std::vector<memory> owned{k, v, shares, d_scores};
  return {forward, [backward, owned] { backward(); }};
}

// --- normalisation --------------------------------------------------------------------------------------

template <typename Forward, typename Backward, typename Describe, typename DescribeBack>
Kernel normalise(const Descriptor& data, int channels, const Describe& describe,
                 const DescribeBack& describe_back) {
  Steps forward, backward;
  const typename Forward::primitive_desc there(describe(data), engine());
  const memory src = filled(data), mean = filled(there.mean_desc()), variance = filled(there.variance_desc());
  const memory scale = filled(floats({2, channels}, Tag::nc));
  forward.add<Forward>(there, {{DNNL_ARG_SRC, src},
                               {DNNL_ARG_SCALE_SHIFT, scale},
                               {DNNL_ARG_MEAN, mean},
                               {DNNL_ARG_VARIANCE, variance},
                               {DNNL_ARG_DST, filled(data)}});
  const typename Backward::primitive_desc back(describe_back(data), engine(), there);
  backward.add<Backward>(back, {{DNNL_ARG_SRC, src},
                                {DNNL_ARG_SCALE_SHIFT, scale},
                                {DNNL_ARG_MEAN, mean},
                                {DNNL_ARG_VARIANCE, variance},
                                {DNNL_ARG_DIFF_DST, filled(data)},
                                {DNNL_ARG_DIFF_SRC, filled(data)},
                                {DNNL_ARG_DIFF_SCALE_SHIFT, filled(floats({2, channels}, Tag::nc))}});
  return {forward, backward};
}

constexpr auto kScaled = dnnl::normalization_flags::use_scale_shift;

Kernel make(const BatchNorm& n, int batch) {
  using Forward = dnnl::batch_normalization_forward;
  using Backward = dnnl::batch_normalization_backward;
  return normalise<Forward, Backward>(
      floats({batch, n.channels, n.size, n.size}, Tag::nhwc), n.channels,
      [](const Descriptor& d) { return Forward::desc(prop_kind::forward_training, d, kEpsilon, kScaled); },
      [](const Descriptor& d) { return Backward::desc(prop_kind::backward, d, d, kEpsilon, kScaled); });
}

Kernel make(const LayerNorm& n, int batch) {
  using Forward = dnnl::layer_normalization_forward;
  using Backward = dnnl::layer_normalization_backward;
  return normalise<Forward, Backward>(
      floats({memory::dim{batch} * n.rows, n.width}, Tag::ab), n.width,
      [](const Descriptor& d) { return Forward::desc(prop_kind::forward_training, d, kEpsilon, kScaled); },
      [](const Descriptor& d) { return Backward::desc(prop_kind::backward, d, d, kEpsilon, kScaled); });
}

Kernel make(const Softmax& s, int batch) {
  const Descriptor data = floats({memory::dim{batch} * s.rows, s.width}, Tag::ab);
  Steps forward, backward;
  using Forward = dnnl::softmax_forward;
  const Forward::primitive_desc there({prop_kind::forward_training, data, 1}, engine());
  const memory dst = filled(data);
  forward.add<Forward>(there, {{DNNL_ARG_SRC, filled(data)}, {DNNL_ARG_DST, dst}});
  using Backward = dnnl::softmax_backward;
  const Backward::primitive_desc back({data, data, 1}, engine(), there);
  backward.add<Backward>(
      back, {{DNNL_ARG_DST, dst}, {DNNL_ARG_DIFF_DST, filled(data)}, {DNNL_ARG_DIFF_SRC, filled(data)}});
  return {forward, backward};
}

// --- element by element ---------------------------------------------------------------------------------

dnnl::algorithm algorithm_of(Function function) {
  switch (function) {
    case Function::kRelu:
      return dnnl::algorithm::eltwise_relu;
    case Function::kGelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    case Function::kTanh:
      return dnnl::algorithm::eltwise_tanh;
  }
  return dnnl::algorithm::undef;
}

Kernel make(const Activation& a, int batch) {
  const Descriptor data = floats({a.elements * batch}, Tag::a);
  Steps forward, backward;
  using Forward = dnnl::eltwise_forward;
  const Forward::primitive_desc there({prop_kind::forward_training, algorithm_of(a.function), data},
                                      engine());
  const memory src = filled(data);
  forward.add<Forward>(there, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, filled(data)}});
  using Backward = dnnl::eltwise_backward;
  const Backward::primitive_desc back({algorithm_of(a.function), data, data}, engine(), there);
  backward.add<Backward>(
      back, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DIFF_DST, filled(data)}, {DNNL_ARG_DIFF_SRC, filled(data)}});
  return {forward, backward};
}

/// Backward, the gradients of both ways into the sum are added up where they meet: another addition.
Kernel make(const Addition& a, int batch) {
  const Descriptor data = floats({a.elements * batch}, Tag::a);
  Steps steps;
  const dnnl::binary::primitive_desc description({dnnl::algorithm::binary_add, data, data, data}, engine());
  steps.add<dnnl::binary>(
      description,
      {{DNNL_ARG_SRC_0, filled(data)}, {DNNL_ARG_SRC_1, filled(data)}, {DNNL_ARG_DST, filled(data)}});
  return {steps, steps};
}

Kernel make(const Pooling& p, int batch) {
  const Descriptor src = floats({batch, p.channels, p.size, p.size}, Tag::nhwc);
  const Descriptor dst = floats({batch, p.channels, p.out_size(), p.out_size()}, Tag::nhwc);
  const memory::dims stride{p.stride, p.stride}, kernel{p.kernel, p.kernel}, pad{p.padding, p.padding};
  const auto kind = p.maximum ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
  Steps forward, backward;
  using Forward = dnnl::pooling_forward;
  const Forward::primitive_desc there({prop_kind::forward_training, kind, src, dst, stride, kernel, pad, pad},
                                      engine());
  const memory workspace(there.workspace_desc(), engine());
  forward.add<Forward>(
      there, {{DNNL_ARG_SRC, filled(src)}, {DNNL_ARG_DST, filled(dst)}, {DNNL_ARG_WORKSPACE, workspace}});
  using Backward = dnnl::pooling_backward;
  const Backward::primitive_desc back({kind, src, dst, stride, kernel, pad, pad}, engine(), there);
  backward.add<Backward>(
      back,
      {{DNNL_ARG_DIFF_DST, filled(dst)}, {DNNL_ARG_DIFF_SRC, filled(src)}, {DNNL_ARG_WORKSPACE, workspace}});
  forward();  // the workspace says where each maximum was
  return {forward, backward};
}

Kernel make(const Embedding& e, int batch) {
  struct Tables {
    std::vector<float> table, gradient, rows;
    std::vector<std::size_t> picked;
  };
  const auto width = static_cast<std::size_t>(e.width), vocabulary = static_cast<std::size_t>(e.vocabulary);
  const std::size_t count = static_cast<std::size_t>(batch) * static_cast<std::size_t>(e.rows);
  const auto tables = std::make_shared<Tables>(Tables{std::vector<float>(vocabulary * width, 0.01F),
                                                      std::vector<float>(vocabulary * width, 0.01F),
                                                      std::vector<float>(count * width, 0.01F),
                                                      {}});
  constexpr std::size_t kStride = 7919;  // a prime: words are all over the table
  for (std::size_t i = 0; i < count; ++i) tables->picked.push_back(i * kStride % vocabulary);
  const auto forward = [tables, width] {
    for (std::size_t i = 0; i < tables->picked.size(); ++i) {
      std::memcpy(&tables->rows[i * width], &tables->table[tables->picked[i] * width], width * sizeof(float));
    }
  };
  const auto backward = [tables, width] {
    std::fill(tables->gradient.begin(), tables->gradient.end(), 0.0F);
    for (std::size_t i = 0; i < tables->picked.size(); ++i) {
      float* into = &tables->gradient[tables->picked[i] * width];
      const float* from = &tables->rows[i * width];
      for (std::size_t j = 0; j < width; ++j) into[j] += from[j];
    }
  };
  return {forward, backward};
}

}  // namespace

Kernel make_kernel(const Work& work, int batch) {
  const std::string what = describe(work) + ", batch " + std::to_string(batch);
  try {
    return std::visit([&](const auto& shape) { return make(shape, batch); }, work);
  } catch (const dnnl::error& error) {
    const bool memory = error.status == dnnl_out_of_memory;
    throw Error(ErrorCode::kUnavailable,
                what + ": " + error.what() + (memory ? "; take a smaller --batch" : ""));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kUnavailable, what + ": not enough memory; take a smaller --batch");
  }
}

std::string library_version() {
  const dnnl::version_t* version = dnnl::version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

int threads() { return omp_get_max_threads(); }

void set_threads(int count) { omp_set_num_threads(count); }

}  // namespace commtune::compute
