#include "executor/transport/tcp/options.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

#include "perfmodel/base/error.h"

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

void TcpOptions::check() const {
  if (!network.empty() && !read_network(network)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("network = '{}': must be an IPv4 network such as 10.0.0.0/24", network));
  }
  if (connect_timeout.count() <= 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("connect_timeout = {} s: must be positive", connect_timeout.count()));
  }
  if (!(pace >= 0) || pace > 1e15) {
    throw Error(ErrorCode::kBadInput, fmt::format("pace = {} B/s: must be 0 or positive", pace));
  }
  if (unsent_limit.count < 4096 || unsent_limit.count > (std::uint64_t{1} << 30)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("unsent_limit = {} B: must be between 4 KiB and 1 GiB", unsent_limit.count));
  }
}

}  // namespace commtune
