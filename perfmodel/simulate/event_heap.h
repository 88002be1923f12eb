#pragma once
// Future events of many that act side by side.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace commtune {

/// Events, the soonest first. Handling one mostly brings another: the first to come takes the place of the
/// one that was taken last, which saves a way through the heap. Where few
/// events are to come a sorted array (NetworkModel's) takes less.
class EventHeap {
 public:
  struct Event {
    double at = 0;
    std::uint32_t whose = 0;
    std::uint32_t stamp = 0;
  };

  void clear() {
    heap_.clear();
    first_is_taken_ = false;
  }
  /// Moment of the soonest; infinity if there is none.
  double soonest() {
    settle();
    return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.front().at;
  }
  /// The soonest one, which must be there.
  Event take() {
    settle();
    first_is_taken_ = true;
    return heap_.front();
  }
  void push(const Event& event) {
    if (first_is_taken_) {
      first_is_taken_ = false;
      return sink(event);
    }
    std::size_t place = heap_.size();
    heap_.push_back(event);
    for (; place > 0 && heap_[(place - 1) / 2].at > event.at; place = (place - 1) / 2) {
      heap_[place] = heap_[(place - 1) / 2];
    }
    heap_[place] = event;
  }

 private:
  /// Fills the first place where nothing has taken it.
  void settle() {
    if (!first_is_taken_) return;
    first_is_taken_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }
  /// Puts an event in the first place or where it belongs below.
  void sink(const Event& event) {
    Event* const heap = heap_.data();
    const std::size_t size = heap_.size();
    std::size_t place = 0;
    for (std::size_t child = 1; child < size; child = 2 * place + 1) {
      if (child + 1 < size && heap[child + 1].at < heap[child].at) ++child;
      if (heap[child].at >= event.at) break;
      heap[place] = heap[child];
      place = child;
    }
    heap[place] = event;
  }

  std::vector<Event> heap_;
  bool first_is_taken_ = false;
};

}  // namespace commtune
