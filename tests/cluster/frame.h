#pragma once
// A frame in flight, and the buffers for all of them: taken and given back without allocation.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/cluster/link_clock.h"
#include "tests/cluster/packet_train.h"

namespace commtune::cluster {

/// What a frame still has to pass on its way.
enum class Stage : std::uint8_t { kTrunkOut, kTrunkIn, kDownlink, kHost };

/// A frame's bytes as read from the TAP device, the train of packets that it stands for, and where that is.
struct Frame {
  std::uint32_t length = 0;       ///< used bytes of `data`
  std::uint16_t source = 0;       ///< port index
  std::uint16_t destination = 0;  ///< port index
  Stage stage = Stage::kHost;     ///< what it enters next, or is in
  Passage passage{};              ///< when its packets reach that stage, evenly spread
  PacketTrain train{};
  std::bitset<kMostPackets> lost;  ///< packets that found a buffer full
  std::size_t served = 0;          ///< packets that the present link has dealt with (see LinkQueue)
  Passage leaves{};                ///< when the survivors among these leave it
  std::array<std::byte, kLargestTapFrameBytes> data;

  std::span<const std::byte> bytes() const { return std::span(data).first(length); }
};

/// A fixed number of frames, the most recently used handed out first, so that the working set stays small.
/// Memory is touched only as far as it is used. Not thread-safe.
class FramePool {
 public:
  /// Throws Error{kUnavailable} if there is no address space left.
  explicit FramePool(std::size_t frames);

  /// Null when all are in flight.
  Frame* take();
  /// frame  one that take() returned, not given back yet
  void give_back(Frame* frame);

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte[], Unmap> memory_;
  std::vector<Frame*> free_;
};

}  // namespace commtune::cluster
