#include "tests/bench/sampling_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace commtune::bench {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

namespace {

std::vector<double> errors_of(const std::vector<Findings>& all, bool streamed) {
  std::vector<double> errors;
  for (const Findings& one : all) {
    for (const HeldOut& held_out : one.held_out) {
      if (held_out.streamed == streamed) errors.push_back(held_out.error);
    }
  }
  return errors;
}

void add(BudgetSplit& sum, const BudgetSplit& one) {
  sum.survey += one.survey;
  sum.links += one.links;
  sum.first_sizes += one.first_sizes;
  sum.refinement += one.refinement;
  sum.planning += one.planning;
  sum.rest += one.rest;
}

}  // namespace

Figures figures_of(const std::vector<Findings>& all) {
  Figures figures;
  const std::vector<double> alone = errors_of(all, false), streams = errors_of(all, true);
  figures.alone_median = quantile(alone, 0.5);
  figures.alone_p90 = quantile(alone, 0.9);
  figures.streams_median = quantile(streams, 0.5);
  figures.streams_p90 = quantile(streams, 0.9);
  figures.held_out = static_cast<int>(alone.size() + streams.size());
  std::vector<double> regrets;
  double curves = 0, enough = 0;
  BudgetSplit sum;
  for (const Findings& one : all) {
    curves += one.curves;
    enough += one.with_enough;
    figures.without_price += one.without_price;
    regrets.push_back(one.regret);
    add(sum, one.spent);
  }
  figures.enough = curves > 0 ? enough / curves : 0;
  figures.regret_mean = mean(regrets);
  figures.regret_worst = quantile(regrets, 1);
  const double whole = sum.whole();
  figures.shares = {sum.survey / whole,     sum.links / whole,    sum.first_sizes / whole,
                    sum.refinement / whole, sum.planning / whole, sum.rest / whole};
  return figures;
}

std::vector<Findings> findings_of(const std::vector<DrawnCluster>& clusters, const SamplingCase& how) {
  std::vector<Findings> all(clusters.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < clusters.size(); i = next++) {
      SamplingCase own = how;
      own.noise_seed = 1'000'000'007 * how.noise_seed + i;
      all[i] = probe_drawn(clusters[i], own);
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) workers.emplace_back(work);
    work();
  }
  return all;
}

std::string split_text(const BudgetSplit& shares) {
  return fmt::format(
      "survey {:.0f} %, links {:.0f} %, roads' first sizes {:.0f} %, refinement {:.0f} %, planning {:.0f} %, "
      "rest {:.0f} %",
      100 * shares.survey, 100 * shares.links, 100 * shares.first_sizes, 100 * shares.refinement,
      100 * shares.planning, 100 * shares.rest);
}

Count count_of(const std::vector<Findings>& now, const std::vector<Findings>& as_is,
               const std::vector<Findings>& again) {
  Count count;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double noise = std::abs(again[i].mean_error() - as_is[i].mean_error());
    const double by = now[i].mean_error() - as_is[i].mean_error();
    count.fell += by < -noise ? 1 : 0;
    count.rose += by > noise ? 1 : 0;
  }
  return count;
}

}  // namespace commtune::bench
