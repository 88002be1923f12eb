#include "api/rest/plan_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "api/actions/tune.h"
#include "api/question/candidates.h"
#include "api/rest/fair_semaphore.h"
#include "api/rest/http/message.h"
#include "api/view/outcome_json.h"
#include "perfmodel/base/error.h"
#include "store/json_text.h"
#include "tuner/tuner.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestKeptBody = 4096;

/// Of a stored ranking; those from before there was a time limit are.
bool is_complete(const json& ranking) {
  const auto answer = ranking.find("answer");
  return answer == ranking.end() || answer->value("complete", true);
}

json record_of(const Asked& asked) {
  return api::record_of(asked.made, asked.question.overrides, asked.made.cluster.name, asked.fit, asked.fits);
}

/// Everything that the answer depends on.
///
/// profile  digest of the unchanged one
std::string key_of(const Asked& asked, const std::string& profile, const json& record) {
  const Question& question = asked.question;
  json key = record;
  put_marks(key, asked.marks);
  key["model"] = asked.made.profile.model;
  key["profile"] = profile;
  key["keep"] = to_string(question.keep);
  key["most_workers"] = question.most_workers;
  key["least_efficiency"] = question.least_efficiency;
  if (question.explain) key["explain"] = *question.explain;
  // Whoever waits for another's answer may have more time than he.
  if (question.plan_time) key["plan_time"] = question.plan_time->count();
  if (!asked.fit) key["given"] = commtune::to_json(asked.made.cluster);
  return key.dump();
}

/// An answer's text, which lacks the one member that differs when it is given again: so it is written once.
std::string with_cached(bool cached, std::string_view text) {
  return fmt::format("{{\"cached\":{},{}", cached, text.substr(1));
}

/// A method that the ranking has not is the question's mistake: it is not what nobody measured.
void check_explained(const TuneOutcome& outcome) {
  const auto& method = outcome.question.explain;
  if (!method || method->empty() || !outcome.answer.complete) return;
  if (std::ranges::find(outcome.answer.ranking, *method, &tuner::Entry::method) ==
      outcome.answer.ranking.end())
    throw Error(ErrorCode::kBadInput, fmt::format("explain: method \"{}\" is not in the ranking", *method));
}

}  // namespace

std::optional<PlanService::Said> PlanService::known(const std::string& body) {
  KeptPointer kept;
  {
    const std::lock_guard lock(mutex_);
    const KeptPointer* const found = by_body_.find(body);
    if (found == nullptr) return {};
    kept = *found;
  }
  if (kept->fit > 0 && !still_rests_on(*kept)) return {};
  ++parts_.metrics.plans_cached;
  return Said{*kept->text, kept->plan, false};
}

FitAge PlanService::age_now() const { return {parts_.fit_age, system_now()}; }

bool PlanService::still_rests_on(const Kept& kept) const {
  const FitCache::Known now = parts_.fits.find(kept.cluster);
  if (!now.all) return false;
  try {
    const Fitted fitted = now.fitted(kept.transport, age_now());
    return fitted.fit == kept.fit && fitted.fits == kept.fits && fitted.marks == kept.marks;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return false;  // it has no fit over that transport any more
  }
}

PlanService::Said PlanService::answer(const std::string& body, const Question& question,
                                      const Caller& caller) {
  Asker asker{caller, parts_.plan_time};
  if (question.plan_time)
    asker.left =
        std::min(asker.left, std::chrono::ceil<std::chrono::steady_clock::duration>(*question.plan_time));
  if (!question.candidates.empty()) {
    const auto own = [&](const CandidateAllocation& candidate, const ClusterChoice& cluster) {
      return answer_one(question, candidate.allocation, cluster, asker).document;
    };
    return {to_text(compare_candidates(question, own)), 0, false};
  }
  const One one = answer_one(question, question.allocation, question.cluster, asker);
  if (one.kept && body.size() <= kLongestKeptBody) {
    const std::lock_guard lock(mutex_);
    by_body_.put(body, one.kept);
  }
  return {one.text.empty() ? to_text(one.document) : one.text, one.document.value("id", RowId{0}),
          one.created};
}

PlanService::One PlanService::answer_one(const Question& question, const Allocation& allocation,
                                         const ClusterChoice& cluster, Asker& asker) {
  ProfilePointer profile;
  if (question.profile) {
    profile =
        std::make_shared<const KnownProfile>(KnownProfile{*question.profile, digest(*question.profile)});
  } else {
    profile = parts_.profiles.find(question.model);
  }
  const auto ask = [&](const Fitted& fitted) {
    Asked wanted = asked(question, allocation, profile->profile, fitted);
    check_size(wanted.made);
    return compute(std::move(wanted), profile->digest, asker);
  };
  // A cluster that does not exist is an error; one that nothing is known of yet has an answer.
  if (!cluster.given && !parts_.fits.find(cluster.name).registered) parts_.fits.find_fitted(cluster.name);
  try {
    if (cluster.given) return ask(given_cluster(*cluster.given, cluster.transport));
    return ask(parts_.fits.find_fitted(cluster.name).fitted(cluster.transport, age_now()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    ++parts_.metrics.plans_unknown;
    return {unknown_answer(error.code(), error.what()), {}, nullptr, false};
  }
}

PlanService::One PlanService::compute(Asked asked, const std::string& profile, Asker& asker) {
  const json record = record_of(asked);
  const std::string key = key_of(asked, profile, record);
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
    TuneOutcome outcome = plan(std::move(asked), asker);
    const bool complete = outcome.answer.complete;
    const bool created = keep(outcome, record, asker.caller);
    Kept keeping{outcome.made.cluster.name,
                 outcome.question.cluster.transport,
                 outcome.fit.value_or(0),
                 outcome.fits,
                 outcome.marks,
                 nullptr,
                 0,
                 complete};
    const std::map<std::string, std::string> written = std::move(outcome.texts);
    json document = answer_to_json(std::move(outcome));
    document.erase("cached");
    const std::string text = json_text(document, written);
    keeping.text = std::make_shared<const std::string>(with_cached(complete, text));
    keeping.plan = document.at("id").get<RowId>();
    auto kept = std::make_shared<const Kept>(std::move(keeping));
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

TuneOutcome PlanService::plan(Asked asked, Asker& asker) {
  const Permit permit(parts_.planning, parts_.compute_time);
  const auto begin = parts_.clock();
  TuneOutcome outcome =
      api::answer(std::move(asked), out_of_time_at(begin + asker.left, parts_.clock, parts_.stopping));
  asker.left -= parts_.clock() - begin;
  tuner::Watch watch = time_limit(parts_.compute_time, parts_.stopping);
  const tuner::OutOfTime within = within_points(watch);
  check_explained(outcome);
  recommend_workers(outcome, watch, within);
  explain(outcome, watch, within);
  return outcome;
}

bool PlanService::keep(TuneOutcome& outcome, const json& record, const Caller& caller) {
  const Question& question = outcome.question;
  if (question.keep == Keep::kNone) return false;
  const tuner::Entry& chosen = outcome.chosen();
  if (outcome.answer.complete && outcome.fit) {
    const auto reader = parts_.store.reader();
    const auto known = reader->find_ranking(plan_digest(chosen), "question", record);
    if (known && known->predicted == chosen.prediction.iteration && is_complete(known->ranking) &&
        (question.keep != Keep::kAll || !known->ranking.at("plans").empty())) {
      outcome.plans = known->ranking.at("plans").get<std::map<std::string, RowId>>();
      outcome.plans[chosen.method] = known->id;
      outcome.profile = known->profile;
      return false;
    }
  }
  Keeping keeping{question.keep == Keep::kAll, {}, nullptr, nullptr, caller.token, outcome.fits};
  if (outcome.fit) {
    keeping.question = record;
  } else {
    keeping.given = &outcome.made.cluster;
  }
  if (!question.overrides.any()) keeping.fit = outcome.fit;
  WrittenAnswer written = write_out(outcome.made.profile, keeping, outcome);
  parts_.store.write([&](Store& store) {
    within_quotas(store, {parts_.quotas, caller}, {Held::kProfiles, Held::kPlans},
                  [&] { keep_answer(store, outcome.made.profile, std::move(written), outcome); });
  });
  return true;
}

}  // namespace commtune::api::rest
