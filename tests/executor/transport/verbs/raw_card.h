#pragma once
// A rank's end of one connection in the hands of somebody who keeps to no rule: it connects as ranks do, and
// then gives its card whatever a test says.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/transport/verbs/connect.h"
#include "executor/transport/verbs/device.h"
#include "executor/transport/verbs/frame.h"
#include "executor/transport/verbs/queue_pair.h"
#include "executor/transport/verbs/regions.h"

namespace commtune::tests {

class RawCard {
 public:
  /// Collective with rank 0, which connects as ranks do. This is rank 1 of two.
  RawCard(Bootstrap& bootstrap, const std::string& device);

  /// What proves it.
  const proof::Proof& proof() const { return introduction_.own; }

  /// Gives the card a frame, whether the peer has room for it or not; comes back when the card has ended it.
  /// returns  how it ended (ibv_wc_status)
  int send(const verbs::FrameHeader& header, std::span<const std::byte> payload = {});
  /// The same for a write of some bytes to an address of the peer's.
  int write(std::uint64_t address, std::uint32_t key, std::optional<verbs::Immediate> immediate);
  /// The next frame of the peer, that is of this kind.
  verbs::FrameHeader next(verbs::FrameKind kind);

 private:
  ibv_wc next_completion();
  int ended(verbs::WorkNumber number);

  verbs::Device device_;
  verbs::Regions regions_;
  verbs::Owned<ibv_cq> completions_;
  verbs::QueuePair pair_;
  verbs::Introduction introduction_;
  std::vector<std::byte> data_;
  verbs::Region region_;
  std::vector<verbs::FrameHeader> heard_;
  verbs::WorkNumber last_ = 0;
};

}  // namespace commtune::tests
