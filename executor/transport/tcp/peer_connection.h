#pragma once
// One connection: what is queued on it, and the message that is coming in.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/base/descriptor.h"
#include "executor/transport/matching/match_queues.h"
#include "executor/transport/matching/transfers.h"
#include "executor/transport/tcp/send_pace.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::tcp {

using matching::kNoTransfer;
using matching::Queue;
using matching::Transfer;
using matching::Transfers;

/// What precedes each message on the wire, as it lies in memory.
using Header = matching::Envelope;

/// Leads a rank's reason to leave, in place of a message's tag. No message has a tag of this space.
inline constexpr Tag kReasonTag = make_tag(static_cast<TagSpace>(kTagSpaces), 0);
inline constexpr std::size_t kLongestReason = 4096;

/// To one peer. What belongs to a message moves straight between the socket and the caller's memory. Small
/// messages travel together, as a system call and a packet for each cost more than their bytes.
///
/// All that move bytes throw Error{kPeerLost} where the peer has gone while something is still due, and
/// Error{kConflict} for a message with more bytes than its receive has room or the limits allow.
class PeerConnection {
 public:
  /// transfers  of the rank, peers, its view of the others, and limits of what they send, which may change:
  ///            must outlive the connection
  PeerConnection(Descriptor socket, Transfers& transfers, const Peers& peers, const MessageLimits& limits,
                 int peer);

  /// Tells the peer why this rank leaves, where the kernel takes it at once and no message has been sent in
  /// part. The peer's next call throws Error{kPeerLost} with it. No other call but the destructor follows.
  void say_why(std::string_view why) noexcept;

  /// Whether there is one: a rank has none to itself.
  explicit operator bool() const { return static_cast<bool>(socket_); }
  int socket() const { return socket_.get(); }

  /// pace, unsent_limit  as in TcpOptions
  /// share               its part of the link, in (0, 1]
  void share_link(double pace, double share, Bytes unsent_limit);
  /// When its pace next allows to flush; empty where it does not wait for that.
  std::optional<Clock::time_point> due() const { return pace_.due(); }

  /// Throws Error{kPeerLost} where the peer has closed its side.
  void check_open() const;
  /// As MatchQueues::came_early().
  bool came_early(TagSpace space, std::uint32_t message) const { return matches_.came_early(space, message); }
  /// true: it is small and waits for what its rank does next; flush_held() before the rank waits.
  bool send(TransferId id);
  void receive(TransferId id);
  /// What the kernel says of the socket (EPOLLIN and the like).
  void on_events(std::uint32_t events);
  bool readable() const { return readable_; }
  void flush_held();
  /// Writes queued messages, where there are any and the kernel and the pace allow it.
  void flush_if_due();
  /// Reads what has come, straight to where it belongs, and with it the beginning of what follows.
  /// ahead  room for that beginning
  void drain(std::span<std::byte> ahead);

 private:
  /// Writes queued messages until there are none or the kernel takes no more.
  void flush();
  void account_sent(std::size_t sent);
  void unpack(std::span<const std::byte> bytes);
  std::span<std::byte> rest_of_header();
  std::span<std::byte> rest_of_payload();  ///< empty outside of one
  void account_received(std::size_t payload);
  void begin_incoming();  ///< a header is complete: finds the receive that it belongs to
  void finish_incoming();
  void check_header() const;
  void close();           ///< a peer that is done may go; one from which something is still due is lost
  bool says_why() const;  ///< what is coming in is a peer's reason to leave
  Error left() const;
  Error lost(std::string_view why) const;
  /// Sending failed: the peer may have said why before it went.
  [[noreturn]] void fail_to_send(int error);

  Descriptor socket_;
  Transfers* transfers_;
  const Peers* peers_;
  int peer_;
  SendPace pace_;

  Queue sends_;  // in the order in which they were started
  matching::MatchQueues matches_;
  bool readable_ = false;
  bool writable_ = true;
  bool held_ = false;    // small messages wait for others to go with them
  bool ending_ = false;  // the peer has closed its side; what it sent before is still to be read
  bool closed_ = false;

  Header incoming_;               // being read
  std::size_t header_bytes_ = 0;  // of `incoming_` that have come
  std::size_t payload_bytes_ = 0;
  TransferId target_ = kNoTransfer;                 // the receive it goes to, or
  matching::EarlyMessage* early_target_ = nullptr;  // where it is kept, or
  std::string reason_;                              // where a peer says why it leaves
};

}  // namespace commtune::tcp
