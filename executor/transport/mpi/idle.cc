#include "executor/transport/mpi/idle.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "perfmodel/base/error.h"

namespace commtune {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// The kernel may let a sleep end late by the thread's slack, 50 us unless told otherwise.
void sharpen_timers_of_this_thread() {
  static thread_local const bool done = [] {
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    return true;
  }();
  static_cast<void>(done);
}

/// Epoll descriptors that this process has open: the event loops of the MPI library and its helpers.
std::vector<int> epoll_descriptors() {
  std::vector<int> found;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    std::array<char, 64> target{};
    const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target.data(), target.size() - 1);
    if (length > 0 && std::string_view(target.data()) == "anon_inode:[eventpoll]") {
      found.push_back(std::stoi(entry->d_name));
    }
  }
  closedir(directory);
  return found;
}

void drain(int event) {
  std::uint64_t count = 0;
  static_cast<void>(!read(event, &count, sizeof count));
}

}  // namespace

Idle::Idle(Doorbell& bell) : bell_(bell), event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (event_ < 0) throw Error(ErrorCode::kUnavailable, std::string("eventfd: ") + std::strerror(errno));
  descriptors_.push_back({event_, POLLIN, 0});
  descriptors_.push_back({bell_.descriptor(), POLLIN, 0});
  for (const int fd : epoll_descriptors()) descriptors_.push_back({fd, POLLIN, 0});
}

Idle::~Idle() { close(event_); }

void Idle::begin() {
  sharpen_timers_of_this_thread();
  tries_ = 0;
  in_host_bound_ = kFirstInHostBound;
}

void Idle::pause(Deadline until, bool transfers, bool in_host) {
  // One call of the library can move data without noticing that this ended something: ask again first.
  constexpr int kTries = 2;
  if (++tries_ < kTries) return;
  // The bell may be missed, and a long message may take several steps that nobody rings for: look soon at
  // first, then less and less often.
  const nanoseconds usual = transfers ? milliseconds(2) : milliseconds(10);
  const nanoseconds bound = in_host ? std::min(in_host_bound_, usual) : usual;
  if (in_host) in_host_bound_ *= 2;
  sleeping_.store(true);
  if (!woken_.load()) sleep(std::clamp<nanoseconds>(until - Clock::now(), nanoseconds(0), bound));
  sleeping_.store(false);
}

void Idle::sleep(nanoseconds most) {
  const timespec time{0, static_cast<long>(most.count())};
  const int ready = ppoll(descriptors_.data(), descriptors_.size(), &time, nullptr);
  if (ready > 0 && (descriptors_[0].revents & POLLIN) != 0) drain(event_);
  if (ready > 0 && (descriptors_[1].revents & POLLIN) != 0) bell_.silence();
  tries_ = 0;
}

void Idle::wake() noexcept {
  woken_.store(true);
  if (!sleeping_.load()) return;
  const std::uint64_t one = 1;
  static_cast<void>(!write(event_, &one, sizeof one));
}

}  // namespace commtune
