// How well the time of an all-reduce of NCCL's is known beforehand, by curves fitted to every other size and
// by NCCL's own estimate (ncclGroupSimulateEnd), and what the tuner plugin gains by them: two ranks on one
// GPU, whose messages travel over the loopback interface.
//
//   build/tests/bench/gpu_tuning      status 1 where a target is missed, 77 where there is no GPU

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "executor/collectives/nccl/functions.h"
#include "executor/collectives/nccl/lane.h"
#include "executor/collectives/nccl/told_tuning.h"
#include "executor/memory/cuda/cuda_memory.h"
#include "executor/session/exchange.h"
#include "perfmodel/base/error.h"
#include "perfmodel/fit/fit.h"
#include "probes/analysis/fit_nccl.h"
#include "probes/sampling/nccl_survey.h"
#include "tests/bench/gpu_bench.h"
#include "tests/gpu/gpu_ranks.h"
#include "tuner/nccl_tunings.h"

namespace commtune::bench {
namespace {

constexpr int kRanks = 2, kRepetitions = 9;
const Bytes kFirst = 1_KiB, kLast = 4_MiB;

Deadline soon() { return Clock::now() + std::chrono::seconds(60); }

std::vector<Bytes> all_sizes() {
  std::vector<Bytes> sizes;
  for (Bytes size = kFirst; size <= kLast; size = Bytes{2 * size.count}) sizes.push_back(size);
  return sizes;
}

/// A blocking communicator, as other people's programs have them, that was told a tuning, or whatever the
/// environment says.
class Told {
 public:
  /// Throws Error{kUnavailable} where NCCL does not run so; on all ranks.
  Told(Communicator& ranks, const NcclTuning& tuning, const Buffer& data) : data_(data) {
    const nccl::ToldTuning told(tuning);
    const std::string own = ranks.rank() == 0 ? nccl::make_unique_id() : std::string();
    const ncclUniqueId id = nccl::unique_id_of(broadcast(ranks, own, soon()));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    expect(nccl::functions().init(&communicator_, kRanks, id, ranks.rank(), &config),
           "ncclCommInitRankConfig");
    try {
      sum(kFirst);
    } catch (const Error&) {
      nccl::functions().abort(communicator_);
      throw;
    }
  }
  ~Told() { nccl::functions().destroy(communicator_); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  double seconds(Bytes size) const {
    const auto begin = Clock::now();
    sum(size);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  /// NCCL's own word; nullopt: it has no such function.
  std::optional<double> estimated_seconds(Bytes size) const {
    if (nccl::functions().simulate == nullptr) return std::nullopt;
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    expect(nccl::functions().group_start(), "ncclGroupStart");
    put(size);
    if (nccl::functions().simulate(&info) != ncclSuccess) return std::nullopt;
    return static_cast<double>(info.estimatedTime) * 1e-6;
  }

 private:
  static void expect(ncclResult_t result, const char* call) {
    if (result == ncclSuccess) return;
    throw Error(ErrorCode::kUnavailable, fmt::format("{}: {}", call, nccl::words_of(result, nullptr)));
  }
  void put(Bytes size) const {
    expect(nccl::functions().all_reduce(data_.address, data_.address, size.count / sizeof(float), ncclFloat32,
                                        ncclSum, communicator_,
                                        reinterpret_cast<cudaStream_t>(stream_.handle())),
           "ncclAllReduce");
  }
  void sum(Bytes size) const {
    put(size);
    stream_.synchronize();
  }

  const Buffer data_;
  const cuda::Stream stream_;
  ncclComm_t communicator_ = nullptr;
};

/// A rank's communicator of ours, and memory to sum in.
class Place {
 public:
  Place(Transport& transport, Memory& memory)
      : memory_(memory), ranks_(transport, memory), data_(memory.allocate(kLast.count)) {}
  ~Place() { memory_.release(data_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  Communicator& ranks() { return ranks_; }
  const Buffer& data() const { return data_; }
  bool is_first() const { return ranks_.rank() == 0; }

 private:
  Memory& memory_;
  Communicator ranks_;
  const Buffer data_;
};

// --- how well times are known ---------------------------------------------------------------------------

struct Measured {
  NcclTuning tuning;
  std::vector<std::vector<double>> seconds;  ///< by size
  std::vector<Sample> samples;               ///< by size
  std::vector<std::optional<double>> estimates;
};

/// Once more after another's turn, so that intervals have in them how far communicators are apart.
void measure_again(Place& place, Measured& measured) {
  const Told told(place.ranks(), measured.tuning, place.data());
  measured.samples.clear();
  measured.estimates.clear();
  for (std::size_t i = 0; i < measured.seconds.size(); ++i) {
    const Bytes size = all_sizes()[i];
    told.seconds(size);
    for (int repetition = 0; repetition < kRepetitions; ++repetition)
      measured.seconds[i].push_back(told.seconds(size));
    std::vector<double> sorted = measured.seconds[i];
    const MedianInterval interval = median_interval(sorted);
    measured.samples.push_back({size, Seconds{interval.median}, Seconds{(interval.high - interval.low) / 2},
                                static_cast<int>(sorted.size())});
    measured.estimates.push_back(told.estimated_seconds(size));
  }
}

std::optional<Measured> measure(Place& place, const NcclTuning& tuning) {
  try {
    Measured measured{tuning, std::vector<std::vector<double>>(all_sizes().size()), {}, {}};
    measure_again(place, measured);
    return measured;
  } catch (const Error& error) {
    if (place.is_first()) fmt::print("{:>20}  {}\n", to_string(tuning), error.what());
    return std::nullopt;
  }
}

struct Errors {
  std::vector<double> ours, nccls;
};

/// At every other size, which the curve has not seen.
Errors errors_of(const Measured& measured) {
  std::vector<Sample> seen;
  for (std::size_t i = 0; i < measured.samples.size(); i += 2) seen.push_back(measured.samples[i]);
  const Curve curve = fit_curve(seen).curve;
  Errors errors;
  for (std::size_t i = 1; i < measured.samples.size(); i += 2) {
    const Sample& sample = measured.samples[i];
    errors.ours.push_back(std::abs(curve(sample.size) / sample.time - 1));
    if (measured.estimates[i])
      errors.nccls.push_back(std::abs(*measured.estimates[i] / sample.time.count() - 1));
  }
  return errors;
}

/// The table that a probe of these samples would end in.
NcclTuningTable table_of(const std::vector<Measured>& all) {
  std::vector<probes::OperationSamples> tunings;
  for (const Measured& measured : all) {
    probes::OperationSamples& samples = tunings.emplace_back();
    samples.quantity.road = AllReduce{Collective::kLibrary};
    samples.quantity.workers = kRanks;
    samples.quantity.nccl = measured.tuning;
    samples.alone = measured.samples;
  }
  Cluster cluster;
  for (int rank = 0; rank < kRanks; ++rank) cluster.hosts.push_back({fmt::format("rank-{}", rank), 1});
  cluster.nccl = probes::fit_nccl(tunings, {});
  return tuner::nccl_tunings(cluster);
}

/// On rank 0 prints, and writes errors and the table to `results`, for the ranks that come after.
void know_times(Place& place, const std::filesystem::path& results) {
  std::vector<Measured> all;
  Errors errors;
  if (place.is_first()) fmt::print("{:>20} {:>14} {:>14}\n", "tuning", "curves' error", "NCCL's");
  for (const NcclTuning& tuning : probes::nccl_tunings()) {
    if (const auto measured = measure(place, tuning)) all.push_back(*measured);
  }
  for (Measured& measured : all) {
    measure_again(place, measured);
    const Errors own = errors_of(measured);
    errors.ours.insert(errors.ours.end(), own.ours.begin(), own.ours.end());
    errors.nccls.insert(errors.nccls.end(), own.nccls.begin(), own.nccls.end());
    if (!place.is_first()) continue;
    const std::string name = measured.tuning.is_own_choice() ? "NCCL's own" : to_string(measured.tuning);
    fmt::print("{:>20} {:>13.1f}% {:>14}\n", name, 100 * median_of(own.ours),
               own.nccls.empty() ? "not said" : fmt::format("{:.1f}%", 100 * median_of(own.nccls)));
  }
  if (!place.is_first()) return;
  std::ofstream(results) << to_text(table_of(all)) << '\n'
                         << all.size() << ' ' << median_of(errors.ours) << ' '
                         << (errors.nccls.empty() ? -1 : median_of(errors.nccls)) << '\n';
}

// --- what the plugin gains ------------------------------------------------------------------------------

struct Turns {
  std::vector<double> own, again, tuned;
};

/// By turns, so that all see the same minutes.
Turns take_turns(const Told& own, const Told& tuned, Bytes size) {
  Turns turns;
  for (int i = -1; i < kRepetitions; ++i) {
    const double first = own.seconds(size), with_plugin = tuned.seconds(size), second = own.seconds(size);
    if (i < 0) continue;
    turns.own.push_back(first);
    turns.tuned.push_back(with_plugin);
    turns.again.push_back(second);
  }
  return turns;
}

struct Gain {
  double ratio = 1, aa = 0;  ///< of times, with the plugin's over without; means over sizes
};

/// The plugin has been loaded with the first communicator; each reads the table when it is made.
void use_plugin(Place& place, const std::string& table, const std::filesystem::path& results) {
  const char* const variable = "COMMTUNE_NCCL_TUNING";
  unsetenv(variable);
  const Told own(place.ranks(), {}, place.data());
  setenv(variable, table.c_str(), 1);
  const Told tuned(place.ranks(), {}, place.data());
  double logarithms = 0, differences = 0;
  if (place.is_first()) fmt::print("\n{:>12} {:>14} {:>14} {:>8}\n", "size", "own us", "plugin us", "A/A");
  for (const Bytes size : all_sizes()) {
    const Turns turns = take_turns(own, tuned, size);
    std::vector<double> both = turns.own;
    both.insert(both.end(), turns.again.begin(), turns.again.end());
    const double aa = difference(turns.own, turns.again);
    logarithms += std::log(median_of(turns.tuned) / median_of(both));
    differences += aa;
    if (place.is_first()) {
      fmt::print("{:>10} B {:>14.1f} {:>14.1f} {:>7.1f}%\n", size.count, median_of(both) * 1e6,
                 median_of(turns.tuned) * 1e6, 100 * aa);
    }
  }
  const auto count = static_cast<double>(all_sizes().size());
  if (place.is_first())
    std::ofstream(results) << std::exp(logarithms / count) << ' ' << differences / count << '\n';
}

// --- both -----------------------------------------------------------------------------------------------

/// In the bundle beside the program's folder, else where the build puts it.
std::string plugin_file() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto beside = program.parent_path().parent_path() / "lib" / "libnccl-tuner-commtune.so";
  return std::filesystem::exists(beside) ? beside.string() : COMMTUNE_TUNER_PLUGIN;
}

int end_of(const std::vector<std::string>& ends) {
  int status = 0;
  for (const std::string& end : ends) {
    if (end.empty()) continue;
    fmt::print("{}\n", end);
    status = 1;
  }
  return status;
}

bool is_on_standin() {
  const auto* const name = "commtune_standin_nccl_choice";
  return nccl::loaded().why_not.empty() &&
         dlsym(dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD), name) != nullptr;
}

int run() {
  const std::filesystem::path results =
      std::filesystem::temp_directory_path() / fmt::format("commtune-gpu-tuning-{}", getpid());
  int status = end_of(tests::ends_of_gpu_ranks(kRanks, [&](Transport& transport, Memory& memory) {
    Place place(transport, memory);
    know_times(place, results);
    std::fflush(stdout);
  }));
  if (status != 0) return status;
  std::string table;
  int tunings = 0;
  double ours = 0, nccls = 0;
  std::ifstream(results) >> table >> tunings >> ours >> nccls;
  setenv("NCCL_TUNER_PLUGIN", plugin_file().c_str(), 1);
  status = end_of(tests::ends_of_gpu_ranks(kRanks, [&](Transport& transport, Memory& memory) {
    Place place(transport, memory);
    use_plugin(place, table, results);
    std::fflush(stdout);
  }));
  if (status != 0) return status;
  Gain gain;
  std::ifstream(results) >> gain.ratio >> gain.aa;
  std::filesystem::remove(results);
  const bool judged = !is_on_standin();
  fmt::print("\n{}\n", table);
  fmt::print(
      "RESULT gpu_tuning ranks={} tunings={} curves_median_error={:.4f} nccl_median_error={:.4f} "
      "plugin_time_ratio={:.4f} aa={:.4f} target=curves<=nccl,ratio<=1 excluded={}\n",
      kRanks, tunings, ours, nccls, gain.ratio, gain.aa, judged ? "none" : "all:stand-in");
  const bool knows = nccls < 0 || ours <= nccls + 2 * gain.aa;
  return !judged || (knows && gain.ratio <= 1 + 2 * gain.aa) ? 0 : 1;
}

}  // namespace
}  // namespace commtune::bench

int main() {
  return commtune::bench::exit_status("gpu_tuning", commtune::tests::why_no_gpu_ranks, commtune::bench::run);
}
