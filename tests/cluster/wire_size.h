#pragma once
// How many bytes a frame would take on an Ethernet wire. A TAP device hands over super-frames that real
// hardware would cut into packets (TCP segmentation offload); rates of emulated links count what those
// packets would occupy.

#include <cstddef>
#include <cstdint>
#include <span>

namespace commtune::cluster {

/// Bytes of the virtio-net header that the kernel puts before each frame of a TAP device opened with
/// IFF_VNET_HDR.
inline constexpr std::size_t kVnetHeaderBytes = 10;

/// Beside its header and payload each packet occupies preamble (8), frame check sequence (4) and the gap to
/// the next one (12).
inline constexpr std::int64_t kWireOverheadBytes = 24;

/// Shortest Ethernet frame without its check sequence; shorter ones are padded.
inline constexpr std::int64_t kShortestFrameBytes = 60;

/// Wire bytes of one packet of that many bytes from the Ethernet header on.
std::int64_t packet_wire_bytes(std::int64_t frame_bytes);

/// Wire bytes of what a TAP device handed over: virtio-net header, then the Ethernet frame. A frame marked
/// for segmentation (TCP or UDP) counts as the packets that it would be cut into, each with its own copy of
/// the headers; any other frame counts as one packet. Too short to be a frame: 0.
std::int64_t tap_wire_bytes(std::span<const std::byte> tap_frame);

}  // namespace commtune::cluster
