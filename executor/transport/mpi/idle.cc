#include "executor/transport/mpi/idle.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/error.h"

namespace commtune {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// A file descriptor that is closed by its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

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

/// The flag that wake() sets; shared by all kinds.
class Flagged : public Idle {
 public:
  bool woken() override { return woken_.load(std::memory_order_relaxed) && woken_.exchange(false); }
  void wake() noexcept override { woken_.store(true); }

 protected:
  std::atomic<bool> woken_{false};
};

class Yield final : public Flagged {
 public:
  void begin() override {}
  void pause(Deadline /*until*/, bool /*transfers*/, bool /*in_host*/) override { sched_yield(); }
};

class Sleep final : public Flagged {
 public:
  void begin() override {
    sharpen_timers_of_this_thread();
    next_ = microseconds(5);
  }
  void pause(Deadline until, bool /*transfers*/, bool /*in_host*/) override {
    const auto left = std::max(nanoseconds(0), until - Clock::now());
    const auto length = std::min<nanoseconds>(next_, left);
    const timespec time{0, static_cast<long>(length.count())};
    nanosleep(&time, nullptr);
    next_ = std::min(next_ * 2, microseconds(200));
  }

 private:
  microseconds next_{5};
};

class Kernel final : public Flagged {
 public:
  explicit Kernel(Doorbell& bell) : bell_(bell), event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (event_.get() < 0) {
      throw Error(ErrorCode::kUnavailable, std::string("eventfd: ") + std::strerror(errno));
    }
    descriptors_.push_back({event_.get(), POLLIN, 0});
    descriptors_.push_back({bell_.descriptor(), POLLIN, 0});
    for (const int fd : epoll_descriptors()) descriptors_.push_back({fd, POLLIN, 0});
  }

  void begin() override {
    sharpen_timers_of_this_thread();
    tries_ = 0;
    in_host_bound_ = kFirstInHostBound;
  }

  void pause(Deadline until, bool transfers, bool in_host) override {
    // One call of the library can move data without noticing that this ended something: ask again first.
    constexpr int kTries = 2;
    if (++tries_ < kTries) return;
    // The bell may be missed, and a long message may take several steps that nobody rings for: look soon at
    // first, then less and less often.
    const nanoseconds usual = transfers ? milliseconds(2) : milliseconds(10);
    const nanoseconds bound = in_host ? std::min(in_host_bound_, usual) : usual;
    if (in_host) in_host_bound_ *= 2;
    const nanoseconds left = std::clamp<nanoseconds>(until - Clock::now(), nanoseconds(0), bound);
    sleeping_.store(true);
    if (!woken_.load()) {
      const timespec time{0, static_cast<long>(left.count())};
      const int ready = ppoll(descriptors_.data(), descriptors_.size(), &time, nullptr);
      if (ready > 0 && (descriptors_[0].revents & POLLIN) != 0) drain();
      if (ready > 0 && (descriptors_[1].revents & POLLIN) != 0) bell_.silence();
      tries_ = 0;
    }
    sleeping_.store(false);
  }

  void wake() noexcept override {
    woken_.store(true);
    if (!sleeping_.load()) return;
    const std::uint64_t one = 1;
    static_cast<void>(!write(event_.get(), &one, sizeof one));
  }

 private:
  void drain() {
    std::uint64_t count = 0;
    static_cast<void>(!read(event_.get(), &count, sizeof count));
  }

  Doorbell& bell_;
  const Descriptor event_;
  std::vector<pollfd> descriptors_;
  std::atomic<bool> sleeping_{false};
  int tries_ = 0;
  static constexpr nanoseconds kFirstInHostBound = microseconds(100);
  nanoseconds in_host_bound_ = kFirstInHostBound;
};

}  // namespace

std::unique_ptr<Idle> make_idle(MpiOptions::Idle kind, Doorbell& bell) {
  switch (kind) {
    case MpiOptions::Idle::kKernel:
      return std::make_unique<Kernel>(bell);
    case MpiOptions::Idle::kYield:
      return std::make_unique<Yield>();
    case MpiOptions::Idle::kSleep:
      break;
  }
  return std::make_unique<Sleep>();
}

}  // namespace commtune
