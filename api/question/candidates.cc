#include "api/question/candidates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "api/error_status.h"
#include "api/question/question_fields.h"

namespace commtune::api {
namespace {

constexpr std::string_view kClusterOfCandidate = "cluster";

std::string_view name_at_a_shell(const Knob& knob) { return long_flag(knob).substr(2); }

const Knob& placement_knob(std::string_view name) {
  const auto found = std::ranges::find(knob::kPlacement, name, name_at_a_shell);
  if (found != std::end(knob::kPlacement)) return *found;
  std::vector<std::string_view> known{kClusterOfCandidate};
  for (const Knob& knob : knob::kPlacement) known.push_back(name_at_a_shell(knob));
  throw Error(ErrorCode::kBadInput,
              fmt::format("\"{}\" says nothing of a candidate: expected {}", name, fmt::join(known, ", ")));
}

/// What a request would have there. A number that is none stays a text, which the reader refuses.
nlohmann::json value_of(const Knob& knob, const std::string& text) {
  if (knob.takes == Takes::kTruth && text.empty()) return true;
  if (knob.takes == Takes::kText) return text;
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_discarded() ? nlohmann::json(text) : value;
}

/// How fast a candidate's workers work together: in proportion to samples per second, also where nobody knows
/// how many samples an iteration has. 0 where there is no answer.
double work_rate(const nlohmann::json& answer) {
  if (answer.at("status") != "planned") return 0;
  return answer.at("workers").get<double>() / answer.at("iteration").at("seconds").get<double>();
}

}  // namespace

CandidateAllocation candidate_from_text(const std::string& text) {
  std::istringstream words(text);
  std::string name, word;
  words >> name;
  if (name.find('=') != std::string::npos)
    throw Error(ErrorCode::kBadInput, fmt::format("\"{}\": begins with a name: \"both {}\"", text, text));
  nlohmann::json document{{"name", name}};
  while (words >> word) {
    const std::size_t equals = word.find('=');
    const std::string said = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? std::string() : word.substr(equals + 1);
    if (said == kClusterOfCandidate) {
      document[said] = value;
    } else {
      const Knob& knob = placement_knob(said);
      document[std::string(knob.name)] = value_of(knob, value);
    }
  }
  CandidateAllocation candidate;
  fields::read_fields(JsonPlace(document), candidate);
  return candidate;
}

nlohmann::json unknown_answer(ErrorCode code, const std::string& reason) {
  return {{"status", "unknown"}, {"code", error_status(code).name}, {"reason", reason}};
}

nlohmann::json compare_candidates(const Question& question, const AnswerCandidate& answer) {
  nlohmann::json rows = nlohmann::json::array();
  nlohmann::json best = nullptr;
  double fastest = 0;
  for (const CandidateAllocation& candidate : question.candidates) {
    nlohmann::json own;
    try {
      own = answer(candidate, candidate.cluster.empty()
                                  ? question.cluster
                                  : ClusterChoice{candidate.cluster, {}, question.cluster.transport});
    } catch (const Error& error) {
      const bool refused = question.strict && error.code() == ErrorCode::kConflict;
      const bool nothing_for_it = error.code() == ErrorCode::kNotFound ||
                                  error.code() == ErrorCode::kPoorFit || error.code() == ErrorCode::kTimeout;
      if (!refused && !nothing_for_it) throw;
      own = unknown_answer(error.code(), error.what());
    }
    if (const double rate = work_rate(own); rate > fastest) {
      fastest = rate;
      best = candidate.name;
    }
    rows.push_back({{"name", candidate.name}, {"answer", std::move(own)}});
  }
  return {{"status", "compared"}, {"best", std::move(best)}, {"candidates", std::move(rows)}};
}

}  // namespace commtune::api
