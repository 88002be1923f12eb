#include "api/rest/fair_semaphore.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

void refuse_when(const std::atomic<bool>& stopping) {
  if (stopping) throw Error(ErrorCode::kInterrupted, "the service stops: ask again later");
}

}  // namespace

bool FairSemaphore::take(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (free_ > 0) {
    --free_;
    return true;
  }
  Waiter self;
  const auto place = waiting_.insert(waiting_.end(), &self);
  if (self.called.wait_for(lock, wait, [&self] { return self.served; })) return true;
  waiting_.erase(place);
  return false;
}

void FairSemaphore::give_back() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  Waiter& next = *waiting_.front();
  waiting_.pop_front();
  next.served = true;
  next.called.notify_one();  // under the lock: afterwards `next` may be gone
}

std::size_t FairSemaphore::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

Permit::Permit(FairSemaphore& semaphore, std::chrono::milliseconds wait) : semaphore_(semaphore) {
  if (!semaphore_.take(wait))
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("other questions kept the service busy for {:g} s (--compute-time): ask again later",
                    seconds(wait)));
}

tuner::Watch time_limit(std::chrono::milliseconds most, const std::atomic<bool>& stopping) {
  return [most, &stopping, end = std::chrono::steady_clock::now() + most](double fraction) {
    refuse_when(stopping);
    if (std::chrono::steady_clock::now() < end) return;
    throw Error(ErrorCode::kBadInput,
                fmt::format("the question takes longer than the {:g} s that one request may compute "
                            "(--compute-time), {:.0f} % was done: ask for fewer points or fewer workers",
                            seconds(most), 100 * fraction));
  };
}

tuner::OutOfTime within_points(tuner::Watch& watch) {
  const auto done = std::make_shared<double>(0);
  watch = [done, asked = std::move(watch)](double fraction) {
    *done = fraction;
    asked(fraction);
  };
  return [done, watch] {
    watch(*done);
    return false;
  };
}

tuner::OutOfTime out_of_time_at(std::chrono::steady_clock::time_point end, const Clock& clock,
                                const std::atomic<bool>& stopping) {
  return [end, &clock, &stopping] {
    refuse_when(stopping);
    return clock() >= end;
  };
}

}  // namespace commtune::api::rest
