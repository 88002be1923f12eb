// Kernels of layers' timing against their host twins: on a GPU they are the kernels, on the stand-in the
// twins themselves. Sums are in another order there, hence the tolerance. What twins compute is checked by
// hand.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "executor/memory/cuda/device.h"
#include "probes/compute/cuda/kernel_images.h"
#include "tests/gpu/standin/twins.h"

namespace commtune::compute {
namespace {

/// One of a launch's buffers, by its number.
struct BufferArgument {
  std::size_t index;
};
using KernelArgument = std::variant<BufferArgument, std::int64_t, float>;

struct KernelCase {
  std::string name;
  unsigned grid = 1;
  std::vector<std::vector<float>> floats;  ///< buffers of float32
  std::vector<std::vector<float>> data;    ///< buffers of the type; numbered behind the floats
  std::vector<KernelArgument> arguments;
};

std::uint16_t short_float(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}
float widened(std::uint16_t value) {
  const std::uint32_t bits = std::uint32_t{value} << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::vector<float>& values, bool is_short) {
  Bytes bytes(values.size() * (is_short ? 2 : 4));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t narrow = short_float(values[i]);
    if (is_short) {
      std::memcpy(&bytes[2 * i], &narrow, 2);
    } else {
      std::memcpy(&bytes[4 * i], &values[i], 4);
    }
  }
  return bytes;
}

std::vector<float> values_of(const Bytes& bytes, bool is_short) {
  std::vector<float> values(bytes.size() / (is_short ? 2 : 4));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t narrow = 0;
    if (is_short) {
      std::memcpy(&narrow, &bytes[2 * i], 2);
      values[i] = widened(narrow);
    } else {
      std::memcpy(&values[i], &bytes[4 * i], 4);
    }
  }
  return values;
}

/// Neither zero nor alike, between -1 and 1.
std::vector<float> made_up(std::size_t count, int seed = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::sin(static_cast<float>(i) * 0.7F + static_cast<float>(seed));
  return values;
}

class ProfileKernels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!cuda::loaded().why_not.empty()) GTEST_SKIP() << cuda::loaded().why_not;
    gpu_ = std::make_unique<cuda::Gpu>(0);
    gpu_->current();
    kernels_ = std::make_unique<cuda::Module>(images::profile());
    stream_ = std::make_unique<cuda::Stream>();
  }
  bool is_short() const { return GetParam() == "bf16"; }

  std::vector<Bytes> buffers_of(const KernelCase& one) const {
    std::vector<Bytes> buffers;
    for (const auto& values : one.floats) buffers.push_back(bytes_of(values, false));
    for (const auto& values : one.data) buffers.push_back(bytes_of(values, is_short()));
    return buffers;
  }

  static std::vector<std::uint64_t> bits_of(const KernelCase& one,
                                            const std::vector<std::uint64_t>& addresses) {
    std::vector<std::uint64_t> bits(one.arguments.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      if (const auto* buffer = std::get_if<BufferArgument>(&one.arguments[i])) {
        bits[i] = addresses[buffer->index];
      } else if (const auto* number = std::get_if<std::int64_t>(&one.arguments[i])) {
        bits[i] = static_cast<std::uint64_t>(*number);
      } else {
        std::memcpy(&bits[i], &std::get<float>(one.arguments[i]), sizeof(float));
      }
    }
    return bits;
  }

  static std::vector<void*> pointers_to(std::vector<std::uint64_t>& bits) {
    std::vector<void*> pointers;
    pointers.reserve(bits.size());
    for (std::uint64_t& value : bits) pointers.push_back(&value);
    return pointers;
  }

  std::vector<Bytes> on_gpu(const KernelCase& one) {
    const cuda::Driver& driver = cuda::driver();
    std::vector<Bytes> buffers = buffers_of(one);
    std::vector<std::uint64_t> addresses(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      CUdeviceptr memory = 0;
      cuda::expect(driver.allocate(&memory, buffers[i].size()), "cuMemAlloc");
      cuda::expect(driver.copy_to_device(memory, buffers[i].data(), buffers[i].size(), stream_->handle()),
                   "cuMemcpyHtoDAsync");
      addresses[i] = memory;
    }
    std::vector<std::uint64_t> bits = bits_of(one, addresses);
    std::vector<void*> arguments = pointers_to(bits);
    cuda::expect(driver.launch(kernels_->function(one.name.c_str()), one.grid, 1, 1, 256, 1, 1, 0,
                               stream_->handle(), arguments.data(), nullptr),
                 one.name.c_str());
    for (std::size_t i = 0; i < buffers.size(); ++i)
      cuda::expect(driver.copy_to_host(buffers[i].data(), addresses[i], buffers[i].size(), stream_->handle()),
                   "cuMemcpyDtoHAsync");
    stream_->synchronize();
    for (const std::uint64_t address : addresses) driver.release(address);
    return buffers;
  }

  std::vector<Bytes> by_twin(const KernelCase& one) const {
    std::vector<Bytes> buffers = buffers_of(one);
    std::vector<std::uint64_t> addresses;
    addresses.reserve(buffers.size());
    for (Bytes& buffer : buffers) addresses.push_back(reinterpret_cast<std::uintptr_t>(buffer.data()));
    std::vector<std::uint64_t> bits = bits_of(one, addresses);
    std::vector<void*> arguments = pointers_to(bits);
    for (const standin::NamedTwin& twin : standin::profile_twins()) {
      if (one.name == twin.name) twin.run({one.grid, 256, arguments.data()});
    }
    return buffers;
  }

  /// Both ways; returns the buffers' values.
  std::vector<std::vector<float>> check(KernelCase one, bool is_typed = true) {
    if (is_typed) one.name += "_" + GetParam();
    const std::vector<Bytes> found = on_gpu(one), expected = by_twin(one);
    std::vector<std::vector<float>> values;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool narrow = i >= one.floats.size() && is_short();
      values.push_back(values_of(found[i], narrow));
      const std::vector<float> wanted = values_of(expected[i], narrow);
      const double tolerance = narrow ? 0.01 : 1e-4;
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        EXPECT_NEAR(values.back()[k], wanted[k], tolerance * (1 + std::abs(wanted[k])))
            << one.name << ", buffer " << i << ", element " << k;
        if (HasFailure()) return values;
      }
    }
    return values;
  }

  std::unique_ptr<cuda::Gpu> gpu_;
  std::unique_ptr<cuda::Module> kernels_;
  std::unique_ptr<cuda::Stream> stream_;
};

constexpr BufferArgument kFirst{0}, kSecond{1}, kThird{2}, kFourth{3}, kFifth{4};
using Number = std::int64_t;

/// Counts that no pack of 16 bytes divides, and one that is less than a pack.
TEST_P(ProfileKernels, ActivationsAndTheirSlopes) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{1003}}) {
    for (Number which = 0; which < 3; ++which) {
      const auto n = static_cast<Number>(count);
      check({"commtune_profile_activation_forward",
             3,
             {},
             {made_up(count), std::vector<float>(count)},
             {kFirst, kSecond, n, which}});
      check({"commtune_profile_activation_backward",
             3,
             {},
             {made_up(count), made_up(count, 2), std::vector<float>(count)},
             {kFirst, kSecond, kThird, n, which}});
    }
  }
}

/// relu(-1) = 0 and relu(2) = 2; gelu(1) = 0.8413, tanh(1) = 0.7616.
TEST_P(ProfileKernels, ActivationsByHand) {
  const auto of = [&](Number which, float x) {
    return check({"commtune_profile_activation_forward",
                  1,
                  {},
                  {{x}, {0}},
                  {kFirst, kSecond, Number{1}, which}})
        .at(1)
        .at(0);
  };
  EXPECT_EQ(of(0, -1), 0);
  EXPECT_EQ(of(0, 2), 2);
  EXPECT_NEAR(of(1, 1), 0.8413, 0.004);
  EXPECT_NEAR(of(2, 1), 0.7616, 0.004);
}

TEST_P(ProfileKernels, AdditionsAndBiases) {
  constexpr Number kRows = 37, kColumns = 50;
  constexpr std::size_t kCount = std::size_t{37} * 50;
  check({"commtune_profile_addition",
         2,
         {},
         {made_up(kCount), made_up(kCount, 2), std::vector<float>(kCount)},
         {kFirst, kSecond, kThird, Number{kCount}}});
  const auto biased = check({"commtune_profile_add_bias",
                             2,
                             {made_up(50)},
                             {std::vector<float>(kCount)},
                             {kSecond, kFirst, kRows, kColumns}});
  EXPECT_NEAR(biased[1][51], std::sin(1.7F), 0.004);  // the second column's
}

/// 200 rows of ones are four tiles of 64: each column's sum is 200.
TEST_P(ProfileKernels, BiasGradients) {
  constexpr Number kRows = 200, kColumns = 50;
  const auto sums = check({"commtune_profile_bias_gradient",
                           2 * 4,
                           {std::vector<float>(50)},
                           {std::vector<float>(std::size_t{200} * 50, 1)},
                           {kSecond, kFirst, kRows, kColumns}});
  EXPECT_EQ(sums[0], std::vector<float>(50, 200));
}

/// Rows come out with a mean of 0 and a variance of 1; gradients against a constant vanish.
TEST_P(ProfileKernels, NormalisationOfRows) {
  constexpr Number kRows = 70, kWidth = 300;
  constexpr std::size_t kCount = std::size_t{70} * 300;
  const std::vector<float> ones(300, 1), zeros(300), data = made_up(kCount);
  const auto out = check({"commtune_profile_layer_norm_forward",
                          kRows,
                          {ones, zeros, std::vector<float>(std::size_t{2} * 70)},
                          {data, std::vector<float>(kCount)},
                          {kFourth, kFirst, kSecond, kFifth, kThird, kWidth}});
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 300; ++i) {
    sum += out[4][i];
    squares += out[4][i] * out[4][i];
  }
  EXPECT_NEAR(sum / 300, 0, 0.01);
  EXPECT_NEAR(squares / 300, 1, 0.01);

  const std::vector<float>& saved = out[2];
  check({"commtune_profile_layer_norm_backward",
         kRows,
         {made_up(300, 5), saved},
         {data, made_up(kCount, 3), std::vector<float>(kCount)},
         {kThird, kFourth, kFirst, kSecond, kFifth, kWidth}});
  const auto flat = check({"commtune_profile_layer_norm_backward",
                           kRows,
                           {ones, saved},
                           {data, std::vector<float>(kCount, 1), std::vector<float>(kCount)},
                           {kThird, kFourth, kFirst, kSecond, kFifth, kWidth}});
  for (const float gradient : flat[4]) EXPECT_NEAR(gradient, 0, 0.01);
  check({"commtune_profile_layer_norm_parameters",
         10 * 2,
         {saved, zeros, zeros},
         {data, made_up(kCount, 3)},
         {kFourth, kFifth, kFirst, kSecond, kThird, kRows, kWidth}});
}

/// Row 1 picks word 7919 mod 10 = 9.
TEST_P(ProfileKernels, Embeddings) {
  constexpr Number kWords = 10, kWidth = 33;
  constexpr std::size_t kRows = 25;
  const std::vector<float> table = made_up(std::size_t{10} * 33);
  const auto picked = check({"commtune_profile_embedding_forward",
                             kRows,
                             {table},
                             {std::vector<float>(kRows * 33)},
                             {kFirst, kSecond, kWords, kWidth}});
  EXPECT_NEAR(picked[1][33], table[std::size_t{9} * 33], 0.004);
  const auto gradient = check({"commtune_profile_embedding_backward",
                               kRows,
                               {std::vector<float>(std::size_t{10} * 33)},
                               {std::vector<float>(kRows * 33, 1)},
                               {kSecond, kFirst, kWords, kWidth}});
  EXPECT_EQ(gradient[0][std::size_t{9} * 33], 3);  // rows 1, 11 and 21
}

TEST_P(ProfileKernels, EvenValues) {
  const auto values =
      check({"commtune_profile_fill", 4, {}, {std::vector<float>(5000)}, {kFirst, Number{5000}, 2.0F, 0.5F}});
  double sum = 0;
  for (const float value : values[0]) {
    EXPECT_GE(value, 1.49F);
    EXPECT_LE(value, 2.51F);
    sum += value;
  }
  EXPECT_NEAR(sum / 5000, 2, 0.02);
}

/// One step from nothing: m = g, w -= rate g; Adam's first moment is g / 10.
TEST_P(ProfileKernels, Updates) {
  const std::vector<float> zeros(1001);
  const auto momentum = check({"commtune_profile_momentum",
                               2,
                               {zeros, made_up(1001), zeros},
                               {},
                               {kFirst, kSecond, kThird, Number{1001}, 0.5F}},
                              false);
  EXPECT_NEAR(momentum[0][7], -0.5F * made_up(1001)[7], 1e-6);
  const auto adam = check({"commtune_profile_adam",
                           2,
                           {zeros, made_up(1001), zeros, zeros},
                           {},
                           {kFirst, kSecond, kThird, kFourth, Number{1001}, 0.5F}},
                          false);
  EXPECT_NEAR(adam[2][7], 0.1F * made_up(1001)[7], 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Types, ProfileKernels, testing::Values("fp32", "bf16"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace commtune::compute
