#include "executor/base/ip_network.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

namespace commtune {
namespace {

constexpr int kBits = 128, kBitsBeforeV4 = 96;
constexpr std::array<std::uint8_t, 12> kV4Prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool IpAddress::is_v4() const { return std::equal(kV4Prefix.begin(), kV4Prefix.end(), bytes.begin()); }

bool IpAddress::is_link_local() const { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }

std::string to_text(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.is_v4()) {
    inet_ntop(AF_INET, address.bytes.data() + kV4Prefix.size(), text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  }
  return text.data();
}

std::optional<IpAddress> read_address(std::string_view text) {
  const std::string terminated(text);
  if (in_addr v4{}; inet_pton(AF_INET, terminated.c_str(), &v4) == 1) return v4_address(ntohl(v4.s_addr));
  IpAddress address;
  if (inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) != 1) return std::nullopt;
  return address;
}

bool IpNetwork::contains(const IpAddress& other) const {
  const auto whole = static_cast<std::ptrdiff_t>(bits / 8);
  if (!std::equal(address.bytes.begin(), address.bytes.begin() + whole, other.bytes.begin())) return false;
  if (bits % 8 == 0) return true;
  const auto next = static_cast<std::size_t>(whole);
  return ((address.bytes[next] ^ other.bytes[next]) >> (8 - bits % 8)) == 0;
}

std::optional<IpNetwork> read_network(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = read_address(text.substr(0, slash));
  if (!address) return std::nullopt;
  const int before = address->is_v4() ? kBitsBeforeV4 : 0;
  const std::string_view bits_text = text.substr(slash + 1);
  int bits = 0;
  const auto [end, error] = std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits);
  if (error != std::errc{} || end != bits_text.data() + bits_text.size() || bits < 1 || bits > kBits - before)
    return std::nullopt;
  return IpNetwork{*address, before + bits};
}

}  // namespace commtune
