#include "perfmodel/simulate/traffic_clock.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace commtune {

namespace {

/// Compute on the traffic's clock, as the stretches during which it runs.
class ComputeBefore {
 public:
  explicit ComputeBefore(const Timeline& timeline) {
    if (timeline.backward_end.empty()) return;
    add({}, timeline.backward_end.front());
    for (std::size_t i = 0; i < timeline.forward_start.size(); ++i)
      add(timeline.forward_start[i], timeline.forward_end[i]);
  }

  Seconds operator()(Seconds moment) const {
    const auto next = std::upper_bound(stretches_.begin(), stretches_.end(), moment,
                                       [](Seconds at, const Stretch& stretch) { return at < stretch.from; });
    if (next == stretches_.begin()) return {};
    const Stretch& stretch = *std::prev(next);
    return stretch.before + std::min(moment, stretch.until) - stretch.from;
  }

 private:
  struct Stretch {
    Seconds from, until, before;
  };
  void add(Seconds from, Seconds until) {
    const Seconds before = stretches_.empty()
                               ? Seconds{}
                               : stretches_.back().before + stretches_.back().until - stretches_.back().from;
    stretches_.push_back({from, until, before});
  }
  std::vector<Stretch> stretches_;  ///< in order
};

}  // namespace

void to_real_time(Timeline& timeline, double contention) {
  if (!(contention > 0)) return;
  const ComputeBefore compute_before(timeline);
  const auto shift = [&](Seconds& moment) { moment += contention * compute_before(moment); };
  for (auto* moments :
       {&timeline.backward_start, &timeline.backward_end, &timeline.forward_start, &timeline.forward_end}) {
    std::for_each(moments->begin(), moments->end(), shift);
  }
  for (auto* spans : {&timeline.messages, &timeline.pulls}) {
    for (MessageSpan& span : *spans) {
      for (Seconds* moment : {&span.released, &span.reduce_start, &span.reduce_end, &span.distribute_start,
                              &span.distribute_end}) {
        shift(*moment);
      }
    }
  }
}

}  // namespace commtune
