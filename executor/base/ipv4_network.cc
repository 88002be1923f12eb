#include "executor/base/ipv4_network.h"

#include <arpa/inet.h>

#include <charconv>
#include <string>

namespace commtune {

std::optional<Ipv4Network> read_network(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view bits_text = text.substr(slash + 1);
  int bits = 0;
  const auto [end, error] = std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits);
  in_addr address{};
  if (error != std::errc{} || end != bits_text.data() + bits_text.size() || bits < 1 || bits > 32 ||
      inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &address) != 1)
    return std::nullopt;
  const std::uint32_t mask = ~std::uint32_t{0} << (32 - bits);
  return Ipv4Network{ntohl(address.s_addr) & mask, mask};
}

}  // namespace commtune
