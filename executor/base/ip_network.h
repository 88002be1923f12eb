#pragma once
// Addresses of the internet protocol, and networks as users write them.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace commtune {

/// Of version 6, or of version 4 as version 6 has it (::ffff:10.0.0.1), in network byte order.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};
  bool is_v4() const;
  bool is_link_local() const;                          ///< fe80::/10: means something on one link alone
  auto operator<=>(const IpAddress&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm of 14
};

/// 0x0a000001: 10.0.0.1
constexpr IpAddress v4_address(std::uint32_t host_order) {
  IpAddress address;
  address.bytes[10] = address.bytes[11] = 0xff;
  for (std::size_t i = 0; i < 4; ++i)
    address.bytes[12 + i] = static_cast<std::uint8_t>(host_order >> (24 - 8 * i));
  return address;
}

std::string to_text(const IpAddress& address);  ///< "10.0.0.1", "fd00::1"
/// nullopt for any other form.
std::optional<IpAddress> read_address(std::string_view text);

/// Addresses whose first bits, of 128, are alike: those of 10.0.0.0/24 have 120 in common.
struct IpNetwork {
  IpAddress address;
  int bits = 128;
  bool contains(const IpAddress& other) const;
};
/// "10.0.0.0/24", "fd00::/64"; what an address has beyond its prefix says nothing. nullopt for any other
/// form.
std::optional<IpNetwork> read_network(std::string_view text);

/// What a network's text must be, for errors: "a network such as 10.0.0.0/24 or fd00::/64".
inline constexpr std::string_view kNetworkRule = "a network such as 10.0.0.0/24 or fd00::/64";

}  // namespace commtune
