// How well the sampling plan of a probe spends its budget, on made-up clusters whose costs are known exactly:
// without a network, and the same on every machine.
//
//   sampling [--random SEED] [--cases N] [--budget FACTOR]     the figures
//   sampling --vary [GAIN,...] ...  the same with each of these gains, or of all, halved, doubled and removed
//   sampling --each ...             a line for each cluster as well
//   sampling --for MODEL ...        what refining what a shipped model's plans need gains them
//   sampling --set GAIN=VALUE ...   with another gain
//
// Errors are those of predictions (fits, or formulas where there is no fit) at sizes that were not measured,
// of every road that is offered: alone and streamed apart. "Enough" is the share of roads' curves whose sizes
// span two decades, three of them at least, so that a degree of freedom is left. "Regret" is what is lost on
// a stream of 256 KiB by taking the road that is said to be the cheapest.
//
// With --vary, each line has how much the figures change beside those of the gains as they are, and on how
// many clusters the mean error fell or rose by more than another seed of the noise changes it there (A/A).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "perfmodel/shipped_profiles.h"
#include "tests/bench/sampling_figures.h"
#include "tests/bench/sampling_for.h"

namespace {

using namespace commtune::bench;
using commtune::Seconds;
using commtune::probes::SamplingGains;

constexpr double kNever = 1e9;

/// A gain by its name, with the value at which it says nothing.
struct Gain {
  std::string_view name;
  std::variant<double SamplingGains::*, int SamplingGains::*, Seconds SamplingGains::*, bool SamplingGains::*>
      member;
  double neutral = 0;
};

const std::vector<Gain>& all_gains() {
  static const std::vector<Gain> gains{
      {"first", &SamplingGains::first, 60},
      {"first_stream", &SamplingGains::first_stream, 1},
      {"range", &SamplingGains::range, 0},
      {"startup_counts", &SamplingGains::startup_counts, kNever},
      {"pipelined_chunks", &SamplingGains::pipelined_chunks, 0},
      {"between", &SamplingGains::between, 0},
      {"smooth_share", &SamplingGains::smooth_share, 0},
      {"most_octaves", &SamplingGains::most_octaves, kNever},
      {"straight", &SamplingGains::straight, kNever},
      {"most_unexplained", &SamplingGains::most_unexplained, kNever},
      {"stream_narrow", &SamplingGains::stream_narrow, 1},
      {"unknown_width", &SamplingGains::unknown_width, 0},
      {"visits_apart", &SamplingGains::visits_apart, 0},
      {"visit_share", &SamplingGains::visit_share, 1},
      {"stream_time", &SamplingGains::stream_time, 0},
      {"fewest_streams", &SamplingGains::fewest_streams, 1},
      {"most_streams", &SamplingGains::most_streams, 60},
      {"back_to_back_time", &SamplingGains::back_to_back_time, 0},
      {"first_sizes", &SamplingGains::first_sizes, 0},
      {"first_sizes_share", &SamplingGains::first_sizes_share, kNever},
      {"short_of_time", &SamplingGains::short_of_time, kNever},
      {"needed_share", &SamplingGains::needed_share, 0},
      {"needed_octaves", &SamplingGains::needed_octaves, kNever},
  };
  return gains;
}

template <typename T>
void set(T& value, double to) {
  if constexpr (std::is_same_v<T, Seconds>) {
    value = Seconds{to};
  } else if constexpr (std::is_same_v<T, bool>) {
    value = to > 0;
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(std::max(1.0, std::round(to)));
  } else {
    value = to;
  }
}

template <typename T>
double number_of(T value) {
  if constexpr (std::is_same_v<T, Seconds>) {
    return value.count();
  } else {
    return static_cast<double>(value);
  }
}

SamplingGains with(const Gain& gain, double factor, bool removed) {
  SamplingGains gains;
  std::visit(
      [&](auto member) { set(gains.*member, removed ? gain.neutral : factor * number_of(gains.*member)); },
      gain.member);
  // The fewest of something are no more than the most.
  gains.most_streams = std::max(gains.most_streams, gains.fewest_streams);
  return gains;
}

bool is_switch(const Gain& gain) { return std::holds_alternative<bool SamplingGains::*>(gain.member); }

void print_each(const std::vector<DrawnCluster>& clusters, const std::vector<Findings>& all) {
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const Figures own = figures_of({all[i]});
    fmt::print(
        "{:<42} alone {:>5.1f} % p90 {:>6.1f} %  streams {:>5.1f} % p90 {:>6.1f} %  enough {:>4.0f} %  "
        "regret {:>5.1f} %  {}\n",
        clusters[i].name, 100 * own.alone_median, 100 * own.alone_p90, 100 * own.streams_median,
        100 * own.streams_p90, 100 * own.enough, 100 * own.regret_worst, split_text(own.shares));
  }
}

std::string change(double now, double before) {
  return fmt::format("{:>+7.1f}", before > 0 ? 100 * (now / before - 1) : 0);
}

void print_varied(std::string_view name, std::string_view how, const std::vector<Findings>& now,
                  const std::vector<Findings>& as_is, const std::vector<Findings>& again) {
  const Figures a = figures_of(as_is), b = figures_of(now);
  const Count count = count_of(now, as_is, again);
  fmt::print("{:<18} {:<8} {} {} {} {} {:>8.1f} {:>8.1f} {:>6} {:>5}\n", name, how,
             change(b.alone_median, a.alone_median), change(b.alone_p90, a.alone_p90),
             change(b.streams_median, a.streams_median), change(b.streams_p90, a.streams_p90), 100 * b.enough,
             100 * b.regret_mean, count.fell, count.rose);
  std::fflush(stdout);
}

void vary(const std::vector<DrawnCluster>& clusters, const SamplingCase& how,
          const std::vector<std::string>& only) {
  const std::vector<Findings> as_is = findings_of(clusters, how);
  SamplingCase other = how;
  other.noise_seed += 1000;
  const std::vector<Findings> again = findings_of(clusters, other);
  fmt::print("change of the errors in %: median and 90th percentile\n");
  fmt::print("{:<18} {:<8} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8} {:>6} {:>5}\n", "gain", "", "alone", "p90",
             "streams", "p90", "enough %", "regret %", "fell", "rose");
  print_varied("A/A", "", again, as_is, again);
  other.noise_seed += 1000;
  print_varied("A/A", "", findings_of(clusters, other), as_is, again);
  for (const Gain& gain : all_gains()) {
    if (!only.empty() && std::ranges::find(only, gain.name) == only.end()) continue;
    SamplingCase varied = how;
    const auto run = [&](std::string_view label, double factor, bool removed) {
      varied.gains = with(gain, factor, removed);
      print_varied(gain.name, label, findings_of(clusters, varied), as_is, again);
    };
    if (!is_switch(gain)) {
      if (only.size() == 1) run("quarter", 0.25, false);
      run("halved", 0.5, false);
      run("doubled", 2, false);
      if (only.size() == 1) run("fourfold", 4, false);
    }
    run("removed", 1, true);
  }
}

/// "needed_share=0.25"; false where there is no such gain, or no number.
bool set_gain(SamplingGains& gains, std::string_view text) {
  const std::size_t equals = text.find('=');
  const auto gain = std::ranges::find(all_gains(), text.substr(0, equals), &Gain::name);
  if (equals == std::string_view::npos || gain == all_gains().end()) return false;
  const std::string number(text.substr(equals + 1));
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0') return false;
  std::visit([&](auto member) { set(gains.*member, value); }, gain->member);
  return true;
}

int refuse(std::string_view what) {
  fmt::print(stderr,
             "sampling: {}\nusage: sampling [--random SEED] [--cases N] [--budget FACTOR] [--each] [--vary "
             "[GAIN,...]] [--for MODEL] [--set GAIN=VALUE]\n",
             what);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): what is thrown ends the bench
  std::uint64_t seed = 1;
  int cases = 24;
  bool each = false, varies = false;
  std::optional<commtune::Profile> profile;
  std::vector<std::string> only;
  SamplingCase how;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const bool has_value = i + 1 < argc && argv[i + 1][0] != '-';
    if (flag == "--each") {
      each = true;
    } else if (flag == "--vary") {
      varies = true;
      if (!has_value) continue;
      std::istringstream names(argv[++i]);
      for (std::string name; std::getline(names, name, ',');) only.push_back(name);
    } else if (flag == "--random" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--cases" && has_value) {
      cases = std::max(1, std::atoi(argv[++i]));
    } else if (flag == "--for" && has_value) {
      profile = commtune::shipped_profile(argv[++i]);
      if (!profile) return refuse(fmt::format("--for {}: no shipped model", argv[i]));
    } else if (flag == "--set" && has_value) {
      if (!set_gain(how.gains, argv[++i]))
        return refuse(fmt::format("--set {}: must be GAIN=VALUE", argv[i]));
    } else if (flag == "--budget" && has_value) {
      how.budget_factor = std::strtod(argv[++i], nullptr);
    } else {
      return refuse(fmt::format("{}: not a flag, or without its value", flag));
    }
  }
  if (!(how.budget_factor > 0)) return refuse("--budget: must be positive");
  for (const std::string& name : only)
    if (std::ranges::find(all_gains(), name, &Gain::name) == all_gains().end())
      return refuse(name + ": no such gain");

  commtune::Random random(seed);
  std::vector<DrawnCluster> clusters;
  clusters.reserve(static_cast<std::size_t>(cases));
  for (int i = 0; i < cases; ++i) clusters.push_back(drawn_cluster(random));
  if (profile) {
    compare_for(clusters, how, *profile, seed, each);
    return 0;
  }
  if (varies) vary(clusters, how, only);
  const std::vector<Findings> all = findings_of(clusters, how);
  if (each) print_each(clusters, all);
  const Figures figures = figures_of(all);
  fmt::print(
      "at {} sizes of roads that were not measured: alone median {:.2f} %, p90 {:.2f} %; streams median "
      "{:.2f} %, p90 {:.2f} %\n",
      figures.held_out, 100 * figures.alone_median, 100 * figures.alone_p90, 100 * figures.streams_median,
      100 * figures.streams_p90);
  fmt::print("roads with enough sizes: {:.1f} %\nthe budget: {}\n", 100 * figures.enough,
             split_text(figures.shares));
  fmt::print(
      "RESULT sampling seed={} cases={} budget_factor={:g} alone_median={:.5f} alone_p90={:.5f} "
      "streams_median={:.5f} "
      "streams_p90={:.5f} enough={:.4f} regret_mean={:.4f} regret_worst={:.4f} survey={:.3f} links={:.3f} "
      "first_sizes={:.3f} refinement={:.3f} planning={:.3f} rest={:.3f} excluded={}\n",
      seed, cases, how.budget_factor, figures.alone_median, figures.alone_p90, figures.streams_median,
      figures.streams_p90, figures.enough, figures.regret_mean, figures.regret_worst, figures.shares.survey,
      figures.shares.links, figures.shares.first_sizes, figures.shares.refinement, figures.shares.planning,
      figures.shares.rest,
      figures.without_price > 0 ? fmt::format("roads:{}(no-price)", figures.without_price) : "none");
  return 0;
}
