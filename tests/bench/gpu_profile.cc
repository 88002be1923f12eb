// Do layers that are timed one by one on a GPU add up to the whole? Profiles models with cuDNN, cuBLAS and
// commtune's kernels, and compares the sum of all layers' times with one event before and one behind the same
// calls, queued back to back.
//
//   gpu_profile [--gpu N] [--budget SECONDS] [--rounds N] [--match TEXT]
//
// Passes take turns: whole, layer by layer, whole again; figures are medians, and the two measurements of the
// whole are the A/A difference. Exit status 0: every sum is within 10 % of its whole, 1: some is not, 2:
// usage, 3: some model could not be timed, 77: this host has no GPU, or not NVIDIA's libraries.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfmodel/fit/fit.h"
#include "perfmodel/shipped_profiles.h"
#include "probes/compute/architecture.h"
#include "probes/compute/cuda/gpu_model.h"
#include "probes/compute/cuda/gpu_profiler.h"
#include "probes/compute/cuda/library_folders.h"

namespace {

using namespace commtune;
using compute::LayerTimes;
using SteadyClock = std::chrono::steady_clock;

constexpr double kTarget = 0.10;
constexpr int kMissed = 1, kUsage = 2, kFailed = 3, kSkipped = 77;

struct BenchCase {
  const char* model;
  int batch;
};
constexpr std::array kModels{BenchCase{"resnet50", 64}, BenchCase{"bert_base", 32},
                             BenchCase{"resnet50", 32}};
constexpr std::array kPrecisions{compute::Precision::kBf16, compute::Precision::kTf32,
                                 compute::Precision::kFp32};

struct BenchOptions {
  int gpu = 0, rounds = 20;
  double budget = 80;  // seconds: cases that would begin later are left out
  std::string match;
};

struct Findings {
  double sum = 0, whole = 0, whole_again = 0;    // seconds
  double forward = 0, backward = 0, update = 0;  // of the sum
  double difference() const { return sum / whole - 1; }
  double repeat() const { return std::abs(whole_again / whole - 1); }
};

double median(std::vector<double> values) { return median_interval(values).median; }

Findings findings_of(compute::GpuModel& model, std::size_t layers, int rounds) {
  std::vector<double> whole, again;
  std::vector<std::vector<double>> forward(layers), backward(layers), update(layers);
  for (int round = 0; round < rounds; ++round) {
    whole.push_back(model.whole_pass().count());
    const std::vector<LayerTimes> times = model.layer_pass();
    for (std::size_t i = 0; i < layers; ++i) {
      forward[i].push_back(times[i].forward.count());
      backward[i].push_back(times[i].backward.count());
      update[i].push_back(times[i].update.count());
    }
    again.push_back(model.whole_pass().count());
  }
  Findings found;
  for (std::size_t i = 0; i < layers; ++i) {
    found.forward += median(forward[i]);
    found.backward += median(backward[i]);
    found.update += median(update[i]);
  }
  found.sum = found.forward + found.backward + found.update;
  found.whole = median(whole);
  found.whole_again = median(again);
  return found;
}

Findings measure(const BenchCase& one, compute::Precision precision, const BenchOptions& options,
                 const std::vector<std::string>& folders) {
  const compute::Architecture architecture = compute::architecture_of(one.model).value();
  const Profile tensors = shipped_profile(one.model).value();
  const SteadyClock::time_point begin = SteadyClock::now();
  const auto model =
      compute::make_gpu_model(architecture, tensors, {options.gpu, one.batch, precision, folders});
  const Seconds made = SteadyClock::now() - begin;
  static bool is_introduced = false;
  if (!std::exchange(is_introduced, true)) fmt::print("on {}; {}\n", model->device(), model->libraries());
  compute::warm_up(*model, Seconds{1});
  const Findings found = findings_of(*model, architecture.layers.size(), options.rounds);
  fmt::print(
      "{:<10} {:>5} {:<5} {:>9.3f} {:>9.3f} {:>8.3f} {:>9.3f} {:>9.3f} {:>+8.1f} % {:>6.2f} % {:>8.1f} s\n",
      one.model, one.batch, compute::to_string(precision), 1e3 * found.forward, 1e3 * found.backward,
      1e3 * found.update, 1e3 * found.sum, 1e3 * found.whole, 100 * found.difference(), 100 * found.repeat(),
      made.count());
  std::fflush(stdout);
  return found;
}

struct Totals {
  int timed = 0, failed = 0, left_out = 0;
  double worst = 0, worst_repeat = 0;
};

void run_case(const BenchCase& one, compute::Precision precision, const BenchOptions& options,
              const std::vector<std::string>& folders, Totals& totals) {
  try {
    const Findings found = measure(one, precision, options, folders);
    ++totals.timed;
    totals.worst = std::max(totals.worst, std::abs(found.difference()));
    totals.worst_repeat = std::max(totals.worst_repeat, found.repeat());
  } catch (const std::exception& error) {
    ++totals.failed;
    fmt::print("{:<10} {:>5} {:<5} failed: {}\n", one.model, one.batch, compute::to_string(precision),
               error.what());
    std::fflush(stdout);
  }
}

Totals run_cases(const BenchOptions& options, const std::vector<std::string>& folders) {
  fmt::print("{:<10} {:>5} {:<5} {:>9} {:>9} {:>8} {:>9} {:>9} {:>10} {:>8} {:>10}\n", "model", "batch", "",
             "forward", "backward", "update", "sum (ms)", "whole", "off by", "A/A", "made in");
  const SteadyClock::time_point begin = SteadyClock::now();
  Totals totals;
  for (const BenchCase& one : kModels) {
    for (const compute::Precision precision : kPrecisions) {
      const std::string name = fmt::format("{} {} {}", one.model, one.batch, compute::to_string(precision));
      if (name.find(options.match) == std::string::npos) continue;
      const Seconds spent = SteadyClock::now() - begin;
      if (spent.count() > options.budget) {
        ++totals.left_out;
      } else {
        run_case(one, precision, options, folders, totals);
      }
    }
  }
  return totals;
}

constexpr const char* kHelp =
    "usage: gpu_profile [--gpu N] [--budget SECONDS] [--rounds N] [--match TEXT]\n"
    "Compares the sum of layers' times on a GPU with all layers queued back to back, for resnet50 and\n"
    "bert_base in bf16, tf32 and fp32. --match takes the cases whose name (\"resnet50 64 bf16\") contains "
    "TEXT.";

int refuse(std::string_view what) {
  fmt::print(stderr,
             "gpu_profile: {}\nusage: gpu_profile [--gpu N] [--budget SECONDS] [--rounds N] [--match TEXT]\n",
             what);
  return kUsage;
}

bool parse(int argc, char** argv, BenchOptions& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    const char* const value = argv[i + 1];
    if (flag == "--gpu") {
      options.gpu = std::atoi(value);
    } else if (flag == "--budget") {
      options.budget = std::atof(value);
    } else if (flag == "--rounds") {
      options.rounds = std::max(1, std::atoi(value));
    } else if (flag == "--match") {
      options.match = value;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): what is thrown ends the bench
  BenchOptions options;
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    fmt::print("{}\n", kHelp);
    return 0;
  }
  if (!parse(argc, argv, options)) return refuse("a flag that is not known, or one without its value");
  const char* const path = std::getenv("PATH");
  const std::vector<std::string> folders = compute::python_library_folders(path == nullptr ? "" : path);
  if (const std::string why = compute::why_no_gpu_model(folders); !why.empty()) {
    fmt::print("skipped: {}\n", why);
    return kSkipped;
  }
  const Totals totals = run_cases(options, folders);
  const bool is_noisy = totals.worst_repeat > kTarget, is_met = totals.worst <= kTarget;
  fmt::print(
      "RESULT gpu_profile cases={} worst_difference={:.4f}(<={:.2f}) worst_aa={:.4f} failed={} "
      "excluded={} {}\n",
      totals.timed, totals.worst, kTarget, totals.worst_repeat, totals.failed,
      totals.left_out > 0 ? fmt::format("cases:{}(budget)", totals.left_out) : "none",
      is_noisy ? "too_noisy"
      : is_met ? "met"
               : "missed");
  if (totals.failed > 0 || totals.timed == 0 || is_noisy) return kFailed;
  return is_met ? 0 : kMissed;
}
