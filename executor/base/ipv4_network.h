#pragma once
// Networks as users write them.

#include <cstdint>
#include <optional>
#include <string_view>

namespace commtune {

/// An IPv4 network, in host byte order.
struct Ipv4Network {
  std::uint32_t address = 0, mask = 0;
};
/// "10.0.0.0/24"; what an address has beyond the mask is left out. nullopt for any other form.
std::optional<Ipv4Network> read_network(std::string_view text);

}  // namespace commtune
