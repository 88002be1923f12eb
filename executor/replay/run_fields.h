#pragma once
// The fields of a run's options as ranks are told them and as they are stored beside what was measured.

#include <string_view>
#include <utility>

#include "executor/replay/run.h"
#include "perfmodel/base/fields.h"
#include "perfmodel/device_kind.h"

namespace commtune {

inline constexpr std::pair<std::string_view, Result> kResults[] = {{"sum", Result::kSum},
                                                                   {"mean", Result::kMean}};

template <typename Visitor, fields::Of<RunOptions> Given>
void visit_fields(Visitor& visit, Given& options) {
  constexpr fields::Whole kCount{0, 1'000'000};
  visit("iterations", options.iterations, fields::Whole{0, 100'000'000});
  visit("warmup", options.warmup, kCount);
  visit("check_iterations", options.check_iterations, kCount);
  visit("result", options.result, fields::OneOf{kResults});
  visit("timeout_seconds", options.timeout, fields::Real{0, 1e7});
  visit("chunk_bytes", options.chunk, fields::Whole{0, std::uint64_t{1} << 50U});
  visit("trace_directory", options.trace_directory, fields::Text{});
  visit("trace_steps", options.trace_steps, kCount);
  visit.when_set("device", options.device, fields::OneOf{kDeviceKinds});
}

}  // namespace commtune
