#pragma once
// The fields of a probe's options as ranks are told them and as they are stored beside what was measured.
// Not among them: `already`, which rank 0 gets as samples.

#include "perfmodel/base/fields.h"
#include "perfmodel/device_kind.h"
#include "perfmodel/road_fields.h"
#include "probes/options.h"

namespace commtune::probes {

template <typename Visitor, fields::Of<ProbeOptions> Given>
void visit_fields(Visitor& visit, Given& options) {
  constexpr fields::Whole kSize{0, std::uint64_t{1} << 50U};
  constexpr fields::Whole kCount{0, 1'000'000}, kSome{1, 1'000'000};
  constexpr fields::Real kTime{0, 1e7};
  const auto road_of_algorithm = [](auto& road, auto& algorithm) {
    road.constant("kind", "all-to-all");
    road("algorithm", algorithm, fields::OneOf{kCollectives});
  };
  visit.when_set("budget_seconds", options.budget, kTime);
  visit("traffic_bytes", options.traffic, kSize);
  visit("first_bytes", options.first, kSize);
  visit("last_bytes", options.last, kSize);
  visit("factor", options.factor, fields::Real{1, 1e6});
  visit("warmup", options.warmup, kCount);
  visit("iterations", options.iterations, kSome);
  visit("max_iterations", options.max_iterations, kSome);
  visit("width", options.width, fields::Real{0, 1e3});
  visit("algorithms", options.algorithms, fields::ListOf{0, 100, fields::ObjectOf{road_of_algorithm}});
  visit("servers", options.servers, fields::ListOf{0, 10'000, fields::Object{}});
  visit("groups", options.groups, fields::ListOf{0, 10'000, kSome});
  visit("most_pairs_hosts", options.most_pairs_hosts, kCount);
  visit("seed", options.seed, fields::Whole{0, ~std::uint64_t{0}});
  visit("exclusive", options.exclusive, fields::Truth{});
  visit("timeout_seconds", options.timeout, kTime);
  visit("settings", options.settings, fields::Texts{10'000, "settings"});
  visit("cluster_name", options.cluster_name, fields::Name{});
  visit.when_set("chunk_bytes", options.chunk, kSize);
  visit.when_set("device", options.device, fields::OneOf{kDeviceKinds});
  visit.when_set("sm_share", options.sm_share, fields::Real{0, 1});
  visit.when_set("for", options.models, fields::ListOf{0, 100, fields::Name{}});
}

}  // namespace commtune::probes
