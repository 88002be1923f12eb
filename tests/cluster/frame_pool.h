#pragma once
// Buffers for frames in flight: taken and given back without allocation.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/cluster/link_clock.h"
#include "tests/cluster/wire_size.h"

namespace commtune::cluster {

/// The largest frame that a TAP device hands over: virtio-net header, Ethernet header, 64 KiB IP packet.
inline constexpr std::size_t kLargestTapFrameBytes = kVnetHeaderBytes + 14 + 65536;

/// What a frame still has to pass on its way.
enum class Stage : std::uint8_t { kTrunkUp, kTrunkDown, kDownlink, kHost };

/// A frame in flight: its bytes as read from the TAP device, and where it is.
struct Frame {
  std::uint32_t length = 0;       ///< used bytes of `data`
  std::int64_t wire_bytes = 0;    ///< what it occupies on the wire
  std::uint16_t source = 0;       ///< port index
  std::uint16_t destination = 0;  ///< port index
  Stage stage = Stage::kHost;     ///< what it enters next
  Passage passage{};              ///< when its bits reach that stage
  std::array<std::byte, kLargestTapFrameBytes> data;

  std::span<const std::byte> bytes() const { return std::span(data).first(length); }
};

/// A fixed number of frames, the most recently used handed out first, so that the working set stays small.
/// Memory is touched only as far as it is used. Not thread-safe.
class FramePool {
 public:
  explicit FramePool(std::size_t frames);

  /// Null when all are in flight.
  Frame* take();
  /// frame  one that take() returned, not given back yet
  void give_back(Frame* frame);
  std::size_t available() const { return free_.size(); }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte[], Unmap> memory_;
  std::vector<Frame*> free_;
};

}  // namespace commtune::cluster
