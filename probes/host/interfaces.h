#pragma once
// The network interfaces of this host, as getifaddrs(3) lists them.

#include <ifaddrs.h>

#include <memory>

namespace commtune::probes {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};
using Interfaces = std::unique_ptr<ifaddrs, FreeInterfaces>;

/// A linked list; nullptr where it cannot be had.
inline Interfaces list_interfaces() {
  ifaddrs* first = nullptr;
  return Interfaces(getifaddrs(&first) == 0 ? first : nullptr);
}

}  // namespace commtune::probes
