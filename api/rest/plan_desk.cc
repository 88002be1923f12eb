#include "api/rest/plan_desk.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "api/error_status.h"
#include "api/rest/busy.h"
#include "api/rest/message.h"
#include "perfmodel/error.h"
#include "tuner/tuner.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestKeptBody = 4096;

json unknown(ErrorCode code, const std::string& reason) {
  return {{"status", "unknown"}, {"code", error_status(code).name}, {"reason", reason}};
}

/// Of a stored ranking; those from before there was a time limit are.
bool is_complete(const json& ranking) {
  const auto answer = ranking.find("answer");
  return answer == ranking.end() || answer->value("complete", true);
}

/// Everything that the answer depends on.
std::string key_of(const Question& question, const KnownProfile& profile, const FitMarks& marks,
                   const json& record) {
  json key = record;
  put_marks(key, marks);
  key["model"] = profile.profile.model;
  key["profile"] = profile.digest;
  key["keep"] = to_string(question.keep);
  key["most_workers"] = question.most_workers;
  key["least_efficiency"] = question.least_efficiency;
  return key.dump();
}

/// An answer's text, which lacks the one member that differs when it is given again: so it is written once.
std::string with_cached(bool cached, std::string_view text) {
  return fmt::format("{{\"cached\":{},{}", cached, text.substr(1));
}

}  // namespace

std::optional<PlanDesk::Said> PlanDesk::known(const std::string& body) {
  KeptPointer kept;
  {
    const std::lock_guard lock(mutex_);
    const KeptPointer* const found = by_body_.find(body);
    if (found == nullptr) return {};
    kept = *found;
  }
  const FitBook::Known now = parts_.fits.find(kept->cluster);
  if (!now.fit || now.fit->id != kept->fit || marks_of(now) != kept->marks) return {};
  ++parts_.metrics.plans_cached;
  return Said{*kept->text, kept->plan, false};
}

FitMarks PlanDesk::marks_of(const FitBook::Known& known) const {
  return {is_stale(*known.fit, {parts_.fit_age, system_now()}), known.differences};
}

PlanDesk::Said PlanDesk::answer(const std::string& body, const Question& question, const Caller& caller) {
  Asker asker{caller, parts_.plan_time};
  if (!question.candidates.empty()) return {to_text(answer_candidates(question, asker)), 0, false};
  const One one = answer_one(question, question.seats, question.cluster, asker);
  if (one.kept && body.size() <= kLongestKeptBody) {
    const std::lock_guard lock(mutex_);
    by_body_.put(body, one.kept);
  }
  return {one.text.empty() ? to_text(one.document) : one.text, one.document.value("id", RowId{0}),
          one.created};
}

json PlanDesk::answer_candidates(const Question& question, Asker& asker) {
  json rows = json::array();
  json best = nullptr;
  double fastest = 0;
  for (const Candidate& candidate : question.candidates) {
    json answer;
    try {
      const std::string& cluster = candidate.cluster.empty() ? question.cluster : candidate.cluster;
      answer = answer_one(question, candidate.seats, cluster, asker).document;
    } catch (const Error& error) {
      const bool refused = question.strict && error.code() == ErrorCode::kConflict;
      const bool nothing_for_it = error.code() == ErrorCode::kNotFound ||
                                  error.code() == ErrorCode::kPoorFit || error.code() == ErrorCode::kTimeout;
      if (!refused && !nothing_for_it) throw;
      answer = unknown(error.code(), error.what());
    }
    const double rate = answer.value("samples_per_second", 0.0);
    if (rate > fastest) {
      fastest = rate;
      best = candidate.name;
    }
    rows.push_back({{"name", candidate.name}, {"answer", std::move(answer)}});
  }
  return {{"status", "compared"}, {"best", std::move(best)}, {"candidates", std::move(rows)}};
}

PlanDesk::One PlanDesk::answer_one(const Question& question, const Seats& seats, const std::string& cluster,
                                   Asker& asker) {
  ProfilePointer profile;
  if (question.profile) {
    profile =
        std::make_shared<const KnownProfile>(KnownProfile{*question.profile, digest(*question.profile)});
  } else {
    profile = parts_.profiles.find(question.model);
  }
  const FitBook::Known known = parts_.fits.find(cluster);
  if (!known.registered)
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("cluster \"{}\": not registered; register it with: tune probe --cluster {} --hosts FILE",
                    cluster, cluster));
  try {
    if (!known.fit)
      throw Error(ErrorCode::kNotFound,
                  fmt::format("cluster \"{}\" has no fit yet: its probe has not ended", cluster));
    FitMarks marks = marks_of(known);
    if (question.strict) refuse_differences(marks.differences);
    Case made = make_case(question, seats, profile->profile, known.fit->snapshot);
    json record = record_of(made, question.overrides, cluster, known.fit->id);
    std::string key = key_of(question, *profile, marks, record);
    return compute(question,
                   {std::move(made), known.fit, std::move(marks), std::move(record), std::move(key)}, asker);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    ++parts_.metrics.plans_unknown;
    return {unknown(error.code(), error.what()), {}, nullptr, false};
  }
}

PlanDesk::One PlanDesk::compute(const Question& question, Asked asked, Asker& asker) {
  const std::string& key = asked.key;
  const FitPointer& fit = asked.fit;
  std::promise<KeptPointer> done;
  for (;;) {  // one at a time works on a question; the others wait for its answer
    std::shared_future<KeptPointer> other;
    {
      const std::lock_guard lock(mutex_);
      if (const KeptPointer* kept = by_key_.find(key)) {
        ++parts_.metrics.plans_cached;
        return {json::parse(*(*kept)->text), *(*kept)->text, *kept, false};
      }
      const auto [found, ours] = under_way_.try_emplace(key, done.get_future().share());
      if (ours) break;
      other = found->second;
      done = std::promise<KeptPointer>();
    }
    // Whoever waited would run out of time as well: he is not made to wait once more.
    if (const KeptPointer said = other.get(); said && !said->complete)
      return {json::parse(*said->text), *said->text, nullptr, false};
  }
  const auto leave = [&] {
    const std::lock_guard lock(mutex_);
    under_way_.erase(key);
  };
  try {
    const auto begin = std::chrono::steady_clock::now();
    Given given{{}, question, std::move(asked.made), {}};
    {
      const Permit permit(parts_.busy, parts_.compute_time);
      tune(given, asker);
    }
    given.outcome.fit = fit->id;
    given.outcome.marks = asked.marks;
    const bool complete = given.outcome.answer.complete;
    const bool created = keep(given, asked.record, asker.caller);
    json document = answer_to_json(std::move(given));
    document.erase("cached");
    const std::string text = to_text(document);
    auto kept =
        std::make_shared<const Kept>(Kept{fit->cluster_name, fit->id, asked.marks,
                                          std::make_shared<const std::string>(with_cached(complete, text)),
                                          document.at("id").get<RowId>(), complete});
    document["cached"] = false;
    ++parts_.metrics.plans_made;
    if (!complete) ++parts_.metrics.plans_incomplete;
    parts_.metrics.planning.observe(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (complete) {
      const std::lock_guard lock(mutex_);
      by_key_.put(key, kept);
    }
    leave();
    done.set_value(kept);
    if (created) parts_.events.publish("plan", {{"id", kept->plan}});
    return {std::move(document), with_cached(false, text), complete ? std::move(kept) : nullptr, created};
  } catch (const Error& error) {
    leave();
    if (error.code() == ErrorCode::kTimeout) {
      done.set_exception(std::current_exception());
    } else {
      done.set_value(nullptr);
    }
    throw;
  } catch (...) {
    leave();
    done.set_value(nullptr);
    throw;
  }
}

void PlanDesk::tune(Given& given, Asker& asker) {
  const auto begin = parts_.clock();
  tuner::TuneOptions limited = given.made.options;
  limited.out_of_time = out_of_time_at(begin + asker.left, parts_.clock, parts_.stopping);
  given.outcome.answer = tuner::tune(given.made.profile, given.made.cluster, limited);
  asker.left -= parts_.clock() - begin;
  const Question& question = given.question;
  if (question.most_workers == 0 || !given.outcome.answer.complete) return;
  tuner::Watch watch = time_limit(parts_.compute_time, parts_.stopping);
  Case each = given.made;
  each.options.out_of_time = within_points(watch);
  given.recommended = recommend_workers(each, question.most_workers, question.least_efficiency, watch);
}

bool PlanDesk::keep(Given& given, const json& record, const Caller& caller) {
  if (given.question.keep == Keep::kNone) return false;
  TuneOutcome& outcome = given.outcome;
  const tuner::Entry& chosen = outcome.answer.ranking.at(outcome.answer.chosen);
  if (outcome.answer.complete) {
    const auto reader = parts_.store.reader();
    const auto known = reader->find_ranking(digest(chosen.plan), "question", record);
    if (known && known->predicted == chosen.prediction.iteration && is_complete(known->ranking) &&
        (given.question.keep != Keep::kAll || !known->ranking.at("plans").empty())) {
      outcome.plans = known->ranking.at("plans").get<std::map<std::string, RowId>>();
      outcome.plans[chosen.method] = known->id;
      outcome.profile = known->profile;
      return false;
    }
  }
  Keeping keeping{given.question.keep == Keep::kAll, {}, record, nullptr, caller.token};
  if (!given.question.overrides.any()) keeping.fit = outcome.fit;
  WrittenAnswer written = write_out(given.made.profile, keeping, outcome);
  parts_.store.write([&](Store& store) {
    within_quotas(store, {parts_.quotas, caller}, {Held::kProfiles, Held::kPlans},
                  [&] { keep_answer(store, given.made.profile, std::move(written), outcome); });
  });
  return true;
}

}  // namespace commtune::api::rest
