#include "executor/memory/cuda/completions.h"

#include <algorithm>
#include <utility>

namespace commtune::cuda {

Completions::Completions(const Gpu& gpu) : gpu_(gpu) {}

Completions::~Completions() {
  drain();
  wake_with({});
}

/// One that no thread waits for any more.
std::shared_ptr<Event> Completions::take_event() {
  for (std::shared_ptr<Event>& event : free_events_) {
    if (event.use_count() > 1) continue;
    std::swap(event, free_events_.back());
    std::shared_ptr<Event> taken = std::move(free_events_.back());
    free_events_.pop_back();
    return taken;
  }
  return std::make_shared<Event>(Event::Use::kWaiting);
}

std::uint32_t Completions::add(CUstream stream) {
  if (free_ids_.empty()) free_ids_.push_back(next_id_++);
  Work work{.id = free_ids_.back(), .event = take_event()};
  work.event->record(stream);
  free_ids_.pop_back();
  watches_.try_emplace(stream, gpu_).first->second.add(work.event, [this] { waker_.call(); });
  under_way_.push_back(std::move(work));
  return under_way_.back().id;
}

std::span<const std::uint32_t> Completions::ended() {
  reported_.clear();
  // All are asked before any is moved: one that failed throws, and drain() still needs them all.
  for (Work& work : under_way_) work.has_ended = work.event->has_passed();
  const auto still_under_way = [](const Work& work) { return !work.has_ended; };
  const auto first = std::stable_partition(under_way_.begin(), under_way_.end(), still_under_way);
  for (auto work = first; work != under_way_.end(); ++work) {
    reported_.push_back(work->id);
    free_ids_.push_back(work->id);
    free_events_.push_back(std::move(work->event));
  }
  under_way_.erase(first, under_way_.end());
  return reported_;
}

void Completions::drain() noexcept {
  for (const Work& work : under_way_) driver().synchronize_event(work.event->handle());
}

}  // namespace commtune::cuda
