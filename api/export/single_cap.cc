#include "api/export/single_cap.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "api/export/shape.h"
#include "perfmodel/base/overloaded.h"
#include "tuner/messages.h"

namespace commtune::api {
namespace {

/// Bytes of each bucket.
std::vector<Bytes> sizes_of(const Profile& profile, const BucketGroups& groups) {
  std::vector<Bytes> sizes;
  sizes.reserve(groups.size());
  for (const GroupBytes& group : bytes_of(profile, groups)) sizes.push_back(Bytes{group.all});
  return sizes;
}

/// The size of a bucket that makes these buckets by the rule, if one does. Whether buckets are closed at
/// their size or before it, no other than the two that are tried can.
std::optional<Bytes> cap_of(const Profile& profile, const BucketGroups& groups, BucketRule rule) {
  const std::vector<Bytes> sizes = sizes_of(profile, groups);
  const auto before_last = sizes.size() > 1 ? sizes.end() - 1 : sizes.end();
  for (const Bytes cap : {*std::min_element(sizes.begin(), before_last), *std::ranges::max_element(sizes)})
    if (rule(profile, cap) == groups) return cap;
  return std::nullopt;
}

std::optional<Bytes> planned_cap(const Plan& plan, const Profile& profile, BucketRule rule) {
  const std::optional<BucketGroups> groups = consecutive_groups(plan, profile);
  if (!groups) return std::nullopt;
  return cap_of(profile, *groups, rule);
}

}  // namespace

std::vector<Bytes> caps_to_try(const Profile& profile) {
  const std::uint64_t total = profile.gradient_bytes().count;
  std::vector<Bytes> caps;
  for (std::size_t buckets = 1; buckets <= profile.tensor_count();
       buckets += std::max<std::size_t>(1, buckets / 10))
    caps.push_back(Bytes{(total + buckets - 1) / buckets});
  return caps;
}

Plan bucket_plan(const Plan& plan, const Profile& profile, const BucketGroups& groups) {
  Plan out;
  out.model = plan.model;
  out.profile = plan.profile;
  out.layout = plan.layout;
  out.workers = plan.workers;
  out.road = match(
      plan.road, [](const AllReduce& all) { return Road{all}; },
      [](const ParameterServer&) { return Road{AllReduce{}}; });
  if (!goes_through_servers(plan.road)) out.library = plan.library;
  out.messages = tuner::fused_messages(profile, groups);
  out.priority = tuner::list_priorities(groups.size());
  return out;
}

std::optional<Seconds> predicted_time(const Plan& plan, const Profile& profile, const BucketGroups& groups,
                                      const PredictedTime& predict) {
  if (!predict) return std::nullopt;
  return predict(bucket_plan(plan, profile, groups));
}

SingleCap best_single_cap(const Plan& plan, const Profile& profile, BucketRule rule,
                          const PredictedTime& predict) {
  const std::uint64_t total = profile.gradient_bytes().count;
  const Bytes as_many{(total + plan.messages.size() - 1) / plan.messages.size()};
  const Bytes first = planned_cap(plan, profile, rule).value_or(as_many);
  SingleCap best{rule(profile, first), first, {}};
  best.predicted = predicted_time(plan, profile, best.groups, predict);
  std::set<BucketGroups> tried{best.groups};
  std::vector<Bytes> caps;
  if (best.predicted) caps = caps_to_try(profile);
  caps.push_back(as_many);
  for (const Bytes cap : caps) {
    BucketGroups groups = rule(profile, cap);
    if (!tried.insert(groups).second) continue;
    const std::optional<Seconds> time = predicted_time(plan, profile, groups, predict);
    if (!time || !best.predicted || *time >= *best.predicted) continue;
    best = {std::move(groups), cap, time};
  }
  // What several sizes make is asked for by the buckets' own: memory is set aside for it.
  best.cap = cap_of(profile, best.groups, rule).value_or(best.cap);
  return best;
}

std::string prediction_text(const std::optional<Seconds>& time) {
  return time ? fmt::format(", {} an iteration predicted", format_time(*time)) : std::string();
}

std::string describe(const SingleCap& single) {
  return single.predicted ? "the best single cap" + prediction_text(single.predicted)
                          : "a single cap for as many buckets";
}

void add_single_cap_gaps(const Plan& plan, const Profile& profile, const SingleCap& single,
                         std::string_view framework, Exported& out) {
  if (consecutive_groups(plan, profile) == single.groups) return;
  const PlanShape shape = shape_of(plan);
  const std::vector<Bytes> sizes = sizes_of(profile, single.groups);
  const auto [least, most] = std::ranges::minmax(sizes);
  out.not_expressed.push_back(fmt::format(
      "the plan's {} messages of {} to {}: {} has one size for all buckets; this one makes {} of {} to {}",
      shape.sizes.size(), format_size(shape.smallest), format_size(shape.largest), framework,
      single.groups.size(), format_size(least), format_size(most)));
}

}  // namespace commtune::api
