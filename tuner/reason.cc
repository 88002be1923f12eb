#include "tuner/reason.h"

#include <fmt/format.h>

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

}  // namespace

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
        "fits "
        "are wrong; {}.",
        chosen.title, other->title, 100 * (1 / (1 + win) - 1), binds);
  }
  if (win <= 1e-6)
    return fmt::format("{} is as fast as any other plan and the simplest of them; {}.", chosen.title, binds);
  return fmt::format("{} beats {} by {:.1f} % because it {}; {}.", chosen.title, other->title, 100 * win, how,
                     binds);
}

}  // namespace commtune::tuner
