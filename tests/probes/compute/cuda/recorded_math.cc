#include "tests/probes/compute/cuda/recorded_math.h"

#include <utility>

namespace commtune::compute {

DevicePointer RecordedMath::allocate(std::size_t bytes) {
  constexpr DevicePointer kGap = 1 << 12;  // what is written behind a block is in none
  const DevicePointer block = next_;
  blocks_[block] = bytes;
  next_ += (bytes + 2 * kGap - 1) / kGap * kGap;
  allocated_bytes += bytes;
  return block;
}

void RecordedMath::expect_room(const std::string& what, DevicePointer data, std::int64_t elements,
                               std::size_t each) {
  auto block = blocks_.upper_bound(data);
  const std::uint64_t bytes = static_cast<std::uint64_t>(elements) * each;
  if (block == blocks_.begin()) {
    complaints.push_back(what + ": no memory");
    return;
  }
  --block;
  if (data + bytes > block->first + block->second) complaints.push_back(what + ": beyond its memory");
}

void RecordedMath::expect_rooms(const std::string& what, const Activations& data, std::int64_t in,
                                std::int64_t out) {
  expect_room(what + " input", data.input, in, element_bytes_);
  expect_room(what + " output", data.output, out, element_bytes_);
  expect_room(what + " output gradient", data.output_gradient, out, element_bytes_);
  if (data.input_gradient != 0)
    expect_room(what + " input gradient", data.input_gradient, in, element_bytes_);
}

Step RecordedMath::noted(std::string name, double work) {
  return [this, name = std::move(name), work] {
    calls.push_back(name);
    multiply_adds += work;
  };
}

void RecordedMath::fill(DevicePointer data, std::int64_t elements, bool is_float32, float, float) {
  expect_room("fill", data, elements, is_float32 ? sizeof(float) : element_bytes_);
}

Step RecordedMath::product(const MatrixProduct& p) {
  const auto elements = [&](int one, int other) { return std::int64_t{one} * other * p.count; };
  expect_room("product a", p.a, elements(p.rows, p.inner), element_bytes_);
  expect_room("product b", p.b, elements(p.inner, p.columns), element_bytes_);
  expect_room("product c", p.c, elements(p.rows, p.columns), element_bytes_);
  return noted("product", static_cast<double>(elements(p.rows, p.columns)) * p.inner);
}

// The analyser loses sight of what std::function owns.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks)

StepPair RecordedMath::convolution(const Convolution& c, int batch, const ConvolutionMemory& memory) {
  const std::int64_t in = std::int64_t{batch} * c.in * c.size * c.size;
  const std::int64_t out = std::int64_t{batch} * c.out * c.out_size() * c.out_size();
  expect_rooms("convolution", memory.data, in, out);
  const std::int64_t weights = std::int64_t{c.in} * c.out * c.kernel * c.kernel;
  expect_room("convolution weights", memory.weights, weights, element_bytes_);
  expect_room("convolution weight gradient", memory.weight_gradient, weights, element_bytes_);
  const double work = macs(c) * batch;
  return {noted("convolution", work),
          noted("convolution backward", memory.data.input_gradient == 0 ? work : 2 * work)};
}

StepPair RecordedMath::batch_norm(const BatchNorm& n, int batch, const Activations& data,
                                  const NormMemory& memory) {
  const std::int64_t count = std::int64_t{batch} * n.channels * n.size * n.size;
  expect_rooms("batch normalisation", data, count, count);
  for (const DevicePointer one : {memory.scale, memory.shift, memory.scale_gradient, memory.shift_gradient})
    expect_room("batch normalisation parameters", one, n.channels, sizeof(float));
  return {noted("batch normalisation"), noted("batch normalisation backward")};
}

StepPair RecordedMath::pooling(const Pooling& p, int batch, const Activations& data) {
  const std::int64_t maps = std::int64_t{batch} * p.channels;
  expect_rooms("pooling", data, maps * p.size * p.size, maps * p.out_size() * p.out_size());
  return {noted("pooling"), noted("pooling backward")};
}

StepPair RecordedMath::softmax(std::int64_t rows, int width, const Activations& data) {
  expect_rooms("softmax", data, rows * width, rows * width);
  return {noted("softmax"), noted("softmax backward")};
}

Step RecordedMath::zero(DevicePointer data, std::size_t bytes) {
  expect_room("zero", data, static_cast<std::int64_t>(bytes), 1);
  return noted("zero");
}

Step RecordedMath::kernel(const KernelCall& call) {
  kernels.push_back(call);
  return noted(call.name);
}

// NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)

}  // namespace commtune::compute
