#pragma once
// Where a rank can be reached: its card, which it hands to the others over the bootstrap.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace commtune::tcp {

inline constexpr std::uint32_t kLoopback = 0x7f000001;  ///< 127.0.0.1: between ranks of one host

/// An IPv4 address and a TCP port, both in host byte order.
struct Endpoint {
  std::uint32_t ip = 0;
  std::uint32_t port = 0;
};

std::string to_text(std::uint32_t ip);          ///< "10.0.0.1"
std::string to_text(const Endpoint& endpoint);  ///< "10.0.0.1:4711"

/// One of a host's addresses, in host byte order.
struct Address {
  std::uint32_t ip = 0;
  std::uint32_t mask = 0;
  std::uint32_t port = 0;  ///< where its rank listens; 0: not there
  bool shares_network_with(const Address& other) const {
    return mask == other.mask && (ip & mask) == (other.ip & other.mask);
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
  bool lists(std::uint32_t ip) const;
};

/// This host's IPv4 addresses on interfaces that are up, loopback left out; only those in `network` if it is
/// given. Ports are still 0.
/// throws  Error{kBadInput} for a network that is none, Error{kUnavailable}
AddressCard own_card(const std::string& network);

/// From which of its addresses a rank connects to which of another host's.
struct Way {
  std::uint32_t from = 0;
  Endpoint to;
};

/// Addresses of one network where there are some, else the other's first, from the one of ours that the
/// kernel's routes choose. An address that both hosts have, such as that of a container's bridge, leads back
/// to the own host: it is taken only where there is no other. nullopt if one of the cards has no address.
std::optional<Way> way_between(const AddressCard& mine, const AddressCard& theirs);

}  // namespace commtune::tcp
