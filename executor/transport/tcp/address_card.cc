#include "executor/transport/tcp/address_card.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include "executor/transport/tcp/sockets.h"
#include "perfmodel/base/error.h"

namespace commtune::tcp {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

int bits_of_mask(std::span<const std::uint8_t> mask) {
  int bits = 0;
  for (const std::uint8_t byte : mask) bits += std::popcount(byte);
  return bits;
}

std::optional<Address> v4_address_of(const ifaddrs& interface) {
  constexpr int kBefore = 96;
  sockaddr_in ip{}, mask{};
  std::memcpy(&ip, interface.ifa_addr, sizeof ip);
  std::memcpy(&mask, interface.ifa_netmask, sizeof mask);
  return Address{v4_address(ntohl(ip.sin_addr.s_addr)), kBefore + std::popcount(mask.sin_addr.s_addr)};
}

std::optional<Address> v6_address_of(const ifaddrs& interface) {
  sockaddr_in6 ip{}, mask{};
  std::memcpy(&ip, interface.ifa_addr, sizeof ip);
  std::memcpy(&mask, interface.ifa_netmask, sizeof mask);
  Address address;
  std::ranges::copy(ip.sin6_addr.s6_addr, address.ip.bytes.begin());
  address.bits = bits_of_mask(mask.sin6_addr.s6_addr);
  if (address.ip.is_link_local()) return std::nullopt;
  return address;
}

/// The address of an interface, if it is up and has one of that family.
std::optional<Address> address_of(const ifaddrs& interface, int family) {
  if (interface.ifa_addr == nullptr || interface.ifa_addr->sa_family != family) return std::nullopt;
  if ((interface.ifa_flags & IFF_UP) == 0 || interface.ifa_netmask == nullptr) return std::nullopt;
  return family == AF_INET ? v4_address_of(interface) : v6_address_of(interface);
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

std::string to_text(const Endpoint& endpoint) {
  const std::string ip = to_text(endpoint.ip);
  return endpoint.ip.is_v4() ? fmt::format("{}:{}", ip, endpoint.port)
                             : fmt::format("[{}]:{}", ip, endpoint.port);
}

bool AddressCard::lists(const IpAddress& ip) const {
  return std::ranges::any_of(all(), [&](const Address& address) { return address.ip == ip; });
}

AddressCard own_card(const std::string& network) {
  const std::optional<IpNetwork> wanted = read_network(network);
  if (!network.empty() && !wanted)
    throw Error(ErrorCode::kBadInput, fmt::format("network = '{}': must be {}", network, kNetworkRule));
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) {
    throw Error(ErrorCode::kUnavailable, fmt::format("listing network interfaces: {}", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(found);
  AddressCard card;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* i = list.get(); i != nullptr && card.count < AddressCard::kMaxAddresses;
         i = i->ifa_next) {
      const std::optional<Address> address = address_of(*i, family);
      if (!address || (!wanted && (i->ifa_flags & IFF_LOOPBACK) != 0)) continue;
      if (wanted && !wanted->contains(address->ip)) continue;
      card.addresses[card.count++] = *address;
    }
  }
  return card;
}

std::optional<Way> way_between(const AddressCard& mine, const AddressCard& theirs) {
  if (mine.count == 0 || theirs.count == 0) return std::nullopt;
  if (const auto way = way_in_one_network(mine, theirs, false)) return way;
  for (const Address& to : theirs.all()) {
    if (mine.lists(to.ip)) continue;
    const std::optional<IpAddress> routed = routed_source(to.ip);
    if (routed && mine.lists(*routed)) return Way{*routed, {to.ip, to.port}};
    const auto same = std::ranges::find_if(
        mine.all(), [&](const Address& from) { return from.ip.is_v4() == to.ip.is_v4(); });
    if (same != mine.all().end()) return Way{same->ip, {to.ip, to.port}};
  }
  return way_in_one_network(mine, theirs, true);
}

}  // namespace commtune::tcp
