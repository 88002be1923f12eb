#include "tuner/reason.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace commtune::tuner {

namespace {

bool reordered(const Plan& plan, const Workload& work) {
  if (plan.order == Order::kPriority) return true;
  const FlatPlan flat(plan, work);
  return !std::is_sorted(flat.lowest_layer.rbegin(), flat.lowest_layer.rend());
}

/// What one plan does that the other does not.
std::vector<std::string> differences(const Plan& plan, const Plan& other, const Workload& work) {
  std::vector<std::string> list;
  if (plan.transport != other.transport) list.push_back(fmt::format("goes over {}", plan.transport));
  if (plan.road != other.road) list.push_back(fmt::format("takes {}", describe(plan.road)));
  const std::size_t messages = plan.messages.size(), others = other.messages.size();
  if (messages < others) list.push_back(fmt::format("pays {} start-ups instead of {}", messages, others));
  if (messages > others) list.push_back(fmt::format("overlaps {} messages instead of {}", messages, others));
  if (!plan.sequence.empty() && other.sequence.empty())
    list.emplace_back("distributes sums later than it makes them");
  if (reordered(plan, work) && !reordered(other, work)) list.emplace_back("sends first what is needed first");
  if (plan.barrier == Barrier::kPerLayer && other.barrier == Barrier::kFull) {
    list.emplace_back("lets each layer wait for its own gradients only");
  }
  return list;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string binding_text(const Entry& entry) {
  const Prediction& p = entry.prediction;
  if (p.binding == Binding::kCompute) return "compute binds it: its communication is hidden";
  const char* what = p.binding == Binding::kLatency  ? "start-up latency"
                     : p.binding == Binding::kServer ? "the servers' bandwidth"
                                                     : "bandwidth";
  return fmt::format("{} binds it: {} of {} of communication stay exposed", what, format_time(p.exposed),
                     format_time(p.communication));
}

/// The fastest entry that is not the chosen one nor the same plan under another name.
const Entry* runner_up(const Answer& answer) {
  const Entry& chosen = answer.ranking[answer.chosen];
  for (const Entry& entry : answer.ranking) {
    if (&entry != &chosen && digest(entry.plan) != digest(chosen.plan)) return &entry;
  }
  return nullptr;
}

std::string counted(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// "DeAR 205 ms (+2.0 %)"
std::string measured_text(const Entry& entry, const MeasuredTime& measured) {
  const std::string text = fmt::format("{} {}", entry.title, format_time(measured.median));
  return measured.behind > 0 ? fmt::format("{} ({:+.1f} %)", text, 100 * measured.behind) : text;
}

/// Those that were run, each plan under one of its names: the chosen one's, if it is that.
std::string measured_texts(const Answer& answer) {
  const Entry& chosen = answer.ranking[answer.chosen];
  std::vector<std::string> seen{digest(chosen.plan)};
  std::vector<std::string> texts;
  for (const Entry& entry : answer.ranking) {
    if (!entry.measured) continue;
    const std::string plan = digest(entry.plan);
    if (&entry != &chosen && std::ranges::find(seen, plan) != seen.end()) continue;
    seen.push_back(plan);
    texts.push_back(measured_text(entry, *entry.measured));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// How sure the choice is.
std::string verdict(const Answer& answer) {
  const Entry& chosen = answer.ranking[answer.chosen];
  const bool any_failed =
      std::ranges::any_of(answer.ranking, [](const Entry& entry) { return !entry.failure.empty(); });
  switch (answer.verified->end) {
    case VerifyEnd::kOneLeft:
      if (answer.verified->plans == 1)
        return fmt::format("No other plan's range overlaps that of {}", chosen.title);
      return fmt::format("{} is the fastest{} with certainty", chosen.title,
                         any_failed ? " of those that could be run" : "");
    case VerifyEnd::kAlike:
      return fmt::format("Those left differ by less than {:.1f} % with certainty, and {} is the simplest",
                         100 * kIndifferent, chosen.title);
    case VerifyEnd::kBudget:
      return fmt::format("The budget ended before the order was certain, and {} is the likeliest",
                         chosen.title);
  }
  return {};
}

const std::string& title_of(const Answer& answer, const std::string& method) {
  return std::ranges::find(answer.ranking, method, &Entry::method)->title;
}

}  // namespace

std::string verified_reason(const Answer& answer) {
  const Verified& verified = *answer.verified;
  const Entry& chosen = answer.ranking[answer.chosen];
  const std::string predicted =
      verified.predicted == chosen.method
          ? "as predicted"
          : fmt::format("where prediction had chosen {}", title_of(answer, verified.predicted));
  return fmt::format("Measured {} in {} ({}): {}. {}, {}; by the model {}.", counted(verified.plans, "plan"),
                     verified.rounds > 0 ? counted(verified.rounds, "round") : "an unfinished round",
                     format_time(verified.elapsed), measured_texts(answer), verdict(answer), predicted,
                     binding_text(chosen));
}

std::string reason_for(const Answer& answer, const Planning& job) {
  const Entry& chosen = answer.ranking[answer.chosen];
  const std::string binds = binding_text(chosen);
  if (answer.workers == 1)
    return "One worker has nothing to exchange: every plan takes the time of its compute.";
  const Entry* other = runner_up(answer);
  if (other == nullptr) return fmt::format("{} is the only plan there is; {}.", chosen.title, binds);
  const double regret = chosen.doubt ? chosen.doubt->expected_regret : 0;
  if (!answer.clear_winner && regret > kIndifferent) {
    return fmt::format(
        "There is no clear winner: {} is expected to lose least, {:.1f} % on average, where predictions are "
        "wrong; {}.",
        chosen.title, 100 * regret, binds);
  }
  if (!answer.clear_winner) {
    return fmt::format(
        "There is no clear winner: {} is the simplest of the plans that cannot be told apart, neither by the "
        "fits nor at the slow edge of their doubt; {}.",
        chosen.title, binds);
  }
  const double win = other->prediction.iteration / chosen.prediction.iteration - 1;
  const std::vector<std::string> does = differences(chosen.plan, other->plan, job.work);
  const std::string how = does.empty() ? "divides the gradients better" : joined(does);
  if (win < -1e-6) {
    return fmt::format(
        "{} has the least expected regret: {} is predicted to be {:.1f} % faster and loses more where the "
        "fits are wrong; {}.",
        chosen.title, other->title, 100 * (1 / (1 + win) - 1), binds);
  }
  if (win <= 1e-6)
    return fmt::format("{} is as fast as any other plan and the simplest of them; {}.", chosen.title, binds);
  return fmt::format("{} beats {} by {:.1f} % because it {}; {}.", chosen.title, other->title, 100 * win, how,
                     binds);
}

}  // namespace commtune::tuner
