#pragma once
// What benches on a GPU share: times on the device's clock, figures, and whether they mean anything.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/memory/cuda/device.h"

namespace commtune::bench {

inline constexpr int kSkipped = 77;  ///< exit status of what could not be measured here

/// What main() returns: what run() does, kSkipped where why_not() says what is missing, 1 where either
/// throws.
template <typename WhyNot, typename Run>
int exit_status(std::string_view bench, WhyNot why_not, Run run) {
  try {
    if (const std::string why = why_not(); !why.empty()) {
      fmt::print("skipped: {}\n", why);
      return kSkipped;
    }
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", bench, error.what());
    return 1;
  }
}

inline double median_of(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// How far two series of the same thing are apart, by the smaller one.
inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
  const double x = median_of(a);
  const double y = median_of(b);
  return std::abs(x - y) / std::min(x, y);
}

/// Times on the stand-in are the processor's, and no target is judged by them.
inline bool is_standin(const cuda::Gpu& gpu) { return gpu.name().find("stand-in") != std::string::npos; }

/// Seconds on the device from the first to the last of what `put` puts on the stream.
inline double seconds_on(const cuda::Stream& stream, const std::function<void()>& put) {
  cuda::Event begin(cuda::Event::Use::kTime);
  cuda::Event end(cuda::Event::Use::kTime);
  begin.record(stream);
  put();
  end.record(stream);
  end.synchronize();
  return end.since(begin).count();
}

}  // namespace commtune::bench
