#include "tuner/verify.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/student.h"
#include "perfmodel/fit/fit.h"
#include "tuner/doubt.h"
#include "tuner/planning.h"
#include "tuner/reason.h"

namespace commtune::tuner {

namespace {

/// Of fewer rounds nobody can tell how they scatter.
constexpr std::size_t kLeastRounds = 3;
/// How often any of a verification's conclusions may be wrong, over all its rounds and pairs of plans.
constexpr double kErrorOfAll = 0.05;

/// The share of kErrorOfAll that may be spent after so many rounds: 1/2, 1/6, 1/12, ..., together 1 however
/// many follow (alpha spending: Lan, DeMets, Biometrika 70, 1983).
double spent_at(std::size_t rounds) {
  const auto look = static_cast<double>(rounds - kLeastRounds + 1);
  return 1 / (look * (look + 1));
}

struct MeanInterval {
  double mean = 0, half_width = 0;
};

/// Of the mean of at least two independent values; it is outside with this probability.
MeanInterval interval_of_mean(const std::vector<double>& values, double outside) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (n - 1) / n);
  return {mean, student_t(static_cast<int>(values.size()) - 1, outside) * error};
}

/// By round: what `a` took over what `b` took, as a logarithm. As many as both have.
std::vector<double> differences_by_round(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> differences(std::min(a.size(), b.size()));
  for (std::size_t round = 0; round < differences.size(); ++round) differences[round] = a[round] - b[round];
  return differences;
}

MedianInterval median_of(std::vector<double> seconds) { return median_interval(seconds); }

/// A plan that is run, with what its runs took.
struct Contender {
  std::size_t entry = 0;        ///< of the ranking
  std::vector<double> seconds;  ///< all iterations
  std::vector<double> rounds;   ///< logarithm of the median, by complete round
  Seconds last_run{};           ///< how long that took as a whole
  bool in_question = true;      ///< may be the fastest
  std::optional<Error> failure;

  double behind(const Contender& other) const {
    const std::vector<double> differences = differences_by_round(rounds, other.rounds);
    if (differences.empty()) return median_of(seconds).median / median_of(other.seconds).median - 1;
    const double sum = std::accumulate(differences.begin(), differences.end(), 0.0);
    return std::expm1(sum / static_cast<double>(differences.size()));
  }

  MeasuredTime measured(const Contender& fastest) const {
    const MedianInterval of_all = median_of(seconds);
    MeasuredTime time;
    time.median = Seconds{of_all.median};
    // Iterations of one run resemble each other more than those of two.
    time.half_width = rounds.size() < kLeastRounds ? Seconds{(of_all.high - of_all.low) / 2}
                                                   : time.median * interval_of_mean(rounds, 0.05).half_width;
    time.iterations = static_cast<int>(seconds.size());
    time.rounds = static_cast<int>(rounds.size());
    time.behind = behind(fastest);
    return time;
  }
};

/// The rounds of one call of verify().
class VerifyRounds {
 public:
  VerifyRounds(const Answer& answer, const VerifyOptions& options)
      : answer_(answer), options_(options), begin_(options.clock()) {
    for (const std::size_t entry : plans_to_verify(answer, options.limits.plans))
      contenders_.emplace_back().entry = entry;
  }

  VerifyEnd run() {
    do {
      if (!run_round()) return VerifyEnd::kBudget;
      if (!are_alike()) drop_slower();
      if (in_question().size() == 1) return VerifyEnd::kOneLeft;
      if (are_alike()) return VerifyEnd::kAlike;
    } while (has_time_for_a_round());
    return VerifyEnd::kBudget;
  }

  const std::vector<Contender>& contenders() const { return contenders_; }
  /// How many plans were run.
  int plans() const {
    return static_cast<int>(std::ranges::count_if(contenders_, [](const Contender& contender) {
      return contender.failure || !contender.seconds.empty();
    }));
  }
  int rounds() const { return static_cast<int>(rounds_); }
  Seconds elapsed() const { return options_.clock() - begin_; }

  /// Those that were run and may be the fastest, the fastest first.
  std::vector<const Contender*> leading() const {
    std::vector<const Contender*> leading;
    for (const Contender& contender : contenders_)
      if (contender.in_question && !contender.seconds.empty()) leading.push_back(&contender);
    const Contender& first = *leading.front();
    std::ranges::stable_sort(leading, {}, [&](const Contender* each) { return each->behind(first); });
    return leading;
  }

 private:
  std::vector<Contender*> in_question() {
    std::vector<Contender*> left;
    for (Contender& contender : contenders_)
      if (contender.in_question) left.push_back(&contender);
    return left;
  }

  bool is_spent() const { return elapsed() >= options_.limits.budget; }

  bool has_time_for_a_round() {
    Seconds end = elapsed();
    for (const Contender* contender : in_question()) end += contender->last_run;
    return end <= options_.limits.budget;
  }

  /// False when time was out before its end. Throws where nothing is left to be run.
  bool run_round() {
    std::vector<Contender*> turns = in_question();
    if (rounds_ % 2 == 1) std::ranges::reverse(turns);
    std::vector<std::pair<Contender*, double>> times;
    for (Contender* contender : turns) {
      const bool is_first = rounds_ == 0 && times.empty();
      if (!is_first && is_spent()) return false;
      if (const auto median = run(*contender)) times.emplace_back(contender, std::log(*median));
    }
    if (times.empty()) throw Error(turns.front()->failure.value());
    for (const auto& [contender, time] : times) contender->rounds.push_back(time);
    ++rounds_;
    return true;
  }

  /// The median of its iterations; nothing when it failed.
  std::optional<double> run(Contender& contender) {
    const Seconds begin = options_.clock();
    try {
      std::vector<double> seconds;
      for (const Seconds each : options_.measure(answer_.ranking[contender.entry].plan))
        seconds.push_back(each.count());
      contender.seconds.insert(contender.seconds.end(), seconds.begin(), seconds.end());
      contender.last_run = options_.clock() - begin;
      return median_of(std::move(seconds)).median;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInterrupted || error.code() == ErrorCode::kStorage) throw;
      contender.failure = error;
      contender.in_question = false;
      return {};
    }
  }

  /// With which probability one interval of this round may be wrong (Bonferroni).
  double error_of_one() const {
    const auto n = static_cast<double>(contenders_.size());
    return kErrorOfAll * spent_at(rounds_) / (n * (n - 1) / 2);
  }

  MeanInterval difference(const Contender& a, const Contender& b) const {
    return interval_of_mean(differences_by_round(a.rounds, b.rounds), error_of_one());
  }

  void drop_slower() {
    if (rounds_ < kLeastRounds) return;
    const Contender* leader = leading().front();
    for (Contender* contender : in_question()) {
      if (contender == leader) continue;
      const MeanInterval slower = difference(*contender, *leader);
      if (slower.mean - slower.half_width > 0) contender->in_question = false;
    }
  }

  /// Those in question differ by less than anybody would notice.
  bool are_alike() {
    if (rounds_ < kLeastRounds) return false;
    const std::vector<Contender*> left = in_question();
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const MeanInterval apart = difference(*left[i], *left[j]);
        if (std::abs(apart.mean) + apart.half_width > std::log1p(kIndifferent)) return false;
      }
    }
    return true;
  }

  const Answer& answer_;
  const VerifyOptions& options_;
  const Seconds begin_;
  std::vector<Contender> contenders_;
  std::size_t rounds_ = 0;  ///< complete ones
};

/// The simplest of those that are nearly as fast as the fastest.
std::size_t chosen_of(const std::vector<Entry>& ranking, const std::vector<const Contender*>& leading) {
  std::vector<std::size_t> equals;
  for (const Contender* contender : leading)
    if (contender->behind(*leading.front()) <= kIndifferent) equals.push_back(contender->entry);
  return simplest(ranking, equals);
}

/// What was found of a plan belongs to every entry that has it.
void note_results(std::vector<Entry>& ranking, const std::vector<Contender>& contenders,
                  const Contender& fastest) {
  for (const Contender& contender : contenders) {
    const std::string plan = digest(ranking[contender.entry].plan);
    for (Entry& entry : ranking) {
      if (digest(entry.plan) != plan) continue;
      if (contender.failure) {
        entry.failure = contender.failure->what();
      } else if (!contender.seconds.empty()) {
        entry.measured = contender.measured(fastest);
      }
    }
  }
}

void put_measured_first(std::vector<Entry>& ranking) {
  const auto rank = [](const Entry& entry) {
    return std::tuple(!entry.measured, entry.measured ? entry.measured->behind : 0.0,
                      entry.prediction.iteration, effort_of(entry));
  };
  std::ranges::stable_sort(ranking, {}, rank);
}

bool ranges_overlap(const Entry& a, const Entry& b) {
  if (!a.doubt || !b.doubt) return true;
  return a.doubt->low <= b.doubt->high * (1 + kIndifferent) &&
         b.doubt->low <= a.doubt->high * (1 + kIndifferent);
}

}  // namespace

std::string to_string(VerifyEnd end) {
  switch (end) {
    case VerifyEnd::kOneLeft:
      return "one_left";
    case VerifyEnd::kAlike:
      return "alike";
    case VerifyEnd::kBudget:
      return "budget";
  }
  return {};
}

void VerifyLimits::check() const {
  if (plans < 2)
    throw Error(ErrorCode::kBadInput, "verify: plans = " + std::to_string(plans) +
                                          ": must be at least 2, or there is nothing to compare");
  if (!(budget.count() > 0))
    throw Error(ErrorCode::kBadInput, "verify: budget = " + format_time(budget) + ": must be positive");
}

std::vector<std::size_t> plans_to_verify(const Answer& answer, int most) {
  const Entry& chosen = answer.ranking.at(answer.chosen);
  std::vector<std::size_t> entries{answer.chosen};
  std::vector<std::string> digests{digest(chosen.plan)};
  for (std::size_t i = 0; i < answer.ranking.size() && entries.size() < static_cast<std::size_t>(most); ++i) {
    std::string plan = digest(answer.ranking[i].plan);
    if (std::ranges::find(digests, plan) != digests.end() || !ranges_overlap(answer.ranking[i], chosen))
      continue;
    entries.push_back(i);
    digests.push_back(std::move(plan));
  }
  return entries;
}

void verify(Answer& answer, const VerifyOptions& options) {
  options.limits.check();
  VerifyRounds rounds(answer, options);
  const VerifyEnd end = rounds.run();
  const std::vector<const Contender*> leading = rounds.leading();
  const std::string chosen = answer.ranking[chosen_of(answer.ranking, leading)].method;
  answer.verified =
      Verified{rounds.plans(), rounds.rounds(), rounds.elapsed(), end, answer.ranking[answer.chosen].method};
  if (rounds.contenders().size() > 1) answer.clear_winner = end == VerifyEnd::kOneLeft;
  note_results(answer.ranking, rounds.contenders(), *leading.front());
  put_measured_first(answer.ranking);
  answer.chosen = static_cast<std::size_t>(std::ranges::find(answer.ranking, chosen, &Entry::method) -
                                           answer.ranking.begin());
  answer.reason = verified_reason(answer);
}

}  // namespace commtune::tuner
