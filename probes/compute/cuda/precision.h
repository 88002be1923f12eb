#pragma once
// In what numbers a GPU computes.

#include <optional>
#include <string>
#include <string_view>

namespace commtune::compute {

enum class Precision {
  kFp32,  ///< float32 throughout, without tensor cores
  kTf32,  ///< float32 in memory, products of values rounded to 10 bits of mantissa
  kBf16,  ///< activations, and the copies of the weights that are multiplied, in bfloat16
};

std::string to_string(Precision precision);  ///< "fp32", "tf32", "bf16"
/// Nothing for other words.
std::optional<Precision> precision_named(std::string_view name);

}  // namespace commtune::compute
