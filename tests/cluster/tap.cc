#include "tests/cluster/tap.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "perfmodel/base/error.h"
#include "tests/cluster/packet_train.h"

namespace commtune::cluster {

namespace {

#ifndef TUN_F_USO4
constexpr unsigned TUN_F_USO4 = 0x20;
constexpr unsigned TUN_F_USO6 = 0x40;
#endif
constexpr unsigned kTcpOffloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
constexpr unsigned kUdpOffloads = TUN_F_USO4 | TUN_F_USO6;  // Linux 6.2 and later

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kUnavailable, what + ": " + std::strerror(errno));
}

/// The calling thread is in another network namespace while this lives.
class InNamespace {
 public:
  explicit InNamespace(const std::string& netns)
      : home_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    const FileDescriptor target(::open(netns.c_str(), O_RDONLY | O_CLOEXEC));
    if (!target) throw Error(ErrorCode::kBadInput, netns + ": " + std::strerror(errno));
    if (!home_ || ::setns(target.get(), CLONE_NEWNET) != 0) fail("cannot enter " + netns);
  }
  InNamespace(const InNamespace&) = delete;
  InNamespace& operator=(const InNamespace&) = delete;
  ~InNamespace() {
    if (::setns(home_.get(), CLONE_NEWNET) != 0)
      std::terminate();  // would work on the wrong network from here on
  }

 private:
  FileDescriptor home_;
};

}  // namespace

Tap::Tap(const std::string& netns, const std::string& device, const std::array<std::uint8_t, 6>& mac) {
  const InNamespace there(netns);
  fd_ = FileDescriptor(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd_) fail("/dev/net/tun");

  ifreq request{};
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(fd_.get(), TUNSETIFF, &request) != 0) fail("cannot create " + device + " in " + netns);
  const int header = static_cast<int>(kVnetHeaderBytes);
  if (::ioctl(fd_.get(), TUNSETVNETHDRSZ, &header) != 0) fail("TUNSETVNETHDRSZ");
  if (::ioctl(fd_.get(), TUNSETOFFLOAD, kTcpOffloads | kUdpOffloads) != 0 &&
      ::ioctl(fd_.get(), TUNSETOFFLOAD, kTcpOffloads) != 0) {
    fail("TUNSETOFFLOAD");
  }
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::copy(mac.begin(), mac.end(), request.ifr_hwaddr.sa_data);
  if (::ioctl(fd_.get(), SIOCSIFHWADDR, &request) != 0) fail("SIOCSIFHWADDR");
}

bool Tap::read(Frame& frame) const {
  const ssize_t got = ::read(fd_.get(), frame.data.data(), frame.data.size());
  if (got <= 0) return false;
  frame.length = static_cast<std::uint32_t>(got);
  return true;
}

bool Tap::write(std::span<const std::byte> frame) const {
  return ::write(fd_.get(), frame.data(), frame.size()) == static_cast<ssize_t>(frame.size());
}

}  // namespace commtune::cluster
