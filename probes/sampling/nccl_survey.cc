#include "probes/sampling/nccl_survey.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/fit/fit.h"
#include "probes/sampling/targets.h"

namespace commtune::probes {

namespace {

constexpr Bytes kSmallest{1 << 10};  // below, all sizes take what a launch does
constexpr int kTimesEach = 5;
// Numbers of channels beside NCCL's own: fewer leave multiprocessors to the layers, more may fill a faster
// link.
constexpr std::uint32_t kChannels[] = {2, 8, 16};
// A first guess of a collective's time, for time limits alone.
constexpr Seconds kGuess{1e-4};
constexpr SecondsPerByte kGuessPerByte{1e-9};

const Road kLibraryRoad = AllReduce{Collective::kLibrary};

Quantity quantity_of(Operation operation, const NcclTuning& tuning, int workers) {
  Quantity quantity;
  quantity.subject = Subject::kOperation;
  quantity.road = kLibraryRoad;
  quantity.operation = operation;
  quantity.workers = workers;
  quantity.nccl = tuning;
  return quantity;
}

/// A stage of other sizes would be several collectives of NCCL's.
Bytes in_whole_parts(Bytes size, int workers) {
  const std::uint64_t part = sizeof(float) * static_cast<std::uint64_t>(workers);
  return Bytes{std::max(size.count / part, std::uint64_t{1}) * part};
}

class NcclSurvey {
 public:
  NcclSurvey(Measurement& measurement, const ProbeOptions& options, std::span<const ProbeSample> known,
             Seconds limit, const Found& found)
      : measurement_(measurement),
        options_(options),
        sizes_(nccl_sizes(options)),
        until_(measurement.elapsed() + limit),
        found_(found),
        known_(known.begin(), known.end()) {}

  void measure_group(int workers) {
    std::vector<NcclTuning> tunings = nccl_tunings();
    for (const NcclTuning& tuning : tunings) measure(tuning, workers);
    for (const NcclTuning& tuning : fastest_at_the_ends(workers)) {
      for (const std::uint32_t channels : kChannels)
        tunings.push_back({tuning.algorithm, tuning.protocol, channels});
    }
    for (std::size_t i = nccl_tunings().size(); i < tunings.size(); ++i) measure(tunings[i], workers);
    again_ = true;
    for (const NcclTuning& tuning : tunings) measure(tuning, workers);
    again_ = false;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (const auto& [tuning, why] : refused_)
      notes.push_back("not measured: NCCL, " + commtune::to_string(tuning) + ": " + why);
    if (left_out_ > 0) {
      notes.push_back("NCCL's algorithms and protocols: " + std::to_string(left_out_) +
                      (left_out_ == 1 ? " tuning was" : " tunings were") +
                      " left out for lack of time or traffic; a larger budget measures them");
    }
    return notes;
  }

 private:
  static ProbeSample* find(std::vector<ProbeSample>& samples, const Quantity& quantity, Bytes size) {
    const auto found = std::ranges::find_if(samples, [&](const ProbeSample& sample) {
      return sample.quantity == quantity && sample.sample.size == size;
    });
    return found == samples.end() ? nullptr : &*found;
  }

  /// What was known before is left as it is; what was not measured the first time is not the second time
  /// either.
  bool is_wanted(const Quantity& quantity, Bytes size) {
    if (find(known_, quantity, size) != nullptr) return false;
    return again_ == (find(measured_, quantity, size) != nullptr);
  }

  bool fits(const Visit& visit) const {
    const auto traffic = measurement_.traffic_left();
    return measurement_.elapsed() < until_ && (!traffic || visit.sends <= *traffic);
  }

  void measure(const NcclTuning& tuning, int workers) {
    if (refused_.contains(tuning)) return;
    bool complete = true, first = true;
    try {
      for (const Operation operation : nccl_operations(tuning)) {
        for (const Bytes size : sizes_) {
          const Quantity quantity = quantity_of(operation, tuning, workers);
          const Bytes parts = in_whole_parts(size, workers);
          if (!is_wanted(quantity, parts)) continue;
          complete = complete && measure_size(quantity, parts, std::exchange(first, false));
        }
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      refused_.emplace(tuning, error.what());
      return;
    }
    if (!complete && !again_) ++left_out_;
  }

  /// False where there was no time for it.
  bool measure_size(const Quantity& quantity, Bytes size, bool first) {
    Visit visit;
    visit.quantity = quantity;
    visit.size = size;
    visit.repetitions = std::max(options_.iterations, kTimesEach);
    visit.first = first;
    visit.expected = visit.repetitions * (kGuess + kGuessPerByte * size);
    const double sent = bytes_sent(kLibraryRoad, quantity.operation, quantity.workers);
    visit.sends = Bytes{static_cast<std::uint64_t>(sent * static_cast<double>(size.count)) *
                        static_cast<std::uint64_t>(visit.repetitions)};
    if (measurement_.stop_requested() || !fits(visit)) return false;
    std::vector<double> seconds = measurement_.measure(visit);
    ProbeSample* const before = find(measured_, quantity, size);
    if (before != nullptr)
      seconds.insert(seconds.begin(), before->raw_seconds.begin(), before->raw_seconds.end());
    std::vector<double> sorted = seconds;
    const MedianInterval interval = median_interval(sorted);
    const ProbeSample sample{quantity,
                             {size, Seconds{interval.median}, Seconds{(interval.high - interval.low) / 2},
                              static_cast<int>(seconds.size())},
                             seconds};
    if (before != nullptr) {
      *before = sample;
    } else {
      measured_.push_back(sample);
    }
    found_(sample);
    return true;
  }

  /// All-reduces that NCCL was told to run so, at the smallest and the largest size.
  std::vector<NcclTuning> fastest_at_the_ends(int workers) const {
    std::vector<NcclTuning> fastest;
    for (const Bytes end : {sizes_.front(), sizes_.back()}) {
      const Bytes size = in_whole_parts(end, workers);
      const ProbeSample* best = nullptr;
      for (const ProbeSample& sample : measured_) {
        const NcclTuning& tuning = sample.quantity.nccl;
        const bool counts = sample.sample.size == size && !tuning.is_own_choice() && tuning.channels == 0 &&
                            sample.quantity == quantity_of(Operation::kAllReduce, tuning, workers);
        if (counts && (best == nullptr || sample.sample.time < best->sample.time)) best = &sample;
      }
      if (best != nullptr && std::ranges::find(fastest, best->quantity.nccl) == fastest.end())
        fastest.push_back(best->quantity.nccl);
    }
    return fastest;
  }

  Measurement& measurement_;
  const ProbeOptions& options_;
  const std::vector<Bytes> sizes_;
  const Seconds until_;
  const Found& found_;
  std::vector<ProbeSample> known_, measured_;  ///< before, and by this
  bool again_ = false;
  std::map<NcclTuning, std::string> refused_;  ///< with NCCL's words
  int left_out_ = 0;
};

}  // namespace

std::vector<NcclTuning> nccl_tunings() {
  using Algorithm = NcclAlgorithm;
  using Protocol = NcclProtocol;
  return {{},
          {Algorithm::kRing, Protocol::kSimple},
          {Algorithm::kRing, Protocol::kLl},
          {Algorithm::kTree, Protocol::kLl},
          {Algorithm::kTree, Protocol::kSimple},
          {Algorithm::kRing, Protocol::kLl128},
          {Algorithm::kTree, Protocol::kLl128},
          {Algorithm::kNvls, Protocol::kSimple},
          {Algorithm::kNvlsTree, Protocol::kSimple},
          {Algorithm::kCollnetDirect, Protocol::kSimple},
          {Algorithm::kCollnetChain, Protocol::kSimple},
          {Algorithm::kPat, Protocol::kSimple}};
}

std::vector<Operation> nccl_operations(const NcclTuning& tuning) {
  if (tuning.algorithm == NcclAlgorithm::kPat) return {Operation::kReduceScatter, Operation::kAllGather};
  const bool has_stages = tuning.is_own_choice() || tuning.algorithm == NcclAlgorithm::kRing;
  if (!has_stages) return {Operation::kAllReduce};
  return {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather};
}

std::vector<int> nccl_groups(std::span<const std::string> rank_hosts) {
  const auto ranks = static_cast<int>(rank_hosts.size());
  const auto other =
      std::ranges::find_if(rank_hosts, [&](const std::string& host) { return host != rank_hosts.front(); });
  const auto of_first = static_cast<int>(other - rank_hosts.begin());
  std::vector<int> groups{ranks};
  if (of_first > 1 && of_first < ranks) groups.push_back(of_first);
  return groups;
}

std::vector<Bytes> nccl_sizes(const ProbeOptions& options) {
  std::vector<Bytes> sizes;
  const Bytes first = std::min(std::max(options.first, kSmallest), options.last);
  for (double size = static_cast<double>(first.count); size < static_cast<double>(options.last.count);
       size *= options.factor) {
    sizes.push_back(Bytes{static_cast<std::uint64_t>(size)});
  }
  sizes.push_back(options.last);
  return sizes;
}

std::vector<std::string> survey_nccl(Measurement& measurement, const ProbeOptions& options,
                                     const std::vector<std::string>& rank_hosts,
                                     std::span<const ProbeSample> known, Seconds limit, const Found& found) {
  NcclSurvey survey(measurement, options, known, limit, found);
  for (const int workers : nccl_groups(rank_hosts)) survey.measure_group(workers);
  return survey.notes();
}

}  // namespace commtune::probes
