#include "executor/transport/tcp/address_card.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "executor/base/ipv4_network.h"
#include "executor/transport/tcp/sockets.h"
#include "perfmodel/base/error.h"

namespace commtune::tcp {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

/// The address of an interface, if it is up and has one.
std::optional<Address> address_of(const ifaddrs& interface) {
  if (interface.ifa_addr == nullptr || interface.ifa_addr->sa_family != AF_INET) return std::nullopt;
  if ((interface.ifa_flags & IFF_UP) == 0) return std::nullopt;
  sockaddr_in ip{}, mask{};
  std::memcpy(&ip, interface.ifa_addr, sizeof ip);
  std::memcpy(&mask, interface.ifa_netmask, sizeof mask);
  return Address{ntohl(ip.sin_addr.s_addr), ntohl(mask.sin_addr.s_addr)};
}

std::optional<Way> way_in_one_network(const AddressCard& mine, const AddressCard& theirs, bool shared_too) {
  for (const Address& from : mine.all()) {
    for (const Address& to : theirs.all()) {
      if (!shared_too && mine.lists(to.ip)) continue;
      if (from.shares_network_with(to)) return Way{from.ip, {to.ip, to.port}};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string to_text(std::uint32_t ip) {
  return fmt::format("{}.{}.{}.{}", ip >> 24, (ip >> 16) & 255, (ip >> 8) & 255, ip & 255);
}

std::string to_text(const Endpoint& endpoint) {
  return fmt::format("{}:{}", to_text(endpoint.ip), endpoint.port);
}

bool AddressCard::lists(std::uint32_t ip) const {
  return std::ranges::any_of(all(), [&](const Address& address) { return address.ip == ip; });
}

AddressCard own_card(const std::string& network) {
  const std::optional<Ipv4Network> wanted = read_network(network);
  if (!network.empty() && !wanted) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("network = '{}': must be an IPv4 network such as 10.0.0.0/24", network));
  }
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) {
    throw Error(ErrorCode::kUnavailable, fmt::format("listing network interfaces: {}", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(found);
  AddressCard card;
  for (const ifaddrs* i = list.get(); i != nullptr && card.count < AddressCard::kMaxAddresses;
       i = i->ifa_next) {
    const std::optional<Address> address = address_of(*i);
    if (!address || (!wanted && (i->ifa_flags & IFF_LOOPBACK) != 0)) continue;
    if (wanted && (address->ip & wanted->mask) != wanted->address) continue;
    card.addresses[card.count++] = *address;
  }
  return card;
}

std::optional<Way> way_between(const AddressCard& mine, const AddressCard& theirs) {
  if (mine.count == 0 || theirs.count == 0) return std::nullopt;
  if (const auto way = way_in_one_network(mine, theirs, false)) return way;
  for (const Address& to : theirs.all()) {
    if (mine.lists(to.ip)) continue;
    const std::uint32_t routed = routed_source(to.ip);
    return Way{mine.lists(routed) ? routed : mine.addresses[0].ip, {to.ip, to.port}};
  }
  return way_in_one_network(mine, theirs, true);
}

}  // namespace commtune::tcp
