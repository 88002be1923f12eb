#pragma once
// The simulator's compute side: when work is done while traffic slows it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace commtune {

/// Times at which a channel is occupied, in order.
class BusyTimes {
 public:
  void clear() {
    spans_.clear();
    next_ = 0;
  }
  void add(double from, double until) {
    if (until <= from) return;
    if (spans_.size() > next_ && spans_.back().until >= from) {
      spans_.back().until = until;
    } else {
      begin(from, until);
    }
  }
  /// Forgets what ended by `now`.
  void pass(double now) {
    while (next_ < spans_.size() && spans_[next_].until <= now) ++next_;
  }
  void rewind() { next_ = 0; }
  struct Span {
    double from, until;
  };
  const Span* begin() const { return spans_.data() + next_; }
  const Span* end() const { return spans_.data() + spans_.size(); }

 private:
  /// Apart from add(), which is small without it and thus inlined where it is called twice a round.
  [[gnu::noinline]] void begin(double from, double until) { spans_.push_back({from, until}); }

  std::vector<Span> spans_;
  std::size_t next_ = 0;
};

/// The compute side: work is done at full speed while both channels are idle and 1/(1+kappa) of it otherwise.
class ComputeClock {
 public:
  void reset(double kappa) {
    slow_ = 1 + kappa;
    slowed_rate_ = 1 / slow_;
    now_ = 0;
    work_ = 0;
    busy_[0].clear();
    busy_[1].clear();
  }
  /// Back to the start of the backward pass, with everything that was sent since then known.
  void rewind() {
    now_ = work_ = 0;
    busy_[0].rewind();
    busy_[1].rewind();
  }
  bool disturbed() const { return slow_ > 1; }
  double work() const { return work_; }
  void occupy(std::size_t channel, double from, double until) {
    if (disturbed()) busy_[channel].add(from, until);
  }
  /// When `work` will be done, if nothing more is sent.
  double when(double work) const { return disturbed() ? now_ + stretched(now_, work - work_) : work; }
  /// Moves the clock to where `work` is done.
  double reach(double work) {
    now_ = when(work);
    work_ = work;
    busy_[0].pass(now_);
    busy_[1].pass(now_);
    return now_;
  }
  /// End of `amount` of work that starts at `from`, no earlier than the clock; moves the clock there.
  double run(double from, double amount) {
    if (!disturbed()) return now_ = from + amount;
    busy_[0].pass(from);
    busy_[1].pass(from);
    now_ = from + stretched(from, amount);
    return now_;
  }

 private:
  /// How long `amount` of work lasts from `from` on.
  double stretched(double from, double amount) const {
    const BusyTimes::Span* a = busy_[0].begin();
    const BusyTimes::Span* b = busy_[1].begin();
    double at = from;
    while (amount > 0) {
      while (a != busy_[0].end() && a->until <= at) ++a;
      while (b != busy_[1].end() && b->until <= at) ++b;
      const auto edge = [at](const BusyTimes::Span* span, const BusyTimes::Span* end, bool& busy) {
        if (span == end) return std::numeric_limits<double>::infinity();
        if (span->from > at) return span->from;
        busy = true;
        return span->until;
      };
      bool busy = false;
      const double until = std::min(edge(a, busy_[0].end(), busy), edge(b, busy_[1].end(), busy));
      if (!busy) {
        if (amount <= until - at) return at + amount - from;
        amount -= until - at;
      } else {
        if (amount <= (until - at) * slowed_rate_) return at + amount / slowed_rate_ - from;
        amount -= (until - at) * slowed_rate_;
      }
      at = until;
    }
    return at - from;
  }

  double slow_ = 1, slowed_rate_ = 1, now_ = 0, work_ = 0;
  std::array<BusyTimes, 2> busy_;
};

}  // namespace commtune
