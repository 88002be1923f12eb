#include "api/output/explanation_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace commtune::api {
namespace {

/// A line of a chart: `fill` between two moments.
std::string bar(Seconds from, Seconds until, Seconds whole, int width, char fill) {
  const auto place = [&](Seconds at) { return std::clamp(static_cast<int>(at / whole * width), 0, width); };
  std::string line(static_cast<std::size_t>(width), ' ');
  const int first = std::min(place(from), width - 1), last = std::max(place(until), first + 1);
  for (int i = first; i < last; ++i) line[static_cast<std::size_t>(i)] = fill;
  return line;
}

}  // namespace

std::string to_text(const tuner::Explanation& explanation, const Plan& plan, int width) {
  const Timeline& t = explanation.timeline;
  const Seconds whole = explanation.prediction.iteration;
  std::string text =
      fmt::format("{:<22} |{}|\n", "backward", bar(Seconds{0}, t.backward_end.front(), whole, width, '<'));
  for (std::size_t m = 0; m < t.messages.size(); ++m) {
    const MessageSpan& span = t.messages[m];
    std::string line = bar(span.reduce_start, span.reduce_end, whole, width, 'r');
    const std::string back = bar(span.distribute_start, span.distribute_end, whole, width, 'd');
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (back[i] != ' ' && span.distribute_end > span.distribute_start) line[i] = back[i];
    }
    text += fmt::format("{:<22} |{}|\n",
                        fmt::format("{:>3} {}", m, format_size(message_bytes(plan.messages[m]))), line);
  }
  for (std::size_t p = 0; p < t.pulls.size(); ++p) {
    const MessageSpan& span = t.pulls[p];
    text += fmt::format("{:<22} |{}|\n",
                        fmt::format("{:>3} {} back", p, format_size(message_bytes(plan.pulls[p]))),
                        bar(span.distribute_start, span.distribute_end, whole, width, 'd'));
  }
  std::string forward(static_cast<std::size_t>(width), ' ');
  for (std::size_t i = 0; i < t.forward_end.size(); ++i) {
    const std::string one = bar(t.forward_start[i], t.forward_end[i], whole, width, '>');
    std::transform(one.begin(), one.end(), forward.begin(), forward.begin(),
                   [](char a, char b) { return a != ' ' ? a : b; });
  }
  text += fmt::format("{:<22} |{}|\n\n", "update and forward", forward);
  text += "critical path\n";
  for (const tuner::CriticalStep& step : explanation.critical_path) {
    text +=
        fmt::format("  {:>10} to {:>10}  {}\n", format_time(step.from), format_time(step.until), step.what);
  }
  text += fmt::format("\nsent per worker {}", format_size(explanation.worker_traffic));
  if (explanation.server_traffic.count > 0) {
    text += fmt::format(", per server {}", format_size(explanation.server_traffic));
  }
  text +=
      fmt::format("; communication / compute {:.2f}\n\nwhat would help\n", explanation.communication_ratio);
  for (const tuner::Improvement& i : explanation.improvements) {
    text += fmt::format("  {:<44} {} ({:.1f} %)\n", i.what, format_time(i.gain), 100 * (i.gain / whole));
  }
  return text;
}

}  // namespace commtune::api
