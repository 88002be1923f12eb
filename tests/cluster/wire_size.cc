#include "tests/cluster/wire_size.h"

#include <algorithm>
#include <cstring>

namespace commtune::cluster {

namespace {

/// struct virtio_net_hdr of the VIRTIO specification, 5.1.6; in the byte order of this machine, as TAP has
/// it. (Debian 12's <linux/virtio_net.h> does not compile as C++ and lacks UDP segmentation.)
struct VnetHeader {
  std::uint8_t flags;
  std::uint8_t segmentation;  ///< kNone, kUdp or a TCP kind, perhaps with kEcn
  std::uint16_t header_bytes;
  std::uint16_t segment_bytes;
  std::uint16_t checksum_start;  ///< where the transport header starts
  std::uint16_t checksum_offset;
};
static_assert(sizeof(VnetHeader) == kVnetHeaderBytes);
constexpr std::uint8_t kNone = 0;
constexpr std::uint8_t kUdp = 5;
constexpr std::uint8_t kEcn = 0x80;

constexpr std::int64_t kEthernetHeaderBytes = 14;
constexpr std::int64_t kUdpHeaderBytes = 8;
constexpr std::size_t kTcpDataOffsetByte = 12;  // its upper half is the header's length in words of 4 bytes

/// Bytes of the headers that each segment repeats.
std::int64_t repeated_header_bytes(const VnetHeader& vnet, std::span<const std::byte> frame) {
  const std::size_t transport = vnet.checksum_start;
  if ((vnet.segmentation & ~kEcn) == kUdp) return static_cast<std::int64_t>(transport) + kUdpHeaderBytes;
  if (transport + kTcpDataOffsetByte >= frame.size()) return vnet.header_bytes;
  const auto words = static_cast<std::int64_t>(frame[transport + kTcpDataOffsetByte]) >> 4;
  return static_cast<std::int64_t>(transport) + 4 * words;
}

}  // namespace

std::int64_t packet_wire_bytes(std::int64_t frame_bytes) {
  return std::max(frame_bytes, kShortestFrameBytes) + kWireOverheadBytes;
}

std::int64_t tap_wire_bytes(std::span<const std::byte> tap_frame) {
  if (tap_frame.size() < kVnetHeaderBytes + kEthernetHeaderBytes) return 0;
  VnetHeader vnet;
  std::memcpy(&vnet, tap_frame.data(), sizeof vnet);
  const auto frame = tap_frame.subspan(kVnetHeaderBytes);
  const auto frame_bytes = static_cast<std::int64_t>(frame.size());
  if (vnet.segmentation == kNone || vnet.segment_bytes == 0) return packet_wire_bytes(frame_bytes);

  const std::int64_t headers = repeated_header_bytes(vnet, frame);
  const std::int64_t payload = frame_bytes - headers;
  const std::int64_t full = payload / vnet.segment_bytes;
  const std::int64_t rest = payload % vnet.segment_bytes;
  return full * packet_wire_bytes(headers + vnet.segment_bytes) +
         (rest > 0 ? packet_wire_bytes(headers + rest) : 0);
}

}  // namespace commtune::cluster
