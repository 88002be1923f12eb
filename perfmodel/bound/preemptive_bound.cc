#include "perfmodel/bound/preemptive_bound.h"

#include <algorithm>

#include "perfmodel/base/never.h"
#include "perfmodel/bound/bound_search.h"
#include "perfmodel/cost/least_cost.h"

namespace commtune {

namespace {

class Program {
 public:
  Program(const Workload& work, const PreemptiveChannel& channel) : work_(work), channel_(channel) {
    double bytes = 0;
    for (std::size_t i = 0; i < work.layers(); ++i) {
      bytes += static_cast<double>(work.layer_bytes[i]);
      until_.push_back(bytes);
    }
  }

  /// The largest time that is ruled out and the least that is not, `known` or later.
  struct Times {
    double ruled_out, open;
  };
  Times search(double known) const {
    if (const double next = known * (1 + kBoundPrecision); possible(next)) return {known, next};
    Times times{known, 2 * known};
    while (!possible(times.open)) times.open *= 2;
    while (times.open - times.ruled_out > kBoundPrecision * times.open) {
      const double middle = (times.ruled_out + times.open) / 2;
      (possible(middle) ? times.open : times.ruled_out) = middle;
    }
    return times;
  }

  /// Whether messages can be back in time; `ends`, if given, says where they end.
  bool possible(double time, std::vector<double>* ends = nullptr) const {
    double overheads = 0;
    for (double done = 0; done < until_.back();) {
      overheads += channel_.overhead;
      const std::size_t lowest = layer_at(done);
      const double left = time - work_.ready[lowest] - work_.tail[lowest] - channel_.latency - overheads;
      if (left < 0) return false;
      const double reach = channel_.beta > 0 ? left / channel_.beta : kNever;
      if (!(reach > done)) return false;
      done = reach;
      if (ends != nullptr) ends->push_back(std::min(done, until_.back()));
    }
    return true;
  }

 private:
  /// The first layer that has bytes beyond the first `place`; there is one.
  std::size_t layer_at(double place) const {
    const auto found = std::upper_bound(until_.begin(), until_.end(), place);
    return static_cast<std::size_t>(std::min(found, until_.end() - 1) - until_.begin());
  }

  const Workload& work_;
  const PreemptiveChannel channel_;
  std::vector<double> until_;  ///< bytes of this layer and of all before it
};

}  // namespace

PreemptiveChannel preemptive_channel(const RoadCost& cost, int waits) {
  const LeastCost least = least_cost(cost.both, Floor::kBytes);
  return {least.overhead, least.beta,
          (least.latency - least.overhead) / 2 + waits * cost.head_of_line.count()};
}

double preemptive_bound(const Workload& work, const PreemptiveChannel& channel, double known) {
  return Program(work, channel).search(known).ruled_out;
}

std::vector<double> preemptive_messages(const Workload& work, const PreemptiveChannel& channel,
                                        double known) {
  const Program program(work, channel);
  std::vector<double> ends;
  program.possible(program.search(known).open, &ends);
  return ends;
}

}  // namespace commtune
