#pragma once
// One rank's end of the network: the small vocabulary that roads, the engine and the probes are written in.
// Backends live in one folder each (mpi/, local/); nothing above this header knows which one it has.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"
#include "perfmodel/profile.h"
#include "perfmodel/transfer_traits.h"

namespace commtune {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// Separate matching spaces, so that a receive which takes any tag of one kind never takes another kind.
enum class TagSpace : std::uint32_t { kControl = 0, kReduce = 1, kDistribute = 2 };
inline constexpr int kTagSpaces = 3;

/// Matches a send with its receive; messages of one (sender, tag) pair arrive in the order in which they were
/// sent. A tag is a tag space and a number.
using Tag = std::uint32_t;
inline constexpr std::uint32_t kTagNumbers = 1u << 28;        ///< numbers run from 0 to kTagNumbers - 2
inline constexpr std::uint32_t kAnyNumber = kTagNumbers - 1;  ///< receives only: any number of the space

constexpr Tag make_tag(TagSpace space, std::uint32_t number) {
  return (static_cast<std::uint32_t>(space) << 28) | number;
}
constexpr TagSpace tag_space_of(Tag tag) { return static_cast<TagSpace>(tag >> 28); }
constexpr std::uint32_t number_of(Tag tag) { return tag & (kTagNumbers - 1); }

/// Tags whose numbers differ by a multiple of this are streams of the same message.
inline constexpr std::uint32_t kLaneNumbers = 1U << 26;
/// The message that a tag belongs to, whichever of its streams it is.
constexpr std::uint32_t message_of(Tag tag) { return number_of(tag) % kLaneNumbers; }

/// A transfer that was started: index into the transport's own table, reused after its completion was
/// reported. Small: a caller may keep a table indexed by it.
using TransferId = std::uint32_t;

/// A transfer that has ended.
struct Completion {
  TransferId transfer = 0;
  Tag tag = 0;            ///< the sender's; tells what a receive of kAnyNumber got
  std::size_t bytes = 0;  ///< sent or received; a receive may get fewer than it has room for
};

/// The time until then, `most` at most and never none: what ranks have to connect in.
Seconds time_to_connect(Deadline until, Seconds most);

/// A rank's view of the others.
struct Peers {
  int rank = 0;                    ///< this process
  std::vector<std::string> hosts;  ///< host name of each rank; its size is the number of ranks
  std::vector<int> node;           ///< number of the host of each rank: equal where ranks share memory
  int size() const { return static_cast<int>(hosts.size()); }
};

/// "rank 3 (host c)", as errors name it.
std::string describe(const Peers& peers, int rank);

/// What a rank throws whose peer has ended the run and said why. Where the peer did because another one had,
/// that one's words are enough.
Error run_ended(const Peers& peers, int peer, const std::string& why);

/// What a rank may send, for a transport whose bytes come from sockets that it reads itself: sizes from the
/// wire are held against it before anything is allocated. Ranks that agree on a plan know how much it sends
/// (message_limits()); until then little is.
struct MessageLimits {
  Bytes longest = 1_MiB;  ///< of one message
  /// Of messages of one peer that have come and that no receive has asked for; each counts kPerMessage more.
  Bytes early = 4_MiB;
  static constexpr Bytes kPerMessage{64};
};

/// Something failed that one message stands for: whoever knows what it carries can say more of it.
class MessageError : public Error {
 public:
  /// tag  the message's; of kAnyNumber where nothing had come that says which
  MessageError(const Error& error, Tag tag) : Error(error), tag_(tag) {}
  Tag tag() const noexcept { return tag_; }

 private:
  Tag tag_;
};

/// What of a rank's end decides how fast it is, and no host tells of by itself. By name, without dots.
struct EndFacts {
  std::map<std::string, std::string> what;      ///< "card_mlx5_0_1": "RoCE v2, MTU 4096 B"
  std::map<std::string, std::string> releases;  ///< "firmware_mlx5_0": "20.31.1014"
};

/// Thread model: everything but wake() is called from one thread at a time (the communication thread).
/// Buffers stay owned by the caller, who keeps them alive and untouched until the transfer is reported
/// complete. One exception: the receive of an answer may be posted on the memory of the send that asks for
/// it, where the peer answers only after it has received all of it.
/// After any method has thrown, only the destructor may be called.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual std::string_view name() const = 0;
  virtual const Peers& peers() const = 0;
  /// None where the host's own facts say all.
  virtual EndFacts facts() const { return {}; }
  /// How messages are best cut for it; the same on all ranks.
  virtual TransferTraits traits() const {
    TransferTraits usual;
    usual.assumed = false;
    return usual;
  }

  /// Starts a send; `to` is any rank but this one.
  virtual TransferId send(int to, Tag tag, std::span<const std::byte> data) = 0;
  /// Starts a receive of at most data.size() bytes. Receives that fit the same message match in the order in
  /// which they were started.
  virtual TransferId receive(int from, Tag tag, std::span<std::byte> data) = 0;

  /// Moves transfers on and returns those that have completed since the last call. Blocks, without burning
  /// the core, until there is one, or wake() was called, or something has come in a data tag space that no
  /// receive has asked for, or the deadline has passed (then it returns an empty span; a deadline in the past
  /// polls). The span is valid until the next call. Throws Error{kPeerLost} naming the rank and host when a
  /// peer is gone (a MessageError where it knows what was under way), Error{kConflict} when a message is
  /// longer than its receive.
  virtual std::span<const Completion> wait(Deadline until) = 0;

  /// As the last wait() left it: whether a peer has sent something of this message, by any of its streams, in
  /// this tag space, that no receive has asked for. A backend that cannot know says no.
  virtual bool came_early(TagSpace space, std::uint32_t message) const {
    static_cast<void>(space);
    static_cast<void>(message);
    return false;
  }

  /// As the last wait() left it: throws Error{kPeerLost} naming a peer that has gone, also one that no
  /// transfer is under way with, whose end wait() leaves to the next transfer. A backend that cannot know
  /// ignores it.
  virtual void check_peers() {}

  /// Ends a concurrent or the next wait() early. Callable from any thread.
  virtual void wake() noexcept = 0;

  /// By peer: the part, in (0, 1], of a link that sends to it get while all that a plan sends at once is
  /// under way (link_shares()). A backend that does not choose its pace ignores it.
  virtual void share_links(std::span<const double> shares) { static_cast<void>(shares); }

  /// Bytes a second that this rank sends to other hosts at most, 0: as many as the kernel will. Takes effect
  /// with the next share_links(). A backend that does not choose its pace ignores it.
  virtual void set_pace(double bytes_per_second) { static_cast<void>(bytes_per_second); }

  /// From now on peers may send so much; all ranks call it before one of them sends more than was allowed
  /// before. wait() throws Error{kConflict} naming the peer, the size and the limit where one sends more all
  /// the same. A backend whose library does the receiving ignores it.
  virtual void limit_messages(const MessageLimits& limits) { static_cast<void>(limits); }

  /// Memory that transfers will use again and again, and that stays where it is until unregister_memory()
  /// with the same span, while no transfer uses it: a backend whose card must be told of memory tells it
  /// once, instead of around each transfer. What nobody registered travels all the same. Throws
  /// Error{kUnavailable} where the system does not let it. A backend without such a card ignores both.
  virtual void register_memory(std::span<std::byte> memory) { static_cast<void>(memory); }
  virtual void unregister_memory(std::span<std::byte> memory) noexcept { static_cast<void>(memory); }

  /// Ends every rank of the job without waiting for any of them: for a rank whose peers would otherwise wait
  /// for it for ever. Does not return where the backend ends processes (mpi); the local backend makes every
  /// other rank's next wait() throw Error{kPeerLost} with this text.
  virtual void abort(std::string_view why) noexcept = 0;
};

}  // namespace commtune
