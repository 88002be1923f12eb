#pragma once
// What coroutines on the communication thread await: transfers over a Transport, and operations on the memory
// that travels.

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "executor/base/slot_table.h"
#include "executor/base/task.h"
#include "executor/memory/memory_queue.h"
#include "executor/memory/pool.h"
#include "executor/transport/transport.h"

namespace commtune {

class Communicator;

/// Of control messages that come when their sender has something to say, be it never: what waits for one says
/// nothing of who is late, so that oldest() leaves it out.
inline constexpr Tag kStandingTag = make_tag(TagSpace::kControl, 5);

/// One transfer that was started; co_await it to go on after it has ended, which yields its Completion. Must
/// be awaited (at any later time) or belong to a Group; movable.
class [[nodiscard]] Transfer {
 public:
  Transfer() = default;
  bool await_ready() const noexcept;
  void await_suspend(std::coroutine_handle<> awaiting) const noexcept;
  Completion await_resume() const noexcept;

 private:
  friend class Communicator;
  Transfer(Communicator* communicator, std::uint32_t slot) : communicator_(communicator), slot_(slot) {}
  Communicator* communicator_ = nullptr;
  std::uint32_t slot_ = 0;
};

/// Transfers whose end matters only together, usually sends: `co_await group.empty()`. Must outlive them.
class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int pending() const { return pending_; }
  /// Counts something that is no transfer, until release(), which may resume whoever waits.
  void hold() { ++pending_; }
  void release() {
    if (--pending_ == 0 && waiter_) std::exchange(waiter_, {}).resume();
  }
  auto empty() {
    struct Awaiter {
      Group& group;
      bool await_ready() const noexcept { return group.pending_ == 0; }
      void await_suspend(std::coroutine_handle<> awaiting) const noexcept { group.waiter_ = awaiting; }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this};
  }

 private:
  friend class Communicator;
  int pending_ = 0;
  std::coroutine_handle<> waiter_;
};

/// A transfer that has not ended, for messages about what a rank waits for.
struct Pending {
  int peer = 0;
  Tag tag = 0;
  bool receive = false;
  Clock::time_point started;
};

/// Something beside the transport that coroutines wait for. What ends there makes the transport's wait()
/// return.
class ProgressSource {
 public:
  virtual ~ProgressSource() = default;
  ProgressSource() = default;
  ProgressSource(const ProgressSource&) = delete;
  ProgressSource& operator=(const ProgressSource&) = delete;

  /// Adds to `resumable` who awaited what has ended. Never blocks.
  virtual void progress(std::vector<std::coroutine_handle<>>& resumable) = 0;
};

/// In which order messages use a link that is busy. The smaller number goes first; by message number.
struct Urgency {
  std::vector<std::uint32_t> reduce, distribute;  ///< by tag space; empty: by the number itself
};

/// Sends to one peer beyond kPosted bytes wait here, the most urgent first, instead of in the transport,
/// which keeps the order in which they were started: otherwise the later steps of a message would queue
/// behind the first steps of all that were started after it.
///
/// Nothing waits for ever: a send that is more urgent than all that the transport has for its peer goes at
/// once. A library may end a large send only when its receive is there, and the peer may not post that before
/// the more urgent message has ended. Where all ranks start messages in the order of their urgency
/// (all-reduce roads), everything before the most urgent unfinished message has ended, so that all ranks
/// start it, post its receives in the order of its sends, and find none of these sends held back by less
/// urgent ones. With parameter servers every send has its receive posted: a server's take any message, and a
/// worker posts an answer's before its push.
///
/// Buffers lie on the host or in the communicator's memory. Where that is a device's, which transports cannot
/// reach, their bytes travel through blocks of the host's memory: a send is copied when it is started, a
/// receive when it has come, and has ended when the copy has. As much is kept in blocks as is under way.
///
/// All on one thread, the communication thread. Not movable: transfers point to it.
class Communicator final : public BufferRegistry {
 public:
  /// Both outlive it.
  explicit Communicator(Transport& transport, Memory& memory = host_memory());
  ~Communicator() override;

  /// What may be given to the transport for one peer at a time: enough to keep a link busy. Two sends always
  /// may, so that one's handshake passes while the other's bytes do.
  static constexpr std::size_t kPosted = std::size_t{64} * 1024;

  /// By peer: the part of a link that sends to it get (Transport::share_links), and of kPosted. Before the
  /// first transfer; 1 where it is not called.
  void set_shares(std::span<const double> shares);

  /// Before the first transfer it is for; also says how many messages sent() counts.
  void set_urgency(Urgency urgency);

  Transport& transport() const { return transport_; }
  const Peers& peers() const { return transport_.peers(); }
  int rank() const { return transport_.peers().rank; }
  int size() const { return transport_.peers().size(); }

  /// On the memory that roads receive into, add and hand back.
  MemoryQueue& operations() { return operations_; }
  Memory& memory() const { return memory_; }
  /// Tells the memory and the transport of a buffer that will travel until unregister_buffer().
  void register_buffer(const Buffer& buffer) override;
  void unregister_buffer(const Buffer& buffer) noexcept override;

  Transfer send(int to, Tag tag, ConstBuffer data);
  Transfer receive(int from, Tag tag, Buffer data);
  void send(int to, Tag tag, ConstBuffer data, Group& group);
  void receive(int from, Tag tag, Buffer data, Group& group);
  /// Asked by every progress() until it is removed; it outlives that.
  void add_source(ProgressSource& source) { sources_.push_back(&source); }
  void remove_source(ProgressSource& source) { std::erase(sources_, &source); }

  /// Waits once (Transport::wait) and resumes every coroutine whose transfer has ended. Returns how many
  /// transfers ended: none after wake() or at the deadline.
  std::size_t progress(Deadline until);

  /// Whether a peer has begun a message that this rank takes no part in yet (Transport::came_early).
  bool came_early(TagSpace space, std::uint32_t message) const {
    return transport_.came_early(space, message);
  }

  /// Bytes of this number's messages in a data tag space that have left so far, over all iterations.
  std::uint64_t sent(TagSpace space, std::uint32_t number) const;

  /// Of all messages in the data tag spaces.
  std::uint64_t sent() const { return all_sent_; }

  /// Starts `task` and makes progress until it is done, then rethrows what it threw.
  /// throws Error{kTimeout} naming peer and tag of what is waited for longest when the deadline passes.
  void run(Task task, Deadline until);

  /// The receive (or, without one, the send) that has been under way for longest; nullopt when none is.
  std::optional<Pending> oldest() const;
  /// The same among all streams of this message, in the data tag spaces (kReduce, kDistribute).
  std::optional<Pending> oldest(std::uint32_t number) const;

 private:
  friend class Transfer;
  enum class State : std::uint8_t { kFree, kPending, kDone };
  struct Staged;
  struct Slot {
    State state = State::kFree;
    bool receive = false;
    int peer = 0;
    Tag tag = 0;
    Clock::time_point started;
    Group* group = nullptr;
    std::coroutine_handle<> waiter;
    Completion completion;
    std::size_t bytes = 0;
    std::unique_ptr<Staged> staged;  // of a device's memory
  };
  /// A send that waits for its turn.
  struct Queued {
    std::uint32_t urgency = 0;
    std::uint64_t order = 0;  // of calls
    std::uint32_t slot = 0;
    std::span<const std::byte> data;
    bool operator<(const Queued& other) const {  // a heap keeps the largest on top: the most urgent
      return std::pair(urgency, order) > std::pair(other.urgency, other.order);
    }
  };
  struct Link {
    std::size_t limit = kPosted;
    std::size_t posted = 0;                // bytes
    std::vector<std::uint32_t> urgencies;  // of the sends that the transport has
    std::vector<Queued> queue;
    bool may_take(const Queued& next) const;
  };
  std::uint32_t open(int peer, Tag tag, bool receive, Group* group);
  std::uint32_t queue_send(int to, Tag tag, ConstBuffer data, Group* group);
  std::uint32_t start_receive(int from, Tag tag, Buffer data, Group* group);
  void post_sends(int to);
  std::span<const std::byte> stage_send(std::uint32_t slot, ConstBuffer data);
  std::span<std::byte> stage_receive(std::uint32_t slot, Buffer data);
  void land(std::uint32_t slot);
  void end(std::uint32_t slot);
  std::uint32_t urgency_of(Tag tag) const;
  void close(std::uint32_t slot) noexcept;
  void complete(const Completion& completion);
  void unpost(const Slot& slot);
  void count_sent(const Slot& slot);

  Transport& transport_;
  Memory& memory_;
  BufferPool stage_;       // blocks of the host's memory
  SlotTable<Slot> slots_;  // ids: TransferId
  std::vector<std::coroutine_handle<>> resumable_;
  std::vector<Link> links_;  // by peer
  Urgency urgency_;
  std::vector<std::uint64_t> sent_reduce_, sent_distribute_;  // bytes by message number
  std::uint64_t all_sent_ = 0;
  std::uint64_t sends_ = 0;
  std::vector<ProgressSource*> sources_;
  MemoryQueue operations_;  // last: nothing is copied any more when the rest goes
};

}  // namespace commtune
