#include "api/wire/order.h"

#include "executor/replay/run_fields.h"
#include "perfmodel/base/fields.h"
#include "perfmodel/base/json_reader.h"
#include "probes/option_fields.h"

namespace commtune::api {
namespace {

using nlohmann::json;

constexpr std::string_view kOrderFormat = "commtune/order/1";
constexpr std::size_t kMostSamples = 10'000'000, kMostProfiles = 100;
constexpr std::size_t kMostPlans = 10'000;
constexpr std::uint64_t kMostWorkers = 1'000'000;

/// What has readers and writers of its own.
struct Document {};

void read_value(const JsonPlace& place, Plan& plan, const Document& /*rule*/) {
  plan = plan_from_json(place.object());
}
void read_value(const JsonPlace& place, Profile& profile, const Document& /*rule*/) {
  profile = profile_from_json(place.object());
}
void read_value(const JsonPlace& place, probes::ProbeSample& sample, const Document& /*rule*/) {
  sample = probes::probe_sample_from_json(place.object());
}
json written(const Plan& plan, const Document& /*rule*/) { return commtune::to_json(plan); }
json written(const Profile& profile, const Document& /*rule*/) { return commtune::to_json(profile); }
json written(const probes::ProbeSample& sample, const Document& /*rule*/) { return probes::to_json(sample); }

}  // namespace

template <typename Visitor, fields::Of<ProbeOrder> Given>
void visit_fields(Visitor& visit, Given& order) {
  visit.constant("format", kOrderFormat);
  visit.constant("order", "probe");
  visit("network", order.network, fields::Text{});
  visit("options", order.options, fields::Object{});
  visit("earlier_fingerprint", order.earlier_fingerprint, fields::Text{});
  visit("earlier", order.earlier, fields::ListOf{0, kMostSamples, Document{}});
  visit("compare", order.compare, fields::Truth{});
  visit.when_set("subnet", order.subnet, fields::Text{});
  visit.when_set("network_options", order.network_options, fields::Text{});
  visit("profiles", order.profiles, fields::ListOf{0, kMostProfiles, Document{}});
}

template <typename Visitor, fields::Of<RunOrder> Given>
void visit_fields(Visitor& visit, Given& order) {
  visit.constant("format", kOrderFormat);
  visit.constant("order", "run");
  visit("network", order.network, fields::Text{});
  const auto plan_fields = [](auto& each, auto& plan) {
    each("plan", plan.plan, Document{});
    each("options", plan.options, fields::Object{});
  };
  visit("plans", order.plans, fields::ListOf{1, kMostPlans, fields::ObjectOf{plan_fields}});
  visit("profile", order.profile, Document{});
  visit("rounds", order.rounds, fields::Whole{1, 1'000'000});
  visit("pace_bytes_per_second", order.pace, fields::Real{0, 1e15});
  visit.when_set("subnet", order.subnet, fields::Text{});
  visit.when_set("network_options", order.network_options, fields::Text{});
}

template <typename Visitor, fields::Of<SessionOrder> Given>
void visit_fields(Visitor& visit, Given& order) {
  visit.constant("format", kOrderFormat);
  visit.constant("order", "session");
  visit("network", order.network, fields::Text{});
  visit("workers", order.workers, fields::Whole{1, kMostWorkers});
  visit("profile", order.profile, Document{});
  visit("result", order.result, fields::OneOf{kResults});
  visit("timeout_seconds", order.timeout, fields::Real{0, 1e7});
  visit("chunk_bytes", order.chunk, fields::Whole{0, std::uint64_t{1} << 50U});
  visit.when_set("device", order.device, fields::OneOf{kDeviceKinds});
  visit("pace_bytes_per_second", order.pace, fields::Real{0, 1e15});
  visit.when_set("subnet", order.subnet, fields::Text{});
  visit.when_set("network_options", order.network_options, fields::Text{});
}

namespace {

/// A line that brings a plan.
struct PlanLine {
  PlannedRun run;
};

template <typename Visitor, fields::Of<PlanLine> Given>
void visit_fields(Visitor& visit, Given& line) {
  visit.constant("format", kOrderFormat);
  visit.constant("order", "plan");
  visit("plan", line.run.plan, Document{});
  visit("options", line.run.options, fields::Object{});
}

}  // namespace

json settings_of(const probes::ProbeOptions& options) { return fields::write_fields(options); }

json settings_of(const RunOptions& options) { return fields::write_fields(options); }

json to_json(const Order& order) {
  return std::visit([](const auto& one) { return fields::write_fields(one); }, order);
}

Order order_from_json(const json& document) {
  const JsonPlace place(document);
  place.expect_format(kOrderFormat);
  const JsonPlace kind = place["order"];
  const std::string what = kind.name();
  Order order;
  if (what == "probe") {
    fields::read_fields(place, order.emplace<ProbeOrder>());
  } else if (what == "run") {
    fields::read_fields(place, order.emplace<RunOrder>());
  } else if (what == "session") {
    fields::read_fields(place, order.emplace<SessionOrder>());
  } else {
    kind.fail("\"probe\", \"run\" or \"session\"");
  }
  return order;
}

json next_plan_to_json(const std::optional<PlannedRun>& next) {
  if (next) return fields::write_fields(PlanLine{*next});
  return {{"format", kOrderFormat}, {"order", "end"}};
}

std::optional<PlannedRun> next_plan_from_json(const json& document) {
  const JsonPlace place(document);
  place.expect_format(kOrderFormat);
  const JsonPlace kind = place["order"];
  if (kind.name() == "end") return std::nullopt;
  PlanLine line;
  fields::read_fields(place, line);
  return std::move(line.run);
}

}  // namespace commtune::api
