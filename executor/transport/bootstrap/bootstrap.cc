#include "executor/transport/bootstrap/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>

#include "perfmodel/base/error.h"

namespace commtune {

void check_record_sizes(const Peers& peers, std::span<const std::uint64_t> sizes) {
  const auto other = std::ranges::find_if(sizes, [&](std::uint64_t size) { return size != sizes.front(); });
  if (other == sizes.end()) return;
  throw Error(ErrorCode::kConflict,
              fmt::format("{} told the others {} B, and {} {} B: do all ranks run the same commtune?",
                          describe(peers, static_cast<int>(other - sizes.begin())), *other,
                          describe(peers, 0), sizes.front()));
}

}  // namespace commtune
