#include "tests/cluster/link_queue.h"

#include <algorithm>
#include <functional>

namespace commtune::cluster {

LinkQueue::LinkQueue(std::int64_t bytes_per_second, std::int64_t buffer_bytes)
    : clock_(bytes_per_second), buffer_bytes_(buffer_bytes) {}

void LinkQueue::set(std::int64_t bytes_per_second, std::int64_t buffer_bytes) {
  clock_.set_bytes_per_second(bytes_per_second);
  buffer_bytes_ = buffer_bytes;
}

Time LinkQueue::ready(const Frame& frame, std::size_t packet) const {
  const auto at = [&](std::size_t before) {  // when that many packets have arrived wholly
    const double share = static_cast<double>(frame.train.wire_bytes_before(before)) /
                         static_cast<double>(frame.train.wire_bytes());
    const auto span = static_cast<double>((frame.passage.last - frame.passage.first).count());
    return frame.passage.first + Time{static_cast<std::int64_t>(span * share)};
  };
  return std::max(at(packet), at(packet + 1) - clock_.duration(frame.train.wire_bytes(packet)));
}

Time LinkQueue::last_ready(const Frame& frame) const { return ready(frame, frame.train.packets - 1); }

Time LinkQueue::join(Frame* frame) {
  frame->served = 0;
  frame->leaves = {Time::max(), Time::min()};
  arriving_.push_back({ready(*frame, 0), joined_++, frame});
  std::push_heap(arriving_.begin(), arriving_.end(), std::greater<>());
  return last_ready(*frame);
}

/// Deals with the train's next packet.
void LinkQueue::serve(Frame& frame, Time ready) {
  const std::size_t packet = frame.served++;
  if (frame.lost[packet]) return;
  const std::int64_t bytes = frame.train.wire_bytes(packet);
  const std::int64_t waiting = clock_.backlog(ready);
  if (waiting > 0 && waiting + bytes > buffer_bytes_) {
    frame.lost.set(packet);
    return;
  }
  const Passage sent = clock_.send(ready, bytes);
  frame.leaves = {std::min(frame.leaves.first, sent.first), sent.last};
}

void LinkQueue::serve_until(Time until) {
  while (!arriving_.empty() && arriving_.front().ready <= until) {
    std::pop_heap(arriving_.begin(), arriving_.end(), std::greater<>());
    Arrival& next = arriving_.back();
    do {
      serve(*next.frame, next.ready);
      if (!done(*next.frame)) next.ready = ready(*next.frame, next.frame->served);
    } while (!done(*next.frame) && next.ready <= until &&
             (arriving_.size() == 1 || arriving_.front() > next));
    if (done(*next.frame)) {
      arriving_.pop_back();
    } else {
      std::push_heap(arriving_.begin(), arriving_.end(), std::greater<>());
    }
  }
}

}  // namespace commtune::cluster
