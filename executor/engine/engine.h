#pragma once
// Runs a plan: a compute side says "the gradients of layer i exist" and asks "are the gradients of layer i
// back?"; a communication thread of its own walks the plan. Starts, orders and ends messages exactly as
// perfmodel/plan.h says and perfmodel/simulate/simulate.h predicts.
//
// Threads: the constructor's caller is the compute side and calls everything below. The engine owns one more
// thread, which alone uses the communicator from the constructor's end to the destructor.

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
#include "executor/roads/parameter_server/parameter_server.h"
#include "executor/roads/road.h"
#include "executor/transport/communicator.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune {

struct EngineOptions {
  RoadSettings road;      ///< workers, type and result are taken from the plan and profile by make_settings()
  Seconds timeout{60.0};  ///< longest time that one message may be under way
  std::size_t served_limit = 0;  ///< messages that a server in this process keeps a record of
};

/// Settings of a plan's road.
RoadSettings make_settings(const Plan& plan, const Profile& profile, Result result, Bytes chunk);

/// A message's way through one iteration.
struct MessageTimes {
  Clock::time_point queued;  ///< its last gradient exists (and its Release allows it)
  Clock::time_point started;
  Clock::time_point reduced;       ///< this rank has ended the reduce stage
  Clock::time_point distributing;  ///< the distribute stage began: when reduced, or later in a decoupled plan
  Clock::time_point distributed;   ///< summed and back
  Clock::time_point used;          ///< the forward pass asked for it
};

class Engine {
 public:
  /// plan       satisfies check(plan, profile); equal on all ranks
  /// gradients  one per tensor of the profile; none on a dedicated server
  Engine(Communicator& communicator, const Plan& plan, const Profile& profile, const Gradients& gradients,
         const EngineOptions& options);
  /// Ends the communication thread, whatever is under way.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Before the backward pass; every gradient of the iteration before has been waited for.
  void begin_iteration();
  /// True if this layer's gradients release a message. Only then must gradient_ready() be called on time.
  bool releases(std::size_t layer) const { return wakes_[layer]; }
  /// The gradients of `layer` exist, in the memory given to the constructor. Called for every layer, from the
  /// last to the first. From here until wait_for(layer) returns, that memory is the engine's.
  void gradient_ready(std::size_t layer);
  /// Whether what the plan's barrier asks for before the forward pass of `layer` is back.
  bool is_back(std::size_t layer) const;
  /// Before the forward pass of `layer`, which asks for it at the given moment: comes back when is_back().
  /// Returns whether it had to wait. Rethrows what ended the communication thread.
  bool wait_for(std::size_t layer, Clock::time_point asked);
  /// After the last iteration, on every rank; a dedicated server calls nothing else. Comes back when this
  /// rank has no more part in anything.
  void finish();

  /// Of the iteration whose gradients have all been waited for; valid until begin_iteration().
  std::span<const MessageTimes> times();
  /// What a server in this process did, in order; after finish().
  std::vector<Served> served() const;
  /// Fusion buffers and receive blocks allocated so far.
  std::uint64_t buffer_bytes() const;
  /// Time that the communication thread copied between gradients and fusion buffers so far.
  std::chrono::nanoseconds copying() const;

 private:
  struct MessageState;

  /// Where this rank is one of the road's servers.
  void make_server(const ParameterServer& road, std::vector<std::size_t> message_bytes);
  bool wait_until_none(const std::atomic<std::int32_t>& left);
  const std::atomic<std::int32_t>& left_before(std::size_t layer) const {
    return plan_.barrier == Barrier::kFull ? all_left_ : left_[layer];
  }
  // On the communication thread:
  void communicate() noexcept;
  void run_until_finished();
  void take_new_gradients();
  void start_what_may();
  bool credit_allows() const;
  std::uint64_t sent(const MessageState& message) const;
  std::uint64_t left_to_send(const MessageState& message) const;
  void start(const NextStep& step);
  Task run_both(MessageState& message);
  Task run_reduce(MessageState& message);
  Task run_distribute(MessageState& message);
  Task on_road(MessageState& message);
  /// What a worker has to say before it leaves; not valid() where nobody waits for it.
  Task leave_road();
  RoadMessage road_message(MessageState& message);
  void give_back_credit(MessageState& message);
  void step_ended(MessageState& message);
  void hand_back(MessageState& message);
  void reap();
  /// Throws Error{kTimeout} naming whom, where something has been under way for too long.
  void watch(Clock::time_point now);
  void watch_server(Clock::time_point now) const;
  void watch_message(Clock::time_point now, const MessageState& message) const;
  void fail() noexcept;

  Communicator& communicator_;
  const Plan plan_;
  const EngineOptions options_;
  const HostLayout hosts_;
  const std::size_t layers_;
  std::vector<std::string> tensor_names_;

  // Compute side's own.
  std::uint64_t iteration_ = 0;
  std::vector<Clock::time_point> layer_ready_, layer_used_;
  std::vector<bool> wakes_;               // by layer: it releases some message
  std::vector<std::int32_t> layer_left_;  // what left_ is at the start of an iteration

  // Between the two threads.
  std::atomic<std::uint64_t> ready_{0};          // iteration * (layers + 1) + layers that are ready
  std::vector<std::atomic<std::int32_t>> left_;  // by layer: messages not back yet; negative: failed
  std::atomic<std::int32_t> all_left_{0};        // the same over all messages
  std::atomic<bool> finishing_{false}, stopping_{false}, failed_{false};
  std::exception_ptr failure_;       // written before failed_ is set
  std::vector<MessageTimes> times_;  // by message; whose turn it is, left_ says
  std::atomic<std::uint64_t> buffer_bytes_{0};
  std::atomic<std::chrono::nanoseconds> copying_{std::chrono::nanoseconds{0}};

  // Communication thread's own.
  Scratch scratch_;
  FusionPool fusion_;
  std::vector<std::unique_ptr<MessageState>> messages_;
  StepOrder step_order_;
  std::unique_ptr<Server> server_;
  std::uint64_t iteration_seen_ = 0;
  std::uint64_t credited_bytes_ = 0;          // of steps that the credit counts
  std::size_t credited_ = 0, under_way_ = 0;  // such steps; all steps
  std::vector<MessageState*> active_;         // those with a task
  Clock::time_point next_watch_{};

  std::thread thread_;  // joined by finish() or the destructor
};

}  // namespace commtune
