#pragma once
// Where a rank can be reached: its card, which it hands to the others over the bootstrap.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "executor/base/ip_network.h"

namespace commtune::tcp {

inline constexpr IpAddress kLoopback = v4_address(0x7f000001);  ///< 127.0.0.1: between ranks of one host

struct Endpoint {
  IpAddress ip;
  std::uint32_t port = 0;  ///< of TCP
};

std::string to_text(const Endpoint& endpoint);  ///< "10.0.0.1:4711", "[fd00::1]:4711"

/// One of a host's addresses.
struct Address {
  IpAddress ip;
  std::int32_t bits = 0;   ///< of its network, as IpNetwork counts
  std::uint32_t port = 0;  ///< where its rank listens; 0: not there
  bool shares_network_with(const Address& other) const {
    return bits == other.bits && IpNetwork{ip, bits}.contains(other.ip);
  }
};

/// Travels as it lies in memory: all ranks run the same program on the same kind of processor.
struct AddressCard {
  static constexpr std::size_t kMaxAddresses = 8;
  std::uint32_t loopback_port = 0;  ///< where its rank listens on 127.0.0.1; 0: not there
  std::uint32_t count = 0;
  std::array<Address, kMaxAddresses> addresses{};

  std::span<const Address> all() const { return std::span(addresses).first(count); }
  std::span<Address> all() { return std::span(addresses).first(count); }
  bool lists(const IpAddress& ip) const;
};

/// This host's addresses on interfaces that are up, those of version 4 first; without the loopback
/// interface's and link-local ones of version 6. Only those in `network` if it is given. Ports are still 0.
/// throws  Error{kBadInput} for a network that is none, Error{kUnavailable}
AddressCard own_card(const std::string& network);

/// From which of its addresses a rank connects to which of another host's.
struct Way {
  IpAddress from;
  Endpoint to;
};

/// Addresses of one network where there are some, else the other's first, from the one of ours that the
/// kernel's routes choose. An address that both hosts have, such as that of a container's bridge, leads back
/// to the own host: it is taken only where there is no other. nullopt if one of the cards has no address.
std::optional<Way> way_between(const AddressCard& mine, const AddressCard& theirs);

}  // namespace commtune::tcp
