#include "executor/session/adoption.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "executor/session/exchange.h"
#include "perfmodel/base/json_reader.h"

namespace commtune {
namespace {

constexpr auto kLastCode = static_cast<std::uint64_t>(ErrorCode::kInterrupted);

std::string dumped(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write(nlohmann::json& document, const std::optional<Refusal>& refusal) {
  if (!refusal) return;
  document["refusal"] = refusal->text;
  document["code"] = static_cast<int>(refusal->code);
}

std::optional<Refusal> refusal_in(const JsonPlace& document) {
  const auto text = document.find("refusal");
  if (!text) return std::nullopt;
  const JsonPlace code = document["code"];
  return Refusal{static_cast<ErrorCode>(code.integer(0, kLastCode)), text->text()};
}

std::string text_of(const AdoptionAnswer& answer) {
  nlohmann::json document{{"plan", answer.digest}};
  if (answer.iteration) document["iteration"] = *answer.iteration;
  write(document, answer.refusal);
  return dumped(document);
}

AdoptionAnswer answer_from(const std::string& text, const std::string& rank) {
  const std::string what = rank + ": its answer to a plan";
  const nlohmann::json document = parse_json(text, what);
  try {
    const JsonPlace place(document);
    const JsonPlace plan = place["plan"];
    AdoptionAnswer answer{plan.text(), {}, refusal_in(place)};
    if (const auto iteration = place.find("iteration")) answer.iteration = iteration->integer(0, 1ULL << 53U);
    return answer;
  } catch (const Error& error) {
    throw Error(error.code(), what + ": " + error.what());
  }
}

/// What is no plan ends no session: it is refused.
void read_plan(const nlohmann::json& document, Announcement& announcement) {
  try {
    announcement.plan = plan_from_json(document);
  } catch (const Error& error) {
    announcement.unreadable = Refusal{error.code(), error.what()};
  }
}

std::optional<Refusal> verdict_on(const Peers& peers, const std::vector<AdoptionAnswer>& answers) {
  std::vector<std::string> plans, iterations;
  for (const AdoptionAnswer& answer : answers) {
    plans.push_back(answer.digest);
    iterations.push_back(answer.iteration ? std::to_string(*answer.iteration) : "");
  }
  if (const auto text = disagreement(peers, "plan", plans)) return Refusal{ErrorCode::kConflict, *text};
  if (const auto text = disagreement(peers, "next iteration", iterations))
    return Refusal{ErrorCode::kConflict, *text};
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (const auto& refusal = answers[rank].refusal)
      return Refusal{refusal->code, describe(peers, static_cast<int>(rank)) + ": " + refusal->text};
  }
  return std::nullopt;
}

}  // namespace

Announcement announce(Communicator& communicator, const Announcement& own, Deadline until) {
  nlohmann::json said{{"next", own.digest}};
  if (own.plan) said["plan"] = to_json(*own.plan);
  const std::string text = broadcast(communicator, dumped(said), until);
  if (communicator.rank() == 0) return own;
  const std::string what = describe(communicator.peers(), 0) + ": its announcement";
  const nlohmann::json document = parse_json(text, what);
  try {
    const JsonPlace place(document);
    const JsonPlace next = place["next"];
    Announcement announcement{next.text(), {}, {}};
    if (const auto plan = place.find("plan")) read_plan(plan->object(), announcement);
    return announcement;
  } catch (const Error& error) {
    throw Error(error.code(), what + ": " + error.what());
  }
}

std::optional<Refusal> judge(Communicator& communicator, const AdoptionAnswer& own, Deadline until) {
  const std::vector<std::string> texts = gather(communicator, text_of(own), until);
  std::vector<AdoptionAnswer> answers;
  answers.reserve(texts.size());
  for (const std::string& text : texts) {
    answers.push_back(answer_from(text, describe(communicator.peers(), static_cast<int>(answers.size()))));
  }
  nlohmann::json verdict = nlohmann::json::object();
  if (communicator.rank() == 0) write(verdict, verdict_on(communicator.peers(), answers));
  const std::string said = broadcast(communicator, dumped(verdict), until);
  const nlohmann::json document = parse_json(said, describe(communicator.peers(), 0) + ": its verdict");
  return refusal_in(JsonPlace(document));
}

}  // namespace commtune
