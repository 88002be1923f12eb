// Twins of probes/compute/cuda/kernels: in the plainest order of sums, which the kernels' differs from.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/gpu/standin/twins.h"

namespace commtune::standin {
namespace {

/// bfloat16 by its bits, rounded to the nearest even.
struct ShortFloat {
  std::uint16_t bits;
};

float widened(float value) { return value; }
float widened(ShortFloat value) {
  const std::uint32_t bits = std::uint32_t{value.bits} << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}
void store(float& into, float value) { into = value; }
void store(ShortFloat& into, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  into.bits = static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

template <typename T>
T* at(const Launch& launch, std::size_t index) {
  return reinterpret_cast<T*>(launch.argument<std::uint64_t>(index));  // NOLINT(performance-no-int-to-ptr)
}
std::int64_t number(const Launch& launch, std::size_t index) { return launch.argument<std::int64_t>(index); }

float activated(float x, std::int64_t which) {
  if (which == 0) return x > 0 ? x : 0;
  if (which == 2) return std::tanh(x);
  return 0.5F * x * (1 + std::erf(x * 0.70710678F));
}

float slope(float x, std::int64_t which) {
  if (which == 0) return x > 0 ? 1 : 0;
  if (which == 2) return 1 - std::tanh(x) * std::tanh(x);
  return 0.5F * (1 + std::erf(x * 0.70710678F)) + x * 0.39894228F * std::exp(-0.5F * x * x);
}

template <typename T>
void activation_forward(const Launch& launch) {
  for (std::int64_t i = 0; i < number(launch, 2); ++i)
    store(at<T>(launch, 1)[i], activated(widened(at<T>(launch, 0)[i]), number(launch, 3)));
}

template <typename T>
void activation_backward(const Launch& launch) {
  for (std::int64_t i = 0; i < number(launch, 3); ++i)
    store(at<T>(launch, 2)[i],
          widened(at<T>(launch, 1)[i]) * slope(widened(at<T>(launch, 0)[i]), number(launch, 4)));
}

template <typename T>
void addition(const Launch& launch) {
  for (std::int64_t i = 0; i < number(launch, 3); ++i)
    store(at<T>(launch, 2)[i], widened(at<T>(launch, 0)[i]) + widened(at<T>(launch, 1)[i]));
}

template <typename T>
void add_bias(const Launch& launch) {
  const std::int64_t columns = number(launch, 3);
  for (std::int64_t i = 0; i < number(launch, 2) * columns; ++i) {
    T& value = at<T>(launch, 0)[i];
    store(value, widened(value) + at<float>(launch, 1)[i % columns]);
  }
}

template <typename T>
void bias_gradient(const Launch& launch) {
  const std::int64_t columns = number(launch, 3);
  for (std::int64_t i = 0; i < number(launch, 2) * columns; ++i)
    at<float>(launch, 1)[i % columns] += widened(at<T>(launch, 0)[i]);
}

constexpr float kEpsilon = 1e-5F;

template <typename T>
void layer_norm_forward(const Launch& launch) {
  const std::int64_t width = number(launch, 5);
  const auto* const scale = at<float>(launch, 1);
  const auto* const shift = at<float>(launch, 2);
  for (std::int64_t row = 0; row < launch.grid; ++row) {
    const T* const x = at<T>(launch, 0) + row * width;
    float sum = 0, squares = 0;
    for (std::int64_t i = 0; i < width; ++i) sum += widened(x[i]);
    const float mean = sum / static_cast<float>(width);
    for (std::int64_t i = 0; i < width; ++i) squares += (widened(x[i]) - mean) * (widened(x[i]) - mean);
    const float inverse = 1 / std::sqrt(squares / static_cast<float>(width) + kEpsilon);
    for (std::int64_t i = 0; i < width; ++i)
      store(at<T>(launch, 3)[row * width + i], (widened(x[i]) - mean) * inverse * scale[i] + shift[i]);
    at<float>(launch, 4)[2 * row] = mean;
    at<float>(launch, 4)[2 * row + 1] = inverse;
  }
}

template <typename T>
void layer_norm_backward(const Launch& launch) {
  const std::int64_t width = number(launch, 5);
  const auto* const scale = at<float>(launch, 2);
  for (std::int64_t row = 0; row < launch.grid; ++row) {
    const T* const x = at<T>(launch, 0) + row * width;
    const T* const dy = at<T>(launch, 1) + row * width;
    const float mean = at<float>(launch, 3)[2 * row], inverse = at<float>(launch, 3)[2 * row + 1];
    float sum = 0, product = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      sum += widened(dy[i]) * scale[i];
      product += widened(dy[i]) * scale[i] * (widened(x[i]) - mean) * inverse;
    }
    sum /= static_cast<float>(width);
    product /= static_cast<float>(width);
    for (std::int64_t i = 0; i < width; ++i) {
      const float normal = (widened(x[i]) - mean) * inverse;
      store(at<T>(launch, 4)[row * width + i],
            inverse * (widened(dy[i]) * scale[i] - sum - normal * product));
    }
  }
}

template <typename T>
void layer_norm_parameters(const Launch& launch) {
  const std::int64_t width = number(launch, 6);
  for (std::int64_t i = 0; i < number(launch, 5) * width; ++i) {
    const std::int64_t row = i / width, column = i % width;
    const float gradient = widened(at<T>(launch, 1)[i]);
    const float mean = at<float>(launch, 2)[2 * row], inverse = at<float>(launch, 2)[2 * row + 1];
    at<float>(launch, 3)[column] += gradient * (widened(at<T>(launch, 0)[i]) - mean) * inverse;
    at<float>(launch, 4)[column] += gradient;
  }
}

/// Which word a row picks.
std::int64_t word_of(std::int64_t row, std::int64_t vocabulary) { return row * 7919 % vocabulary; }

template <typename T>
void embedding_forward(const Launch& launch) {
  const std::int64_t width = number(launch, 3);
  for (std::int64_t row = 0; row < launch.grid; ++row) {
    const float* const from = at<float>(launch, 0) + word_of(row, number(launch, 2)) * width;
    for (std::int64_t i = 0; i < width; ++i) store(at<T>(launch, 1)[row * width + i], from[i]);
  }
}

template <typename T>
void embedding_backward(const Launch& launch) {
  const std::int64_t width = number(launch, 3);
  for (std::int64_t row = 0; row < launch.grid; ++row) {
    float* const into = at<float>(launch, 1) + word_of(row, number(launch, 2)) * width;
    for (std::int64_t i = 0; i < width; ++i) into[i] += widened(at<T>(launch, 0)[row * width + i]);
  }
}

template <typename T>
void fill(const Launch& launch) {
  for (std::int64_t i = 0; i < number(launch, 1); ++i) {
    std::uint32_t value = static_cast<std::uint32_t>(i) * 2654435761U + 1U;
    value = (value ^ (value >> 16)) * 0x85ebca6bU;
    value = (value ^ (value >> 13)) * 0xc2b2ae35U;
    value ^= value >> 16;
    const float even = static_cast<float>(value >> 8) * (1.0F / 8388608.0F) - 1.0F;
    store(at<T>(launch, 0)[i], launch.argument<float>(2) + launch.argument<float>(3) * even);
  }
}

void momentum(const Launch& launch) {
  for (std::int64_t i = 0; i < number(launch, 3); ++i) {
    float& velocity = at<float>(launch, 2)[i];
    velocity = 0.9F * velocity + at<float>(launch, 1)[i];
    at<float>(launch, 0)[i] -= launch.argument<float>(4) * velocity;
  }
}

void adam(const Launch& launch) {
  for (std::int64_t i = 0; i < number(launch, 4); ++i) {
    const float gradient = at<float>(launch, 1)[i];
    float& first = at<float>(launch, 2)[i];
    float& second = at<float>(launch, 3)[i];
    first = 0.9F * first + 0.1F * gradient;
    second = 0.999F * second + 0.001F * gradient * gradient;
    at<float>(launch, 0)[i] -= launch.argument<float>(5) * first / (std::sqrt(second) + 1e-8F);
  }
}

constexpr std::size_t kFour[] = {8, 8, 8, 8}, kFive[] = {8, 8, 8, 8, 8}, kSix[] = {8, 8, 8, 8, 8, 8},
                      kSeven[] = {8, 8, 8, 8, 8, 8, 8};
constexpr std::size_t kFillBytes[] = {8, 8, 4, 4}, kMomentumBytes[] = {8, 8, 8, 8, 4},
                      kAdamBytes[] = {8, 8, 8, 8, 8, 4};

constexpr NamedTwin kTwins[] = {
    {"commtune_profile_activation_forward_fp32", activation_forward<float>, kFour},
    {"commtune_profile_activation_forward_bf16", activation_forward<ShortFloat>, kFour},
    {"commtune_profile_activation_backward_fp32", activation_backward<float>, kFive},
    {"commtune_profile_activation_backward_bf16", activation_backward<ShortFloat>, kFive},
    {"commtune_profile_addition_fp32", addition<float>, kFour},
    {"commtune_profile_addition_bf16", addition<ShortFloat>, kFour},
    {"commtune_profile_add_bias_fp32", add_bias<float>, kFour},
    {"commtune_profile_add_bias_bf16", add_bias<ShortFloat>, kFour},
    {"commtune_profile_bias_gradient_fp32", bias_gradient<float>, kFour},
    {"commtune_profile_bias_gradient_bf16", bias_gradient<ShortFloat>, kFour},
    {"commtune_profile_layer_norm_forward_fp32", layer_norm_forward<float>, kSix},
    {"commtune_profile_layer_norm_forward_bf16", layer_norm_forward<ShortFloat>, kSix},
    {"commtune_profile_layer_norm_backward_fp32", layer_norm_backward<float>, kSix},
    {"commtune_profile_layer_norm_backward_bf16", layer_norm_backward<ShortFloat>, kSix},
    {"commtune_profile_layer_norm_parameters_fp32", layer_norm_parameters<float>, kSeven},
    {"commtune_profile_layer_norm_parameters_bf16", layer_norm_parameters<ShortFloat>, kSeven},
    {"commtune_profile_embedding_forward_fp32", embedding_forward<float>, kFour},
    {"commtune_profile_embedding_forward_bf16", embedding_forward<ShortFloat>, kFour},
    {"commtune_profile_embedding_backward_fp32", embedding_backward<float>, kFour},
    {"commtune_profile_embedding_backward_bf16", embedding_backward<ShortFloat>, kFour},
    {"commtune_profile_fill_fp32", fill<float>, kFillBytes},
    {"commtune_profile_fill_bf16", fill<ShortFloat>, kFillBytes},
    {"commtune_profile_momentum", momentum, kMomentumBytes},
    {"commtune_profile_adam", adam, kAdamBytes},
};

}  // namespace

std::span<const NamedTwin> profile_twins() { return kTwins; }

}  // namespace commtune::standin
