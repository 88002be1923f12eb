#pragma once
// What ranks send into each other's posted receives. What is short is in a frame itself, what is long is
// announced in one, granted in another, and written past both.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "executor/transport/matching/transfers.h"
#include "executor/transport/verbs/grants.h"

namespace commtune::verbs {

enum class FrameKind : std::uint8_t {
  kProof = 1,     ///< the first one: it is a rank of this run; the proof follows
  kMessage = 2,   ///< a short message; its bytes follow
  kAnnounce = 3,  ///< a long message is there to be granted
  kGrant = 4,     ///< where its bytes go
  kCredits = 5,   ///< nothing but the credits that any frame gives back
  kLeave = 6,     ///< the last one; why, where the run has to end with it, else nothing follows
};

/// Travels as it lies in memory: all ranks run the same program on the same kind of processor.
struct FrameHeader {
  FrameKind kind{};
  ConnectionSet connections = 0;  ///< kGrant: that the message is to be written on, a part on each
  std::uint16_t credits = 0;      ///< given back
  TransferId send = 0;            ///< kAnnounce: the sender's number of it; kGrant: that number
  matching::Envelope envelope{};  ///< kMessage, kAnnounce
  std::uint64_t address = 0;      ///< kGrant: where the message goes
  std::uint32_t key = 0;          ///< kGrant: of that memory
  Immediate immediate = 0;        ///< kGrant: what the last write carries
};
static_assert(std::is_trivially_copyable_v<FrameHeader> && sizeof(FrameHeader) == 40, "no padding travels");

/// Why a frame of so many bytes cannot be one; nullopt: it can.
/// eager  bytes of the longest message that a frame may carry
std::optional<std::string_view> what_is_wrong(const FrameHeader& header, std::size_t bytes,
                                              std::size_t eager);

}  // namespace commtune::verbs
