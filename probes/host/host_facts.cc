#include "probes/host/host_facts.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>

#include "probes/host/interfaces.h"

namespace commtune::probes {

namespace {

std::optional<std::string> processor_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return std::nullopt;
}

std::set<std::string> interfaces_up() {
  std::set<std::string> names;
  const Interfaces interfaces = list_interfaces();
  for (const ifaddrs* entry = interfaces.get(); entry != nullptr; entry = entry->ifa_next) {
    const bool internet = entry->ifa_addr != nullptr &&
                          (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6);
    const bool up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    if (internet && up) names.insert(entry->ifa_name);
  }
  return names;
}

std::string mtu_of(const std::string& interface) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return "unknown";
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  const bool known = ::ioctl(socket, SIOCGIFMTU, &request) == 0;
  ::close(socket);
  return known ? std::to_string(request.ifr_mtu) : "unknown";
}

}  // namespace

std::map<std::string, std::string> host_facts() {
  std::map<std::string, std::string> facts;
  if (const auto model = processor_model()) {
    facts["cpu"] = *model + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " processors";
  }
  utsname system{};
  if (uname(&system) == 0) {
    facts["kernel"] = std::string(system.sysname) + " " + system.release + " " + system.machine;
  }
  std::string interfaces;
  for (const std::string& name : interfaces_up()) {
    interfaces += (interfaces.empty() ? "" : "; ") + name + " mtu " + mtu_of(name);
  }
  if (!interfaces.empty()) facts["interfaces"] = interfaces;
  return facts;
}

}  // namespace commtune::probes
