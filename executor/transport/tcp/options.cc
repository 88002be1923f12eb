#include "executor/transport/tcp/options.h"

#include <fmt/format.h>

#include <cstdint>

#include "executor/base/ip_network.h"
#include "perfmodel/base/error.h"

namespace commtune {

void TcpOptions::check() const {
  if (!network.empty() && !read_network(network)) {
    throw Error(ErrorCode::kBadInput, fmt::format("network = '{}': must be {}", network, kNetworkRule));
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
