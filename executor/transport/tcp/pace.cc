#include "executor/transport/tcp/pace.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace commtune::tcp {
namespace {

/// Of the whole link. Less leaves it idle where a thread wakes late on a busy host, more makes what is urgent
/// wait.
constexpr Seconds kUnsentTime{1e-3};
/// What the kernel takes of itself, and how much less it must be to be worth the wake-ups.
constexpr double kKernelUnsent = 65536, kWorthwhile = 2.0 / 3;
/// However slow the link: three packets.
constexpr double kLeastUnsent = 4344;
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

}  // namespace

void Pace::set(int fd, double link, double share, Bytes unsent_limit) {
  const double rate = share * link;
  limit_rate(fd, rate);
  const double wanted = std::max(kLeastUnsent, link * kUnsentTime.count());
  if (wanted > kWorthwhile * kKernelUnsent) return;
  const double quantum = std::min(wanted, static_cast<double>(unsent_limit.count));
  quantum_ = static_cast<std::size_t>(quantum);
  half_quantum_time_ = std::chrono::duration_cast<Clock::duration>(Seconds{quantum / 2 / rate});
  limit_unsent(fd, Bytes{quantum_});
}

std::size_t Pace::room(int fd) {
  int unsent = 0;
  if (quantum_ == 0 || ioctl(fd, SIOCOUTQNSD, &unsent) != 0) return kUnlimited;
  const std::size_t room = quantum_ - std::min(quantum_, static_cast<std::size_t>(unsent));
  if (2 * room >= quantum_) return room;
  due_ = Clock::now() + half_quantum_time_;
  return 0;
}

bool Pace::is_due() {
  if (due_ && Clock::now() < *due_) return false;
  due_.reset();
  return true;
}

void limit_rate(int fd, double bytes_per_second) {
  constexpr auto kNone = ~std::uint64_t{0};
  const std::uint64_t rate =
      bytes_per_second == kUnlimitedRate ? kNone : static_cast<std::uint64_t>(bytes_per_second);
  setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
}

void limit_unsent(int fd, Bytes limit) {
  const int bytes = static_cast<int>(limit.count);
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

}  // namespace commtune::tcp
