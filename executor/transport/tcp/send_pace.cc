#include "executor/transport/tcp/send_pace.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
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
/// A connection that is paced leaves in bursts of what its rate sends in a millisecond and, on a short way,
/// of more: 64 KiB, halved for every half millisecond of the round trip (Linux, tcp_tso_autosize). Less than
/// kLeastBurst, seven packets, costs hosts more processor time than an even rate gains.
constexpr double kBurstsPerSecond = 1024, kLargestBurst = 65536, kLeastBurst = 10240;
constexpr unsigned kHalvedEvery = 512, kMostHalvings = 31;  // us
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

/// The least round trip that the kernel has seen, in microseconds; 0 if it cannot tell.
unsigned least_round_trip(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool known = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
                     size >= offsetof(tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt;
  return known && info.tcpi_min_rtt != ~0U ? info.tcpi_min_rtt : 0;
}

}  // namespace

double least_rate(unsigned round_trip) {
  const unsigned halvings = std::min(round_trip / kHalvedEvery, kMostHalvings);
  const double for_short_ways = std::ldexp(kLargestBurst, -static_cast<int>(halvings));
  return std::max(kLeastBurst - for_short_ways, 0.0) * kBurstsPerSecond;
}

void SendPace::set(int fd, double link, double share, Bytes unsent_limit) {
  const double rate = share * link;
  limit_rate(fd, std::max(rate, least_rate(least_round_trip(fd))));
  const double wanted = std::max(kLeastUnsent, link * kUnsentTime.count());
  if (wanted > kWorthwhile * kKernelUnsent) return;
  const double quantum = std::min(wanted, static_cast<double>(unsent_limit.count));
  quantum_ = static_cast<std::size_t>(quantum);
  half_quantum_time_ = std::chrono::duration_cast<Clock::duration>(Seconds{quantum / 2 / rate});
  limit_unsent(fd, Bytes{quantum_});
}

std::size_t SendPace::room(int fd) {
  int unsent = 0;
  if (quantum_ == 0 || ioctl(fd, SIOCOUTQNSD, &unsent) != 0) return kUnlimited;
  const std::size_t room = quantum_ - std::min(quantum_, static_cast<std::size_t>(unsent));
  if (2 * room >= quantum_) return room;
  due_ = Clock::now() + half_quantum_time_;
  return 0;
}

bool SendPace::is_due() {
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
