#include "api/rest/quota.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/rest/http/problem.h"

namespace commtune::api::rest {
namespace {

struct Limit {
  int most = 0;
  std::string_view flag;
  std::string_view what;    ///< there may be so many of
  std::string_view remedy;  ///< what makes room
};

constexpr std::string_view kPrune = "`tune store prune` deletes what is old";

Limit limit_of(const QuotaLimits& limits, Held held) {
  switch (held) {
    case Held::kProfiles:
      return {limits.profiles, "--max-profiles-per-token", "stored profiles", kPrune};
    case Held::kPlans:
      return {limits.plans, "--max-plans-per-token", "stored plans", kPrune};
    case Held::kRuns:
      return {limits.runs, "--max-runs-per-token", "stored runs", kPrune};
    case Held::kWaitingJobs:
      return {limits.waiting_jobs, "--max-waiting-jobs-per-token", "waiting jobs",
              "wait until one has begun, or cancel one with DELETE /v1/jobs/{id}"};
    case Held::kAnswers:
      return {limits.answers, "--max-answers-per-token", "answers kept under their Idempotency-Key",
              "they are forgotten after a day, and none is kept of a request without a key"};
  }
  return {};
}

std::string name_of(const Caller& caller) {
  return caller.token == kNoToken ? std::string("all callers without a token together")
                                  : fmt::format("the token \"{}\"", caller.name);
}

HttpRefusal exceeded(const Limit& limit, const Caller& caller, std::int64_t before, std::int64_t after) {
  return HttpRefusal({429, "quota_exceeded",
                      fmt::format("{}: {} of {}, {} with this, at most {} are allowed ({}); {}", limit.what,
                                  before, name_of(caller), after, limit.most, limit.flag, limit.remedy)});
}

}  // namespace

void within_quotas(Store& store, const Allowance& allowance, std::initializer_list<Held> kinds,
                   const std::function<void()>& add) {
  const Quotas quotas(store);
  const TokenId token = allowance.caller.token;
  std::vector<std::int64_t> before;
  for (const Held held : kinds) before.push_back(quotas.count(held, token));
  add();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Held held = kinds.begin()[i];
    const Limit limit = limit_of(allowance.most, held);
    const std::int64_t after = quotas.count(held, token);
    if (after > before[i] && after > limit.most) throw exceeded(limit, allowance.caller, before[i], after);
  }
}

}  // namespace commtune::api::rest
