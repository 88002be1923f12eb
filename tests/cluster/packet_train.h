#pragma once
// What a TAP frame would be on an Ethernet wire. With segmentation offload the kernel hands over super-frames
// of up to 64 KiB that real hardware would cut into packets: a train of packets, all full but the last.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace commtune::cluster {

/// Bytes of the virtio-net header that the kernel puts before each frame of a TAP device opened with
/// IFF_VNET_HDR.
inline constexpr std::size_t kVnetHeaderBytes = 10;

/// The largest frame that a TAP device hands over: virtio-net header, Ethernet header, 64 KiB IP packet.
inline constexpr std::size_t kLargestTapFrameBytes = kVnetHeaderBytes + 14 + 65536;

/// Beside its headers and payload each packet occupies preamble (8), frame check sequence (4) and the gap to
/// the next one (12).
inline constexpr std::int64_t kWireOverheadBytes = 24;

/// Shortest Ethernet frame without its check sequence; shorter ones are padded.
inline constexpr std::int64_t kShortestFrameBytes = 60;

/// A train longer than this (segments under 48 bytes) is taken for one with a longer last packet.
inline constexpr std::size_t kMostPackets = 1400;

/// Sizes on the wire, headers of each packet included.
struct PacketTrain {
  std::size_t packets = 0;  ///< 0: not a frame
  std::int64_t full_wire_bytes = 0;
  std::int64_t last_wire_bytes = 0;

  /// All packets before the one of that index; packets >= 1.
  std::int64_t wire_bytes_before(std::size_t packet) const {
    const auto full = static_cast<std::int64_t>(std::min(packet, packets - 1));
    return full * full_wire_bytes + (packet == packets ? last_wire_bytes : 0);
  }
  std::int64_t wire_bytes(std::size_t packet) const {
    return packet + 1 == packets ? last_wire_bytes : full_wire_bytes;
  }
  std::int64_t wire_bytes() const { return packets == 0 ? 0 : wire_bytes_before(packets); }
  bool operator==(const PacketTrain&) const = default;
};

/// The train that a TAP frame (virtio-net header, then the Ethernet frame) stands for. Frames that are not
/// marked for segmentation are one packet; too short to be a frame: none.
PacketTrain packet_train(std::span<const std::byte> tap_frame);

/// Packets `first` to `first + count - 1` of a train as a TAP frame of its own, as if the others had been
/// lost: sequence number, lengths, flags and checksums are those of what remains.
///
/// tap_frame  packet_train(tap_frame).packets >= first + count, count >= 1
/// out        room for at least tap_frame.size() bytes
/// returns    the used part of `out`; empty if the train is not TCP over IPv4 (such trains are lost as a
/// whole)
std::span<const std::byte> cut_out(std::span<const std::byte> tap_frame, std::size_t first, std::size_t count,
                                   std::span<std::byte> out);

}  // namespace commtune::cluster
