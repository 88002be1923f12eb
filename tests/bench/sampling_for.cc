#include "tests/bench/sampling_for.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cmath>
#include <string>
#include <string_view>
#include <thread>

#include "api/advice/plan_advisor.h"
#include "tests/bench/drawn_choice.h"
#include "tests/bench/sampling_figures.h"

namespace commtune::bench {

namespace {

/// Resamples of the last fits: their doubt enters the choice.
constexpr int kBootstrap = 20;
/// Between seeds of the noise.
constexpr std::uint64_t kOtherNoise = 1000;

struct ChoiceFigures {
  double error_median = 0, error_p90 = 0, regret_mean = 0, regret_worst = 0;
  double spent = 0;    ///< of the budget
  double settled = 0;  ///< share of the clusters
  Figures roads;
};

std::vector<DrawnChoice> choices_of(const std::vector<DrawnCluster>& clusters,
                                    const std::vector<Findings>& findings, const Profile& profile) {
  std::vector<DrawnChoice> choices(clusters.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < clusters.size(); i = next++)
      choices[i] = choice_on(clusters[i], findings[i].fitted, profile);
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) workers.emplace_back(work);
    work();
  }
  return choices;
}

void print_each(const std::vector<DrawnCluster>& clusters, const std::vector<DrawnChoice>& choices,
                const std::vector<Findings>& all) {
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const DrawnChoice& choice = choices[i];
    fmt::print("{:<42} error {:>5.1f} %  regret {:>5.1f} %  {}; best {}{}\n", clusters[i].name,
               100 * choice.error, 100 * choice.regret, describe(choice.chosen), describe(choice.best),
               all[i].settled ? "; settled" : "");
  }
}

ChoiceFigures figures_for(const std::vector<DrawnCluster>& clusters, const SamplingCase& how,
                          const Profile& profile, bool each) {
  const std::vector<Findings> all = findings_of(clusters, how);
  std::vector<double> errors, regrets, spent, settled;
  const std::vector<DrawnChoice> choices = choices_of(clusters, all, profile);
  for (const DrawnChoice& choice : choices) {
    errors.push_back(choice.error);
    regrets.push_back(choice.regret);
  }
  if (each) print_each(clusters, choices, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double budget =
        how.budget_factor *
        probes::default_budget(clusters[i].hosts, static_cast<int>(clusters[i].rank_hosts.size())).count();
    spent.push_back(all[i].spent.whole() / budget);
    settled.push_back(all[i].settled ? 1 : 0);
  }
  return {quantile(errors, 0.5), quantile(errors, 0.9), mean(regrets),  quantile(regrets, 1),
          mean(spent),           mean(settled),         figures_of(all)};
}

/// The figures of two seeds of the noise.
using Twice = std::array<ChoiceFigures, 2>;

using Figure = double (*)(const ChoiceFigures&);
struct Column {
  std::string_view title, name;
  Figure figure;
};
constexpr std::array<Column, 9> kColumns{{
    {"error %", "error_median", [](const ChoiceFigures& all) { return all.error_median; }},
    {"p90", "error_p90", [](const ChoiceFigures& all) { return all.error_p90; }},
    {"regret %", "regret_mean", [](const ChoiceFigures& all) { return all.regret_mean; }},
    {"worst", "regret_worst", [](const ChoiceFigures& all) { return all.regret_worst; }},
    {"spent %", "spent", [](const ChoiceFigures& all) { return all.spent; }},
    {"settled", "settled", [](const ChoiceFigures& all) { return all.settled; }},
    {"alone p90", "alone_p90", [](const ChoiceFigures& all) { return all.roads.alone_p90; }},
    {"streams", "streams_median", [](const ChoiceFigures& all) { return all.roads.streams_median; }},
    {"p90", "streams_p90", [](const ChoiceFigures& all) { return all.roads.streams_p90; }},
}};

double middle(const Twice& twice, Figure figure) { return (figure(twice[0]) + figure(twice[1])) / 2; }
double apart(const Twice& twice, Figure figure) { return std::abs(figure(twice[0]) - figure(twice[1])); }

void print_row(std::string_view name, const Twice& twice, double (*value)(const Twice&, Figure)) {
  std::string line = fmt::format("{:<18}", name);
  for (const Column& column : kColumns) line += fmt::format(" {:>9.2f}", 100 * value(twice, column.figure));
  fmt::print("{}\n", line);
}

std::string result_words(std::string_view prefix, const Twice& twice) {
  std::string words;
  for (const Column& column : kColumns)
    words += fmt::format(" {}_{}={:.5f}", prefix, column.name, middle(twice, column.figure));
  return words;
}

}  // namespace

void compare_for(const std::vector<DrawnCluster>& clusters, const SamplingCase& how, const Profile& profile,
                 std::uint64_t seed, bool each) {
  const auto twice = [&](const std::vector<Profile>& profiles, bool are_all) {
    SamplingCase own = how;
    own.profiles = profiles;
    own.are_all = are_all;
    own.bootstrap = kBootstrap;
    Twice result;
    for (ChoiceFigures& figures : result) {
      figures = figures_for(clusters, own, profile, each);
      own.noise_seed += kOtherNoise;
    }
    return result;
  };
  std::string head = fmt::format("{:<18}", "roads count");
  for (const Column& column : kColumns) head += fmt::format(" {:>9}", column.title);
  fmt::print(
      "{} on {} clusters: error of the chosen plan's iteration, regret of the choice; errors of all "
      "roads\n{}\n",
      profile.model, clusters.size(), head);
  const Twice alike = twice({}, false);
  print_row("alike", alike, middle);
  const Twice shipped = twice(api::shipped_profiles(), false);
  print_row("for shipped models", shipped, middle);
  const Twice own = twice({profile}, true);
  print_row("for the model", own, middle);
  print_row("A/A", alike, apart);
  fmt::print("RESULT sampling-for model={} seed={} cases={} budget_factor={:g}{}{}{} excluded=none\n",
             profile.model, seed, clusters.size(), how.budget_factor, result_words("alike", alike),
             result_words("shipped", shipped), result_words("for", own));
}

}  // namespace commtune::bench
