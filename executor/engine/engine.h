#pragma once
// Runs a plan: a compute side says "gradient i exists" and asks "is gradient i back?", from any thread and in
// any order; a communication thread of its own walks the plan. Starts, orders and ends messages exactly as
// perfmodel/plan.h says and perfmodel/simulate/simulate.h predicts.
//
// Threads: ready(), is_back() and wait() may be called from any thread, at the same time too; everything else
// from one at a time. The engine owns one more thread, which alone uses the communicator from the
// constructor's end to the destructor.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/engine/message_buffer.h"
#include "executor/engine/step_order.h"
#include "executor/engine/tag_numbers.h"
#include "executor/roads/parameter_server/parameter_server.h"
#include "executor/roads/road.h"
#include "executor/transport/communicator.h"
#include "perfmodel/plan.h"
#include "perfmodel/tensor_layout.h"

namespace commtune {

struct EngineOptions {
  /// Workers, type and result are taken from the plan and layout by make_settings(), as of a plan that casts
  /// nothing.
  RoadSettings road;
  Seconds timeout{60.0};                 ///< longest time that one message may be under way
  std::size_t served_limit = 0;          ///< messages that a server in this process keeps a record of
  CollectiveLibrary* library = nullptr;  ///< of a plan that sums by one; outlives the engine
  /// Who waits has a barrier of its own: a tensor is back when its messages are, whatever the plan's barrier.
  bool own_barrier = false;
};

/// Settings of a plan's road over a transport of these traits.
RoadSettings make_settings(const Plan& plan, DataType type, Result result, const TransferTraits& traits);

/// A message's way through one iteration.
struct MessageTimes {
  Clock::time_point queued;  ///< its last gradient exists (and its Release allows it)
  Clock::time_point started;
  Clock::time_point reduced;       ///< this rank has ended the reduce stage
  Clock::time_point distributing;  ///< the distribute stage began: when reduced, or later in a decoupled plan
  Clock::time_point distributed;   ///< summed and back
  Clock::time_point used;          ///< the forward pass asked for it
};

/// What a rank did under a plan so far.
struct EngineCounts {
  /// Time that its communication thread copied or cast between gradients and fusion buffers.
  std::chrono::nanoseconds copying{0};
  std::uint64_t sent = 0;  ///< bytes of messages, but for what a library of collectives sent
  /// Of a plan that casts: elements whose sum came back infinite or as no number while this rank's own
  /// gradient was finite.
  std::uint64_t overflows = 0;
};

class Engine {
 public:
  /// plan       satisfies check(plan, layout); equal on all ranks
  /// gradients  one per tensor of the layout, on the host or in the communicator's memory; none on a
  ///            dedicated server
  Engine(Communicator& communicator, const Plan& plan, const TensorLayout& layout, const Gradients& gradients,
         const EngineOptions& options);
  /// Ends the communication thread, whatever is under way.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Before the first ready() of an iteration, with a happens-before to each of its calls.
  ///
  /// throws  Error{kBadInput} where a gradient of the iteration before is not back; what ended the
  /// communication thread
  void begin_iteration();
  /// These gradients exist, in the memory given to the constructor: the messages that waited for nothing else
  /// may start. Each tensor once an iteration. From here until wait() for it returns, its memory is the
  /// engine's.
  ///
  /// throws  Error{kBadInput} naming a tensor that was ready already
  void ready(TensorRange tensors);
  /// Whether what the barrier asks for before these tensors are used is back: all gradients, also for an
  /// empty range, or these.
  bool is_back(TensorRange tensors) const;
  /// Comes back when is_back().
  ///
  /// asked    when whoever uses the tensors wanted them
  /// returns  whether it had to wait
  /// throws   what ended the communication thread
  bool wait(TensorRange tensors, Clock::time_point asked);
  /// After the last iteration, on every rank; a dedicated server calls nothing else. Comes back when this
  /// rank has no more part in anything.
  void finish();

  /// Throws what ended the communication thread, if anything did.
  void rethrow_failure() const;
  /// Whether from now on the end of any peer ends the run, also of one that nothing is awaited from. Any
  /// thread.
  void watch_peers(bool all);

  /// By message, of the iteration whose gradients have all been waited for; valid until begin_iteration().
  /// Under a plan with pulls a message is back when the last of its bytes are.
  std::span<const MessageTimes> times();
  /// By pull, of a plan that has some: queued, started and reduced when they were asked for.
  std::span<const MessageTimes> pull_times();
  /// What a server in this process did, in order; after finish().
  std::vector<Served> served() const;
  /// Fusion buffers and receive blocks allocated so far.
  std::uint64_t buffer_bytes() const;
  /// As of the last message that is back; after finish(), in all.
  EngineCounts counts() const;

 private:
  struct MessageState;

  void make_messages(const Gradients& gradients, Result result);
  /// Where this rank is one of the road's servers.
  void make_server(const ParameterServer& road);
  void find_carriers();
  bool asks_for_all() const { return plan_.barrier == Barrier::kFull && !options_.own_barrier; }
  void check_all_back() const;
  void note_ready(TensorId tensor);
  /// One more tensor of the message exists, or the last: then it is handed to the communication thread.
  void release(std::uint32_t message);
  bool wait_until_none(const std::atomic<std::int32_t>& left);
  // On the communication thread:
  void communicate() noexcept;
  void end_tasks() noexcept;
  void run_until_finished();
  void take_released();
  void start_what_may();
  bool may_start(const NextStep& step) const;
  bool credit_allows(Bytes credit) const;
  std::uint64_t sent(const MessageState& message) const;
  std::uint64_t left_to_send(const MessageState& message) const;
  void start(const NextStep& step);
  Task run_both(MessageState& message);
  Task run_reduce(MessageState& message);
  Task run_distribute(MessageState& message);
  Task run_push(MessageState& message);
  Task run_pull(MessageState& pull);
  /// What brings gradients back: the pulls of a plan that has some, the messages of every other.
  const std::vector<std::unique_ptr<MessageState>>& bringing_back() const {
    return pulls_.empty() ? messages_ : pulls_;
  }
  bool is_pull(const NextStep& step) const { return !pulls_.empty() && step.stage == Stage::kDistribute; }
  Task on_road(MessageState& message);
  /// A library that sums in a memory in order starts behind what was asked of the memory before. Its
  /// collectives then start in the order of the messages, as they have to on all ranks, however long their
  /// gathering takes.
  bool library_follows_memory() const { return library_.has_value() && communicator_.memory().in_order(); }
  /// What a worker has to say before it leaves; not valid() where nobody waits for it.
  Task leave_road();
  RoadMessage road_message(MessageState& message);
  /// Those of a message or pull under way, each of which travels by a number of its own.
  std::vector<RoadMessage> stretches_of(MessageState& message);
  void give_back_credit(MessageState& message);
  void step_ended(MessageState& message);
  void hand_back(MessageState& message);
  void note_counts();
  void reap();
  /// Throws Error{kTimeout} naming whom, where something has been under way for too long.
  void watch(Clock::time_point now);
  void watch_server(Clock::time_point now) const;
  void watch_message(Clock::time_point now, const MessageState& message) const;
  void fail() noexcept;
  /// For the end of an error: of which message a tag is, with its tensors; empty where it is of none.
  std::string words_of(Tag tag) const;
  std::string words_of(const MessageState& message) const;

  Communicator& communicator_;
  const Plan plan_;
  const EngineOptions options_;
  const HostLayout hosts_;
  const TagNumbers numbers_;
  std::vector<std::string> tensor_names_;

  // Which messages carry which tensors; constant.
  std::vector<std::uint32_t> carriers_;     // numbers of messages, by tensor
  std::vector<std::size_t> first_carrier_;  // by tensor: where its messages begin in carriers_; and the end
  std::vector<std::int32_t> tensors_in_;    // by message
  std::vector<std::int32_t> carriers_of_;   // by tensor: how many messages
  std::vector<std::int32_t> back_by_;       // by tensor: how many messages, or pulls, bring it back

  // Between the threads of the compute side. An iteration's first values are set by begin_iteration().
  std::atomic<std::uint64_t> iteration_{0};
  std::vector<std::atomic<std::uint64_t>> ready_in_;  // by tensor: the last iteration in which it was ready
  std::vector<std::atomic<std::int32_t>> missing_;    // by message: its tensors that are not ready
  std::atomic<std::int32_t> all_missing_{0};          // tensors that are not ready
  std::atomic<std::size_t> next_place_{0};            // in released_
  std::vector<std::atomic<Clock::rep>> asked_;        // by tensor: when it was last waited for

  // Between them and the communication thread.
  std::vector<std::atomic<std::uint64_t>>
      released_;  // iteration << kMessageBits | message, in the order of release
  std::vector<std::atomic<std::int32_t>>
      left_;  // unless asks_for_all(), by tensor: messages not back; negative: failed
  std::atomic<std::int32_t> all_left_{0};  // if it does: the same over all messages
  std::atomic<bool> finishing_{false}, stopping_{false}, failed_{false}, watches_peers_{false};
  std::exception_ptr failure_;       // written before failed_ is set
  std::vector<MessageTimes> times_;  // by message, then by pull; whose turn it is, released_ and left_ say
  std::atomic<std::uint64_t> buffer_bytes_{0};
  std::atomic<std::chrono::nanoseconds> copying_{std::chrono::nanoseconds{0}};
  std::atomic<std::uint64_t> sent_{0}, overflows_{0};
  const std::uint64_t sent_before_;  // by the communicator

  // Communication thread's own.
  std::vector<Registration> registrations_;  // of the gradients
  Scratch scratch_;
  FusionPool fusion_;
  std::optional<LibraryQueue> library_;
  std::vector<std::unique_ptr<MessageState>> messages_, pulls_;
  StepOrder step_order_;
  std::unique_ptr<Server> server_;
  std::vector<Served> served_;  // by the server, once its work has ended
  std::uint64_t iteration_seen_ = 0;
  std::size_t taken_ = 0;                     // of that iteration's released_
  std::uint64_t credited_bytes_ = 0;          // of steps that the credit counts
  std::size_t credited_ = 0, under_way_ = 0;  // such steps; all steps
  std::vector<MessageState*> active_;         // those with a task
  Clock::time_point next_watch_{};

  std::thread thread_;  // joined by finish() or the destructor
};

}  // namespace commtune
