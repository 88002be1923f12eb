#include "tuner/methods/ipart.h"

#include <algorithm>
#include <deque>

#include "perfmodel/fit/curve_ops.h"
#include "tuner/messages.h"

namespace commtune::tuner {

namespace {

/// What has appeared and not been sent, and the clock of the channel.
class Greedy {
 public:
  Greedy(const Planning& job, const RoadOption& option)
      : work_(job.work),
        element_(element_size(job.profile.type).count),
        cost_(option.cost.shared_channel ? option.cost.both : option.cost.reduce),
        start_up_(std::min(cost_.occupancy.least_alpha(), cost_.alone.least_alpha()).count()),
        per_byte_(std::min(least_time_per_byte(cost_.occupancy), least_time_per_byte(cost_.alone)).value) {}

  std::vector<Message> messages() {
    const auto last = static_cast<TensorId>(work_.tensors.size());
    for (TensorId next = last; next > 0;) {
      const std::uint32_t layer = work_.tensors[next - 1].layer;
      for (; next > 0 && work_.tensors[next - 1].layer == layer; --next) {
        waiting_.push_back({next - 1, Bytes{0}, work_.tensors[next - 1].bytes});
      }
      now_ = std::max(now_, work_.ready[layer]);
      if (next > 0) push_until(work_.ready[work_.tensors[next - 1].layer]);
    }
    pull();
    return std::move(messages_);
  }

 private:
  /// One message that fits before `next` appears, if that is worth its start-up.
  void push_until(double next) {
    const double room = next - now_ - start_up_;
    if (room <= start_up_ || waiting_.empty()) return;
    send(per_byte_ > 0 ? room / per_byte_ : static_cast<double>(work_.total_bytes));
  }

  /// Forward order; a message may last as long as the layers computed meanwhile.
  void pull() {
    std::stable_sort(waiting_.begin(), waiting_.end(), [&](const Piece& a, const Piece& b) {
      return work_.tensors[a.tensor].layer < work_.tensors[b.tensor].layer;
    });
    double busy = 2 * start_up_;
    while (!waiting_.empty()) {
      const double most =
          per_byte_ > 0 ? (busy - start_up_) / per_byte_ : static_cast<double>(work_.total_bytes);
      const std::uint32_t from = work_.tensors[waiting_.front().tensor].layer;
      send(std::max(most, static_cast<double>(element_)));
      const std::uint32_t until = waiting_.empty() ? from : work_.tensors[waiting_.front().tensor].layer;
      const double computed = work_.tail[from] - work_.tail[until];
      busy = std::max({busy * 1.5, computed, 2 * start_up_});
    }
  }

  /// The first waiting bytes, at most so many, as one message.
  void send(double most) {
    auto room = static_cast<std::uint64_t>(std::min(most, static_cast<double>(work_.total_bytes))) /
                element_ * element_;
    Message message;
    while (room > 0 && !waiting_.empty()) {
      Piece& piece = waiting_.front();
      const Bytes length{std::min(piece.length.count, room)};
      message.pieces.push_back({piece.tensor, piece.offset, length});
      room -= length.count;
      piece.offset += length;
      piece.length = piece.length - length;
      if (piece.length.count == 0) waiting_.pop_front();
    }
    if (message.pieces.empty()) return;
    now_ += start_up_ + per_byte_ * static_cast<double>(message_bytes(message).count);
    messages_.push_back(std::move(message));
  }

  const Workload& work_;
  const std::uint64_t element_;
  const StageCost& cost_;
  const double start_up_, per_byte_;
  std::deque<Piece> waiting_;
  std::vector<Message> messages_;
  double now_ = 0;
};

}  // namespace

Plan ipart(const Planning& job, const RoadOption& option) {
  Plan plan = job.empty_plan(option.road);
  plan.messages = Greedy{job, option}.messages();
  plan.priority = list_priorities(plan.messages.size());
  plan.barrier = Barrier::kPerLayer;
  plan.credit = kUnlimited;
  return plan;
}

}  // namespace commtune::tuner
