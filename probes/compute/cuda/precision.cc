#include "probes/compute/cuda/precision.h"

namespace commtune::compute {

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      return "bf16";
  }
  return {};
}

std::optional<Precision> precision_named(std::string_view name) {
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    if (name == to_string(precision)) return precision;
  }
  return std::nullopt;
}

}  // namespace commtune::compute
