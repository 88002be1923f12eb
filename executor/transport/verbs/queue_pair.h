#pragma once
// A card's end of a reliable connection, with the memory of the frames that it sends and receives. For the
// sources of this folder.

#include <array>
#include <cstdint>
#include <vector>

#include "executor/transport/verbs/device.h"
#include "executor/transport/verbs/library.h"
#include "executor/transport/verbs/peer_connection.h"
#include "executor/transport/verbs/regions.h"
#include "executor/transport/verbs/wire.h"
#include "executor/transport/verbs/work_failure.h"

namespace commtune::verbs {

/// What the other side has to know of a queue pair. Travels as it lies in memory.
struct PairAddress {
  std::uint32_t number = 0;
  std::uint32_t first_packet = 0;  ///< its packets are counted from this random number on
};

/// Where a card is. Travels as it lies in memory.
struct CardAddress {
  std::array<std::uint8_t, 16> gid{};
  std::uint32_t lid = 0;  ///< InfiniBand: within its subnet
  GidKind kind{};
  std::uint32_t mtu = 0;  ///< ibv_mtu
};
CardAddress address_of(const Device& device);

/// What a completion says it is of: a peer, which of the connections to it, and a receive's slot or a piece
/// of work's number.
struct WorkId {
  int peer = 0;
  std::size_t lane = 0;
  bool receive = false;
  std::uint64_t number = 0;
  std::uint64_t packed() const;
  static WorkId unpack(std::uint64_t packed);
};

class QueuePair final : public Wire {
 public:
  /// Completions that it may leave at a time.
  static constexpr int kMostCompletions =
      static_cast<int>(ConnectionSizes::kReceives + ConnectionSizes::kMostWork + 8);

  /// Posts all receives. device, regions and completions outlive this. Throws Error{kUnavailable}.
  ///
  /// lane  which of the connections to the peer; only the first, 0, has memory for frames
  QueuePair(const Device& device, const Regions& regions, ibv_cq* completions, const ConnectionSizes& sizes,
            int peer, std::size_t lane);

  PairAddress address() const { return {pair_->qp_num, first_packet_}; }
  /// Throws Error{kUnavailable}.
  void connect(const CardAddress& card, const PairAddress& pair, const RetryRule& retry);

  std::span<std::byte> outgoing(std::size_t slot) override;
  std::span<const std::byte> incoming(std::size_t slot) const override;
  void post_receive(std::size_t slot) override;
  void send(WorkNumber number, std::size_t slot, std::size_t bytes, Signal signal) override;
  void write(WorkNumber number, std::span<const std::byte> data, std::uint32_t local_key,
             std::uint64_t address, std::uint32_t key, const Immediate* immediate, Signal signal) override;
  Region readable(std::span<const std::byte> memory) override { return regions_.readable(memory); }
  Region writable(std::span<std::byte> memory) override { return regions_.writable(memory); }

 private:
  void create(ibv_cq* completions);
  void initialise();
  void make_ready_to_receive(const CardAddress& card, const PairAddress& pair);
  void make_ready_to_send(const RetryRule& retry);
  void modify(ibv_qp_attr& attributes, int mask, const char* what);
  void post(ibv_send_wr& work, Signal signal);
  std::byte* slot_at(std::size_t index) { return memory_.data() + index * slot_; }

  const Device& device_;
  const Regions& regions_;
  int peer_;
  std::size_t lane_;
  std::size_t slot_;               // 0: no frames come or go
  std::vector<std::byte> memory_;  // slots of receives, then of frames
  Region region_;
  std::uint32_t first_packet_;
  std::uint32_t inline_limit_ = 0;
  Owned<ibv_qp> pair_;  // last, hence destroyed before the memory that it uses
};

}  // namespace commtune::verbs
