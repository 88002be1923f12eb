#include "api/question/question.h"

#include <fmt/format.h>

#include "api/question/question_fields.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::api {
namespace {

constexpr std::pair<std::string_view, Keep> kKeeps[] = {
    {"none", Keep::kNone}, {"chosen", Keep::kChosen}, {"all", Keep::kAll}};
constexpr std::size_t kMostCandidates = 64;
constexpr int kUsualMost = 64;  // workers that are recommended at most, where no number is said

// Rules of fields that more than one kind of value suits.
struct NameOrProfile {};
struct NameOrCluster {};
struct RecommendationRule {};
struct NumberOrLimits {};
struct TruthOrMethod {};
/// "5s" as on the command line.
struct Duration {
  const Knob& knob;
};

void read_value(const JsonPlace& place, Question& question, const NameOrProfile& /*rule*/) {
  if (place.is_object()) {
    question.profile = profile_from_json(place.object());
  } else {
    question.model = place.name();
  }
}

void read_value(const JsonPlace& place, ClusterChoice& cluster, const NameOrCluster& /*rule*/) {
  if (place.is_object()) cluster.given = cluster_from_json(place.object());
  cluster.name = cluster.given ? cluster.given->name : place.name();
}

void read_value(const JsonPlace& place, Question& question, const RecommendationRule& /*rule*/) {
  question.most_workers = kUsualMost;
  const auto list = [](auto& visit, auto& recommended) {
    visit_knob(visit, knob::kRecommendWorkers, recommended.most_workers);
    visit_knob(visit, knob::kLeastEfficiency, recommended.least_efficiency);
  };
  fields::read_fields(place, question, fields::ObjectOf{list});
}

void read_value(const JsonPlace& place, std::optional<Seconds>& value, const Duration& rule) {
  Seconds time{};
  try {
    time = parse_duration(place.name());
  } catch (const Error& error) {
    place.fail_because(error.what());
  }
  if (time.count() < rule.knob.least || time.count() > rule.knob.most)
    place.fail_because(
        fmt::format("{}: must be from {} s to {} s", place.name(), rule.knob.least, rule.knob.most));
  value = time;
}

void read_value(const JsonPlace& place, std::optional<tuner::VerifyLimits>& verify,
                const NumberOrLimits& /*rule*/) {
  tuner::VerifyLimits& limits = verify.emplace();
  if (place.is_number()) {
    fields::read_value(place, limits.plans, whole(knob::kVerify));
  } else {
    const auto list = [](auto& visit, auto& given) { visit_limits(visit, given); };
    fields::read_fields(place, limits, fields::ObjectOf{list});
  }
}

void read_value(const JsonPlace& place, std::optional<std::string>& explain, const TruthOrMethod& /*rule*/) {
  if (!place.is_truth()) {
    explain = place.name();
  } else if (place.truth()) {
    explain = "";
  }
}

}  // namespace

template <typename Visitor, fields::Of<Question> Given>
void visit_fields(Visitor& visit, Given& question) {
  visit("model", question, NameOrProfile{});
  visit("cluster", question.cluster, NameOrCluster{});
  visit_knob(visit, knob::kTransport, question.cluster.transport);
  visit_fields(visit, question.allocation);
  visit_knob(visit, knob::kDraws, question.draws);
  visit_knob(visit, knob::kSeed, question.seed);
  visit_knob(visit, knob::kThorough, question.thorough);
  visit(fields::optional(fields::Field(knob::kBarrier.name)), question.barrier, fields::OneOf{kBarriers});
  visit(fields::optional(fields::Field(knob::kWire.name)), question.wire, fields::OneOf{kWireFormats});
  visit(fields::optional("keep"), question.keep, fields::OneOf{kKeeps});
  visit_knob(visit, knob::kStrict, question.strict);
  visit(fields::optional("overrides"), question.overrides, fields::Object{});
  visit(fields::optional("recommend_workers"), question, RecommendationRule{});
  visit(fields::optional(fields::Field(knob::kCandidates.name)), question.candidates,
        fields::ListOf{1, kMostCandidates, fields::Object{}});
  visit(fields::optional(fields::Field(knob::kExplain.name)), question.explain, TruthOrMethod{});
  visit(fields::optional("plan_time"), question.plan_time, Duration{knob::kPlanTime});
  visit(fields::optional("check"), question.check, Duration{knob::kCheck});
  visit(fields::optional("verify"), question.verify, NumberOrLimits{});
}

bool Question::is_changed() const {
  return overrides.any() || !allocation.nodes.empty() || allocation.node_count > 0 ||
         allocation.devices_per_node > 0 || wire != WireFormat::kAsIs;
}

void check_runs(const Question& question) {
  const Allocation& allocation = question.allocation;
  const std::pair<bool, std::string_view> rules[] = {
      {question.overrides.any(), "overrides: no plan can be run on a what-if, since no cluster is so"},
      {!allocation.nodes.empty(), "nodes: runs choose no hosts: they are on the cluster's first ranks"},
      {allocation.node_count > 0, "node_count: runs are on the cluster's own hosts"},
      {allocation.devices_per_node > 0, "devices_per_node: runs are on the cluster's own slots"},
      {question.wire != WireFormat::kAsIs, "wire: plans that cast are run by name, not before the answer"},
      {question.most_workers > 0, "recommend_workers: cannot be measured by runs; ask for it on its own"},
      {!question.candidates.empty(), "candidates: cannot be run; ask for each on its own"},
      {question.keep == Keep::kNone, "keep: plans that are run are stored, all of the ranking"}};
  for (const auto& [broken, rule] : rules)
    if (broken) throw Error(ErrorCode::kBadInput, std::string(rule));
}

void check_candidates(const Question& question) {
  if (question.explain && !question.candidates.empty())
    throw Error(ErrorCode::kBadInput,
                "explain: candidates are compared, not explained; ask for one on its own");
}

bool Overrides::any() const { return *this != Overrides{}; }

Overrides overrides_from_json(const JsonPlace& place) {
  Overrides overrides;
  fields::read_fields(place, overrides);
  return overrides;
}

nlohmann::json to_json(const Overrides& overrides) {
  return overrides.any() ? fields::write_fields(overrides) : nlohmann::json();
}

std::string to_string(Keep keep) { return enum_name(keep, kKeeps); }

Keep keep_named(const std::string& name) {
  const nlohmann::json value(name);
  return read_enum(JsonPlace(value), kKeeps);
}

Question question_from_json(const nlohmann::json& body) {
  Question question;
  fields::read_fields(JsonPlace(body), question);
  if (question.asks_for_runs()) check_runs(question);
  check_candidates(question);
  return question;
}

}  // namespace commtune::api
