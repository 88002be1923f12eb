#pragma once
// Which message belongs to which receive: what MPI calls the posted receive queue and the unexpected message
// queue, for one peer of a rank.

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "executor/transport/matching/transfers.h"
#include "executor/transport/transport.h"

namespace commtune::matching {

/// A message that came before its receive.
struct EarlyMessage {
  Envelope envelope;
  std::vector<std::byte> data;    ///< as many bytes as the envelope says
  bool complete = false;          ///< all of them have come
  TransferId send = kNoTransfer;  ///< the peer's send, where it ends only when a receive meets it
};

/// The receives that a rank has posted for one peer, and the messages of that peer which came before theirs.
///
/// A message goes to the first posted receive that its tag fits, and a receive gets the first message that
/// has come and that it fits. Both look through the queue: O(1) where messages come in the order of their
/// receives. Nothing is allocated but for messages that come early, which share what recycle() was given.
/// What is refused leaves the queues as they were. From one thread at a time.
class MatchQueues {
 public:
  /// transfers  of the rank, peers, its view of the others, and limits of what they send, which may change:
  ///            must outlive these
  MatchQueues(Transfers& transfers, const Peers& peers, const MessageLimits& limits, int peer);

  /// Posts a receive, unless a message for it has come.
  /// returns  that message, which is no longer kept here
  /// throws   Error{kConflict} where it is longer than the receive has room for
  std::optional<EarlyMessage> post(TransferId receive);
  bool any_posted() const { return !posted_.empty(); }
  /// The receive that has been posted for longest. There is one.
  const Transfer& first_posted() const { return (*transfers_)[posted_.first]; }

  /// A message is coming in.
  /// returns  the receive that it goes to, which is no longer posted; kNoTransfer: none, and keep() it
  /// throws   Error{kConflict} where it is longer than the limits or that receive allow
  TransferId take_receive(const Envelope& message);

  /// Room for a message that is coming in and that no receive takes; at its place until post() returns it.
  /// throws  Error{kConflict}, before anything is allocated, where the peer has more such messages than it
  /// may
  EarlyMessage& keep(const Envelope& message);
  /// The same for a message that has come. Throws as above.
  void keep(EarlyMessage message);
  /// Takes the memory of a message that post() returned, for those to come.
  void recycle(EarlyMessage message);
  /// Whether one of them belongs to this message of a plan (message_of), in this tag space.
  bool came_early(TagSpace space, std::uint32_t message) const;

 private:
  void tell(Tag early);
  void check_early(const Envelope& message) const;
  void check_room(const Envelope& message, TransferId receive) const;

  Transfers* transfers_;
  const Peers* peers_;
  const MessageLimits* limits_;
  int peer_;
  Queue posted_;
  std::list<EarlyMessage> early_;
  std::uint64_t early_bytes_ = 0;  // of these, as MessageLimits counts them
};

}  // namespace commtune::matching
