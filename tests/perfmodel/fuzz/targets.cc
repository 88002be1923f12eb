#include "tests/perfmodel/fuzz/targets.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/base/units.h"
#include "perfmodel/cluster.h"
#include "perfmodel/nccl/tuning_table.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "tests/fuzz/require.h"
#include "tests/perfmodel/synthetic_profile.h"

namespace commtune::fuzz {

namespace {

/// What is read, written, and read again has not changed.
template <typename Value, typename Read>
void require_round_trip(const Value& value, const Read& read) {
  const nlohmann::json json = to_json(value);
  const std::string text = json.dump();
  const std::optional<Value> again = refused_or([&] { return read(parse_json(text, "again")); });
  require(again.has_value(), "what was written can be read");
  require(to_json(*again).dump() == text, "what was written is what was read");
}

bool is_cost(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

void require_cost(const Fit& fit) {
  double before = 0;
  for (std::uint64_t m = 0; m < (std::uint64_t{1} << 62); m = 3 * m + 1) {
    const double now = fit.curve(Bytes{m}).count();
    require(is_cost(now) && now >= before * (1 - 1e-6), "a curve is a cost that never falls");
    before = now;
  }
}

}  // namespace

void profile(std::string_view text) {
  const auto value = refused_or([&] { return profile_from_json(parse_json(text, "input")); });
  if (!value) {
    return;
  }
  require_round_trip(*value, profile_from_json);
  require(digest(*value).size() == 16, "a digest has 16 digits");
  require(is_cost(value->forward().count()) && is_cost(value->backward().count()), "times add up");
  std::uint64_t bytes = 0;
  for (const TensorRef& tensor : tensors_of(*value)) {
    require(bytes + tensor.bytes.count > bytes, "sizes add up");
    bytes += tensor.bytes.count;
  }
  require(bytes == value->gradient_bytes().count, "sizes add up to the gradient's");
  refused_or([&] { return scaled(*value, 0.3, 1e3); });
  refused_or([&] { return scaled(*value, 1e9, 1e-9); });
}

void plan(std::string_view text) {
  static const Profile kProfile = synthetic_profile(2, 64_B, Seconds{1}, Seconds{1});
  const auto value = refused_or([&] { return plan_from_json(parse_json(text, "input")); });
  if (!value) {
    return;
  }
  require_round_trip(*value, plan_from_json);
  require(digest(*value).size() == 16, "a digest has 16 digits");
  require(ranks_of(*value) >= value->workers, "ranks are at least the workers");
  for (const Message& message : value->messages) {
    require(message_bytes(message).count >= message.pieces.size(), "a piece has at least a byte");
  }
  require(!describe(value->road).empty(), "a road has a description");
  Plan ours = *value;  // so that check() gets past the digest
  ours.profile = digest(kProfile);
  refused_or([&] {
    check(ours, kProfile);
    return true;
  });
}

void cluster(std::string_view text) {
  const auto value = refused_or([&] { return cluster_from_json(parse_json(text, "input")); });
  if (!value) {
    return;
  }
  require_round_trip(*value, cluster_from_json);
  require(value->ranks() >= 0 && static_cast<std::size_t>(value->ranks()) >= value->hosts.size(),
          "each host has a slot");
  for (const auto& [name, link] : value->links) {
    require_cost(link.alone);
    require_cost(link.streamed);
    require_cost(link.duplex);
  }
  for (const OperationFit& fit : value->operations) {
    require_cost(fit.alone);
    require_cost(fit.streamed);
    require(find_operation(*value, fit.road, fit.operation, fit.workers) != nullptr,
            "what is there is found");
  }
}

void nccl_tuning(std::string_view text) {
  const std::string body(text);
  for (const std::string& whole : {body, body + ":" + Digest().add(body).hex()}) {
    const auto table = refused_or([&] { return nccl_tuning_table_from_text(whole); });
    if (!table) continue;
    require(nccl_tuning_table_from_text(to_text(*table)).choices.size() == table->choices.size(),
            "a table comes back from its text");
    for (const NcclChoices& choices : table->choices) {
      for (const NcclRange& range : choices.ranges)
        require(range_of(choices, range.first) == &range && range_of(choices, range.last) == &range,
                "a range holds its ends");
    }
  }
}

void quantity(std::string_view text) {
  if (const auto rate = refused_or([&] { return parse_rate(text); })) {
    require(std::isfinite(rate->value) && rate->value > 0, "a rate is positive");
    require(!format_bandwidth(*rate).empty(), "a rate has a text");
  }
  if (const auto size = refused_or([&] { return parse_size(text); })) {
    require(size->count <= INT64_MAX, "a size fits a signed integer");
    require(!format_size(*size).empty(), "a size has a text");
    require(parse_size(std::to_string(size->count) + "B") == *size, "a size in bytes is itself");
  }
  if (const auto time = refused_or([&] { return parse_duration(text); })) {
    require(is_cost(time->count()), "a duration is not negative");
    require(!format_time(*time).empty(), "a duration has a text");
  }
}

}  // namespace commtune::fuzz
