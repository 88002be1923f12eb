#include "tests/cluster/packet_train.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace commtune::cluster {
namespace {

constexpr std::size_t kIp = kVnetHeaderBytes + 14;
constexpr std::size_t kTcp = kIp + 20;
constexpr std::size_t kTcpHeader = 32;  // with time stamps
constexpr std::size_t kPayload = kTcp + kTcpHeader;

std::uint32_t byte_at(std::span<const std::byte> frame, std::size_t at) {
  return std::to_integer<std::uint32_t>(frame[at]);
}
std::uint32_t word16(std::span<const std::byte> frame, std::size_t at) {
  return byte_at(frame, at) << 8 | byte_at(frame, at + 1);
}
std::uint32_t word32(std::span<const std::byte> frame, std::size_t at) {
  return word16(frame, at) << 16 | word16(frame, at + 2);
}
std::uint32_t ones_sum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += word16(bytes, i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

void put(std::vector<std::byte>& frame, std::size_t at, std::initializer_list<unsigned> bytes) {
  for (const unsigned byte : bytes) frame[at++] = std::byte(byte);
}

/// TCP over IPv4 as a TAP device gives it: payload byte i is i mod 251; sequence number 0x01020304,
/// identification 0x1000, flags CWR, FIN, PSH and ACK.
std::vector<std::byte> tcp_frame(std::size_t payload, std::uint16_t segment) {
  std::vector<std::byte> frame(kPayload + payload);
  const bool segmented = payload > segment;
  // virtio-net header: checksum wanted, TCP over IPv4, transport header at 34, checksum 16 into it;
  // little-endian
  put(frame, 0,
      {1, segmented ? 1U : 0U, 66, 0, segmented ? segment & 0xffU : 0U, segmented ? segment >> 8 : 0U, 34, 0,
       16, 0});
  const std::size_t total = 20 + kTcpHeader + payload;
  put(frame, kIp,
      {0x45, 0, static_cast<unsigned>(total >> 8 & 0xff), static_cast<unsigned>(total & 0xff), 0x10, 0x00,
       0x40, 0, 64, 6});
  put(frame, kIp + 12, {10, 77, 0, 1, 10, 77, 0, 2});
  put(frame, kTcp + 4, {1, 2, 3, 4});
  put(frame, kTcp + 12, {0x80, 0x99});
  for (std::size_t i = 0; i < payload; ++i) frame[kPayload + i] = std::byte(i % 251);
  return frame;
}

// 4 B of payload: 14 + 20 + 32 + 4 = 70 B and 24 B that Ethernet adds
TEST(PacketTrain, CountsOnePacket) { EXPECT_EQ(packet_train(tcp_frame(4, 1448)), (PacketTrain{1, 0, 94})); }

// An empty frame of 42 B is padded to 60 B: 84 B
TEST(PacketTrain, PadsShortPackets) {
  EXPECT_EQ(packet_train(std::vector<std::byte>(kVnetHeaderBytes + 42)), (PacketTrain{1, 0, 84}));
}

// 4000 B in segments of 1448 B: 1448 + 1448 + 1104, each with 66 B of headers and 24 B of Ethernet
TEST(PacketTrain, CountsEachSegmentWithItsHeaders) {
  const PacketTrain train = packet_train(tcp_frame(4000, 1448));
  EXPECT_EQ(train, (PacketTrain{3, 1538, 1194}));
  EXPECT_EQ(train.wire_bytes(), 1538 + 1538 + 1194);
  EXPECT_EQ(train.wire_bytes_before(1), 1538);
  EXPECT_EQ(train.wire_bytes(1), 1538);
  EXPECT_EQ(train.wire_bytes(2), 1194);
}

// 2896 B are two full segments, with none of zero bytes after them
TEST(PacketTrain, EndsWithAFullSegment) {
  EXPECT_EQ(packet_train(tcp_frame(2896, 1448)), (PacketTrain{2, 1538, 1538}));
}

TEST(PacketTrain, IsNoneIfThereIsNoFrame) { EXPECT_EQ(packet_train(std::vector<std::byte>(20)).packets, 0U); }

// A virtio-net header that claims a transport header beyond the frame must not be believed
TEST(PacketTrain, TakesAWrongHeaderForOnePacket) {
  std::vector<std::byte> frame = tcp_frame(100, 1448);
  put(frame, 0, {1, 1, 0xff, 0xff, 10, 0, 0xff, 0xff, 16, 0});
  EXPECT_EQ(packet_train(frame).packets, 1U);
}

// 65,000 B in segments of 10 B would be 6500 packets; the count ends at kMostPackets, the bytes do not
TEST(PacketTrain, BoundsTheNumberOfPackets) {
  const PacketTrain train = packet_train(tcp_frame(65'000, 10));
  EXPECT_EQ(train.packets, kMostPackets);
  EXPECT_GE(train.wire_bytes(), 65'000);
}

/// Sequence number, identification, lengths, flags and checksums of a piece, against what was expected.
void expect_piece(std::span<const std::byte> piece, std::uint32_t packets_before, std::size_t payload_before,
                  std::size_t payload, std::uint32_t flags) {
  ASSERT_EQ(piece.size(), kPayload + payload);
  EXPECT_EQ(word16(piece, kIp + 2), 52 + payload);
  EXPECT_EQ(word16(piece, kIp + 4), 0x1000 + packets_before);
  EXPECT_EQ(ones_sum(piece.subspan(kIp, 20)), 0xffffU) << "IPv4 header checksum";
  EXPECT_EQ(word32(piece, kTcp + 4), 0x01020304 + payload_before);
  EXPECT_EQ(byte_at(piece, kTcp + 13), flags);
  // pseudo header: addresses, protocol 6, length of TCP header and payload
  std::uint32_t pseudo = ones_sum(piece.subspan(kIp + 12, 8)) + 6 + 32 + static_cast<std::uint32_t>(payload);
  if (pseudo > 0xffff) pseudo = (pseudo & 0xffff) + (pseudo >> 16);
  EXPECT_EQ(word16(piece, kTcp + 16), pseudo);
  for (std::size_t i = 0; i < payload; ++i) {
    ASSERT_EQ(byte_at(piece, kPayload + i), (payload_before + i) % 251) << "payload byte " << i;
  }
}

TEST(CutOut, KeepsTheFrontWithoutTheEndOfTheStream) {
  const auto frame = tcp_frame(4000, 1448);
  std::vector<std::byte> out(frame.size());
  const auto piece = cut_out(frame, 0, 2, out);
  expect_piece(piece, 0, 0, 2896, 0x90);  // CWR and ACK; FIN and PSH belong to the last packet
  EXPECT_EQ(packet_train(piece), (PacketTrain{2, 1538, 1538}));
}

TEST(CutOut, KeepsTheShortEnd) {
  const auto frame = tcp_frame(4000, 1448);
  std::vector<std::byte> out(frame.size());
  const auto piece = cut_out(frame, 1, 2, out);
  expect_piece(piece, 1, 1448, 2552, 0x19);  // FIN, PSH and ACK; CWR belongs to the first packet
  EXPECT_EQ(packet_train(piece), (PacketTrain{2, 1538, 1194}));
}

TEST(CutOut, MakesAPlainPacketOfOne) {
  const auto frame = tcp_frame(4000, 1448);
  std::vector<std::byte> out(frame.size());
  const auto piece = cut_out(frame, 1, 1, out);
  expect_piece(piece, 1, 1448, 1448, 0x10);
  EXPECT_EQ(packet_train(piece), (PacketTrain{1, 0, 1538}));
  EXPECT_EQ(byte_at(piece, 1), 0U) << "no segmentation";
}

TEST(CutOut, LeavesWhatIsNotTcpOverIpv4) {
  auto frame = tcp_frame(4000, 1448);
  frame[1] = std::byte{5};  // UDP
  std::vector<std::byte> out(frame.size());
  EXPECT_TRUE(cut_out(frame, 0, 1, out).empty());
}

}  // namespace
}  // namespace commtune::cluster
