#pragma once
// What a rank and one of its peers send each other over reliable connections. The first of them carries all
// frames. Long messages are written over any of them, the largest over all at once, a part on each. So the
// others are of use only to who has heard a grant on the first, where a proof comes before anything else.
//
//   short message   sender -> receiver  kMessage   with its bytes, copied on either side
//   long message    sender -> receiver  kAnnounce  its size and tag
//                   receiver -> sender  kGrant     once a receive meets it: address, key, immediate
//                   sender -> receiver  writes     from memory to memory, the last one with the immediate
//                                                  (the last one of each connection)
//
// Messages and announcements travel in one queue and are matched in the order in which they were sent, so a
// long message may be overtaken by a short one's bytes, and never by its match.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/transport/matching/match_queues.h"
#include "executor/transport/matching/transfers.h"
#include "executor/transport/proof/proof.h"
#include "executor/transport/transport.h"
#include "executor/transport/verbs/chunk_chain.h"
#include "executor/transport/verbs/credits.h"
#include "executor/transport/verbs/frame.h"
#include "executor/transport/verbs/grants.h"
#include "executor/transport/verbs/wire.h"
#include "executor/transport/verbs/work_failure.h"
#include "perfmodel/base/error.h"

namespace commtune::verbs {

/// Sizes that both sides have to agree on.
struct ConnectionSizes {
  std::uint64_t eager = 4096;     ///< bytes of the longest message that is copied
  std::uint64_t chunk = 1 << 20;  ///< bytes of the longest write
  std::size_t connections = 1;    ///< to a peer
  /// Bytes of a part that is worth a connection of its own.
  static constexpr std::uint64_t kLeastPart = 64 << 10;
  static constexpr std::size_t kReceives = 64;  ///< posted on either side
  static constexpr std::size_t kFrames = 32;    ///< of ours that the card may have at a time
  static constexpr std::size_t kMostWork = 64;  ///< of any kind that the card may have of us at a time
  std::size_t slot() const {
    return sizeof(FrameHeader) + std::max<std::size_t>(eager, sizeof(proof::Proof));
  }
};

/// All throw Error{kConflict} where the peer sends what no rank sends or more than limits allow, and
/// Error{kPeerLost} where it has left while something is still due.
class PeerConnection {
 public:
  /// wires      one for each connection, with kReceives receives posted
  /// transfers  of the rank, peers, its view of the others, and limits of what they send, which may change:
  ///            must outlive the connection, as the wires must
  PeerConnection(const std::vector<Wire*>& wires, matching::Transfers& transfers, const Peers& peers,
                 const MessageLimits& limits, const ConnectionSizes& sizes, int peer);

  /// Before anything else: shows what proves this rank, and says what proves the peer.
  void introduce(const proof::Proof& own, const proof::Proof& expected);
  bool is_proven() const { return proven_; }

  /// Throws Error{kPeerLost} where the peer has left.
  void check_open() const;
  /// As MatchQueues::came_early().
  bool came_early(TagSpace space, std::uint32_t message) const { return matches_.came_early(space, message); }
  void send(TransferId id);
  void receive(TransferId id);
  /// Gives the card what it has room for and the peer has credits for. After each of the calls below.
  void pump();

  /// lane  which of the connections, from 0
  void on_sent(std::size_t lane, WorkNumber number);
  /// On the first one.
  void on_frame(std::size_t slot, std::size_t bytes);
  void on_written(std::size_t lane, std::size_t slot, Immediate immediate);
  /// What a failed piece of work was.
  WorkFailure failure_of(std::size_t lane, WorkNumber number) const;
  /// The same for a receive.
  WorkFailure failed_receive() const;
  /// A message that is under way or waited for, if one is: its size, or what the receive has room for.
  std::optional<matching::Envelope> awaited() const;

  /// Something has come from the peer, or from its card, since this was last asked.
  bool was_heard() { return std::exchange(heard_, false); }
  /// Something is still due from the peer, or to it.
  bool is_owed() const;
  bool has_left() const { return left_; }
  /// Nothing that was sent is still on its way.
  bool is_flushed() const;
  /// Asks the peer's card for a sign of life, by a write of nothing; its completion also tells of all work
  /// before it.
  void look();
  /// Tells the peer that nothing more will come; why, cut where it is too long, ends its run. Says nothing
  /// where the peer has no room to hear it.
  void leave(std::string_view why = {});
  /// What leave() said, if anything, has come to the peer's card.
  bool is_told() const { return left_ || !said_leave_ || lanes_.front().posted.empty(); }

  /// Bytes of messages that this end has copied, as often as it has.
  std::uint64_t copied_bytes() const { return copied_; }

 private:
  /// A long message that is being written.
  struct PendingSend {
    TransferId send = matching::kNoTransfer;
    FrameHeader grant;
    Region region;
    std::size_t parts_left = 0;
  };
  struct Posted {
    WorkNumber number = 0;
    Operation operation = Operation::kSend;
    bool is_frame = false;
    std::shared_ptr<PendingSend> ends{};          // a part of it, with the last write
    std::optional<matching::Envelope> message{};  // that it belongs to
  };
  /// A connection's part of a message.
  struct Chain {
    std::shared_ptr<PendingSend> writing;
    std::uint64_t begin = 0;  // within the message
    ChunkChain writes;
  };
  /// A long message and its receive, before it is granted.
  struct PendingGrant {
    TransferId receive = matching::kNoTransfer;
    matching::Envelope message;
    TransferId send = matching::kNoTransfer;
  };
  struct Lane {
    Wire* wire = nullptr;
    std::deque<Chain> chains{};  // granted by the peer, not all given to the card yet
    std::deque<Posted> posted{};
    WorkNumber last_posted = 0;
    std::size_t unsignalled = 0;
    Posted& post();
    bool has_room() const { return posted.size() < ConnectionSizes::kMostWork; }
    Signal next_signal(bool wanted);
  };
  Lane& first_lane() { return lanes_.front(); }
  bool has_room() const;
  void send_frame(FrameHeader header, std::span<const std::byte> payload, Signal signal);
  void send_messages();
  void write_chains(Lane& lane);
  bool may_grant() const;
  void take(const FrameHeader& header, std::span<const std::byte> payload);
  void take_proof(std::span<const std::byte> shown);
  void take_message(const matching::Envelope& message, std::span<const std::byte> payload);
  void take_announcement(const FrameHeader& header);
  void take_grant(const FrameHeader& header);
  void take_leave(std::span<const std::byte> why);
  void grant(const PendingGrant& met);
  ConnectionSet connections_for(std::uint64_t size);
  void repost(std::size_t slot);
  void copy_to(TransferId receive, const matching::Envelope& message, std::span<const std::byte> bytes);
  Error refused(std::string_view why) const;
  Error lost(std::string_view why) const;

  std::vector<Lane> lanes_;
  matching::Transfers* transfers_;
  const Peers* peers_;
  ConnectionSizes sizes_;
  int peer_;
  matching::MatchQueues matches_;
  Credits credits_{ConnectionSizes::kReceives};
  proof::Proof expected_{};
  bool proven_ = false, left_ = false, said_leave_ = false, heard_ = false;

  matching::Queue sends_;              // not sent or announced yet, in the order in which they were started
  std::vector<TransferId> announced_;  // not granted yet
  std::deque<PendingGrant> met_;       // to be granted
  std::deque<FrameHeader> due_;        // grants to be sent
  Grants<Region> grants_;              // to the peer

  std::size_t next_lane_ = 0;  // for a message that is worth one connection
  std::size_t next_frame_ = 0;
  std::size_t frames_posted_ = 0;
  std::uint64_t copied_ = 0;
};

}  // namespace commtune::verbs
