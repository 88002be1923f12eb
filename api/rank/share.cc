#include "api/rank/share.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <span>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr Tag kLengthTag = make_tag(TagSpace::kControl, 0x0A0D0);
constexpr Tag kTextTag = make_tag(TagSpace::kControl, 0x0A0D1);

/// Waits until `open` transfers have ended.
void finish(Transport& transport, int open, const std::string& waiting_for) {
  const Deadline until = Clock::now() + kPatience;
  while (open > 0) {
    open -= static_cast<int>(transport.wait(until).size());
    if (open > 0 && Clock::now() >= until)
      throw Error(ErrorCode::kTimeout,
                  fmt::format("{} did not answer within {} s while the order was handed out", waiting_for,
                              kPatience.count()));
  }
}

}  // namespace

void share(Transport& transport, std::string& text) {
  const Peers& peers = transport.peers();
  const auto rank = static_cast<unsigned>(peers.rank);
  const auto size = static_cast<unsigned>(peers.size());
  std::uint64_t length = text.size();
  const auto length_bytes = std::as_writable_bytes(std::span(&length, 1));
  if (rank > 0) {
    // The parent is the rank without its highest bit.
    const int parent = static_cast<int>(rank - std::bit_floor(rank));
    transport.receive(parent, kLengthTag, length_bytes);
    finish(transport, 1, describe(peers, parent));
    text.resize(length);
    transport.receive(parent, kTextTag, std::as_writable_bytes(std::span(text)));
    finish(transport, 1, describe(peers, parent));
  }
  for (unsigned step = rank == 0 ? 1 : std::bit_floor(rank) * 2; rank + step < size; step *= 2) {
    const int child = static_cast<int>(rank + step);
    transport.send(child, kLengthTag, length_bytes);
    transport.send(child, kTextTag, std::as_bytes(std::span(text)));
    finish(transport, 2, describe(peers, child));
  }
}

}  // namespace commtune::api
