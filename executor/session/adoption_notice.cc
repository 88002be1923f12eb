#include "executor/session/adoption_notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "executor/base/value_bytes.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// In the place of an iteration: no notice comes any more.
constexpr std::uint64_t kNoMore = std::numeric_limits<std::uint64_t>::max();

/// How often who waits looks whether the communication thread still lives.
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

/// co_await yields what is to be told next.
struct AdoptionNotice::NextNotice {
  AdoptionNotice& notice;
  bool await_ready() const noexcept { return notice.to_tell_.load(std::memory_order_acquire) != 0; }
  void await_suspend(std::coroutine_handle<> awaiting) const noexcept { notice.sender_ = awaiting; }
  std::uint64_t await_resume() const noexcept {
    return notice.to_tell_.exchange(0, std::memory_order_acquire);
  }
};

AdoptionNotice::AdoptionNotice(Communicator& communicator, int workers)
    : communicator_(communicator), workers_(workers), known_(static_cast<std::size_t>(workers), true) {}

AdoptionNotice::~AdoptionNotice() { communicator_.remove_source(*this); }

void AdoptionNotice::begin() {
  if (task_.valid()) return;
  const bool tells = communicator_.rank() == 0;
  if (tells) communicator_.add_source(*this);
  task_ = tells ? send_notices() : receive_notices();
  task_.start();
}

void AdoptionNotice::tell(std::uint64_t first) {
  {
    const std::scoped_lock lock(mutex_);
    std::fill(known_.begin() + 1, known_.end(), false);
  }
  first_.store(first, std::memory_order_release);
  to_tell_.store(first, std::memory_order_release);
  communicator_.transport().wake();
}

void AdoptionNotice::wait_until_known(const std::function<void()>& check, Deadline until) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto missing = std::ranges::find(known_, false);
    if (missing == known_.end()) return;
    if (Clock::now() >= until) {
      const auto worker = static_cast<int>(missing - known_.begin());
      throw Error(
          ErrorCode::kTimeout,
          fmt::format("{} did not answer that it knows of the plan that is adopted before iteration {}",
                      describe(communicator_.peers(), worker), first()));
    }
    known_changed_.wait_for(lock, kLook);
    lock.unlock();
    check();
    lock.lock();
  }
}

void AdoptionNotice::end(Deadline until) {
  if (!task_.valid()) return;
  if (communicator_.rank() == 0) {
    to_tell_.store(kNoMore, std::memory_order_release);
    communicator_.transport().wake();
  }
  communicator_.run(ended(), until);
  communicator_.remove_source(*this);
  task_ = {};
  clear();
}

void AdoptionNotice::progress(std::vector<std::coroutine_handle<>>& resumable) {
  if (sender_ && to_tell_.load(std::memory_order_acquire) != 0)
    resumable.push_back(std::exchange(sender_, {}));
}

Task AdoptionNotice::send_notices() {
  for (;;) {
    std::uint64_t first = co_await NextNotice{*this};
    Group sends;
    for (int worker = 1; worker < workers_; ++worker)
      communicator_.send(worker, kStandingTag, value_bytes(first), sends);
    co_await sends.empty();
    if (first == kNoMore) co_return;
    for (int worker = 1; worker < workers_; ++worker) {
      std::byte answer{};
      co_await communicator_.receive(worker, kStandingTag, value_bytes(answer));
      note_known(worker);
    }
  }
}

Task AdoptionNotice::receive_notices() {
  for (;;) {
    std::uint64_t first = 0;
    co_await communicator_.receive(0, kStandingTag, value_bytes(first));
    if (first == kNoMore) co_return;
    first_.store(first, std::memory_order_release);
    std::byte answer{};
    co_await communicator_.send(0, kStandingTag, value_bytes(answer));
  }
}

void AdoptionNotice::note_known(int worker) {
  {
    const std::scoped_lock lock(mutex_);
    known_[static_cast<std::size_t>(worker)] = true;
  }
  known_changed_.notify_all();
}

}  // namespace commtune
