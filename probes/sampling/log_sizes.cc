#include "probes/sampling/log_sizes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace commtune::probes {

namespace {

constexpr std::uint64_t kElement = 4;  // bytes of a float32, in which gradients are summed

Bytes whole_elements(double bytes) {
  const auto elements = static_cast<std::uint64_t>(std::llround(bytes / static_cast<double>(kElement)));
  return Bytes{std::max<std::uint64_t>(elements, 1) * kElement};
}

}  // namespace

std::vector<Bytes> log_sizes(Bytes first, Bytes last, double factor) {
  std::vector<Bytes> sizes;
  const Bytes end = whole_elements(static_cast<double>(last.count));
  for (double size = static_cast<double>(first.count); size < static_cast<double>(end.count);
       size *= factor) {
    const Bytes rounded = whole_elements(size);
    if (rounded < end && (sizes.empty() || sizes.back() < rounded)) {
      sizes.push_back(rounded);
    }
  }
  sizes.push_back(end);
  return sizes;
}

}  // namespace commtune::probes
