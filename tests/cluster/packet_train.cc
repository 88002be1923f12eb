#include "tests/cluster/packet_train.h"

#include <cstring>

namespace commtune::cluster {

namespace {

/// struct virtio_net_hdr of the VIRTIO specification 1.2, 5.1.6; in the byte order of this machine, as TAP
/// has it. (Debian 12's <linux/virtio_net.h> does not compile as C++ and lacks UDP segmentation.)
struct VnetHeader {
  std::uint8_t flags;
  std::uint8_t segmentation;  ///< kNone, kTcp4, kTcp6 or kUdp, perhaps with kEcn
  std::uint16_t header_bytes;
  std::uint16_t segment_bytes;
  std::uint16_t checksum_start;  ///< where the transport header starts
  std::uint16_t checksum_offset;
};
static_assert(sizeof(VnetHeader) == kVnetHeaderBytes);
constexpr std::uint8_t kNone = 0;
constexpr std::uint8_t kTcp4 = 1;
constexpr std::uint8_t kUdp = 5;
constexpr std::uint8_t kEcn = 0x80;

constexpr std::size_t kEthernetHeaderBytes = 14;
constexpr std::size_t kIpv4HeaderBytes = 20;
constexpr std::size_t kTcpHeaderBytes = 20;
constexpr std::size_t kUdpHeaderBytes = 8;

VnetHeader vnet_header(std::span<const std::byte> tap_frame) {
  VnetHeader header;
  std::memcpy(&header, tap_frame.data(), sizeof header);
  return header;
}

std::uint32_t load16(const std::byte* at) {
  return std::to_integer<std::uint32_t>(at[0]) << 8 | std::to_integer<std::uint32_t>(at[1]);
}
std::uint32_t load32(const std::byte* at) { return load16(at) << 16 | load16(at + 2); }
void store16(std::byte* at, std::uint32_t value) {
  at[0] = std::byte(value >> 8 & 0xff);
  at[1] = std::byte(value & 0xff);
}
void store32(std::byte* at, std::uint32_t value) {
  store16(at, value >> 16);
  store16(at + 2, value & 0xffff);
}

/// One's complement sum of 16-bit words, folded (RFC 1071); `bytes` is even.
std::uint32_t checksum(std::uint32_t sum, const std::byte* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 2) sum += load16(data + i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/// Bytes from the Ethernet header to the payload: what each packet of the train repeats.
std::size_t repeated_bytes(const VnetHeader& vnet, std::span<const std::byte> frame) {
  constexpr std::size_t kDataOffset = 12;  // its upper half is the TCP header's length in words of 4 bytes
  const std::size_t transport = vnet.checksum_start;
  if ((vnet.segmentation & ~kEcn) == kUdp) return transport + kUdpHeaderBytes;
  if (transport + kDataOffset >= frame.size()) return vnet.header_bytes;
  return transport + 4 * (std::to_integer<std::size_t>(frame[transport + kDataOffset]) >> 4);
}

std::int64_t on_wire(std::size_t frame_bytes) {
  return std::max(static_cast<std::int64_t>(frame_bytes), kShortestFrameBytes) + kWireOverheadBytes;
}

/// Rewrites the IPv4 header at `ip` for a packet of that many bytes from there on.
void fix_ipv4(std::byte* ip, std::size_t header_bytes, std::size_t total_bytes, std::size_t packets_before) {
  store16(ip + 2, static_cast<std::uint32_t>(total_bytes));
  store16(ip + 4, (load16(ip + 4) + static_cast<std::uint32_t>(packets_before)) & 0xffff);
  store16(ip + 10, 0);
  store16(ip + 10, ~checksum(0, ip, header_bytes) & 0xffff);
}

/// Rewrites the TCP header at `tcp`; its checksum becomes that of the pseudo header, as the kernel leaves it
/// for hardware to complete.
void fix_tcp(std::byte* tcp, const std::byte* ip, std::size_t tcp_bytes, std::size_t payload_before,
             bool last) {
  constexpr std::byte kFinPsh{0x09};
  constexpr std::byte kCwr{0x80};
  constexpr std::uint32_t kTcpProtocol = 6;
  store32(tcp + 4, load32(tcp + 4) + static_cast<std::uint32_t>(payload_before));
  if (!last) tcp[13] &= ~kFinPsh;
  if (payload_before > 0) tcp[13] &= ~kCwr;
  store16(tcp + 16, checksum(kTcpProtocol + static_cast<std::uint32_t>(tcp_bytes), ip + 12, 8));
}

}  // namespace

PacketTrain packet_train(std::span<const std::byte> tap_frame) {
  if (tap_frame.size() < kVnetHeaderBytes + kEthernetHeaderBytes) return {};
  const VnetHeader vnet = vnet_header(tap_frame);
  const auto frame = tap_frame.subspan(kVnetHeaderBytes);
  const std::size_t headers = repeated_bytes(vnet, frame);
  if (vnet.segmentation == kNone || vnet.segment_bytes == 0 || headers >= frame.size()) {
    return {1, 0, on_wire(frame.size())};
  }
  const std::size_t payload = frame.size() - headers;
  const std::size_t packets = std::min((payload + vnet.segment_bytes - 1) / vnet.segment_bytes, kMostPackets);
  const std::size_t last = payload - (packets - 1) * vnet.segment_bytes;
  return {packets, on_wire(headers + vnet.segment_bytes), on_wire(headers + last)};
}

std::span<const std::byte> cut_out(std::span<const std::byte> tap_frame, std::size_t first, std::size_t count,
                                   std::span<std::byte> out) {
  VnetHeader vnet = vnet_header(tap_frame);
  const auto frame = tap_frame.subspan(kVnetHeaderBytes);
  const std::size_t headers = repeated_bytes(vnet, frame);
  if ((vnet.segmentation & ~kEcn) != kTcp4 || headers >= frame.size() ||
      headers < kEthernetHeaderBytes + kIpv4HeaderBytes + kTcpHeaderBytes) {
    return {};
  }
  const std::size_t from = first * vnet.segment_bytes;
  const std::size_t payload = frame.size() - headers;
  const bool last = first + count == packet_train(tap_frame).packets;
  const std::size_t bytes = last ? payload - from : count * vnet.segment_bytes;
  if (bytes <= vnet.segment_bytes) {
    vnet.segmentation = kNone;
    vnet.segment_bytes = 0;
  }
  std::memcpy(out.data(), &vnet, sizeof vnet);
  std::byte* const piece = out.data() + kVnetHeaderBytes;
  std::memcpy(piece, frame.data(), headers);
  std::memcpy(piece + headers, frame.data() + headers + from, bytes);
  std::byte* const ip = piece + kEthernetHeaderBytes;
  std::byte* const tcp = piece + vnet.checksum_start;
  const std::size_t ip_header_bytes = vnet.checksum_start - kEthernetHeaderBytes;
  fix_ipv4(ip, ip_header_bytes, headers - kEthernetHeaderBytes + bytes, first);
  fix_tcp(tcp, ip, headers - vnet.checksum_start + bytes, from, last);
  return out.first(kVnetHeaderBytes + headers + bytes);
}

}  // namespace commtune::cluster
