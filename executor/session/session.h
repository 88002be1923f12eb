#pragma once
// A job's life on the network: ranks that a transport connects agree on what travels, adopt a plan, run
// iterations under it, may adopt another one between two iterations, and leave. Whoever computes drives it:
// the replay of a profile, or a training program.
//
//   Session session(*transport, layout, gradients, options);    // all ranks
//   session.adopt(plan);
//   for (...) {
//     session.begin_iteration();
//     session.ready(i);                                          // each tensor, any order, any thread
//     session.wait(i);                                           // before it is used
//   }
//   session.leave();
//
// adopt() is for ranks that know at which iteration they adopt what: a run of several plans. Where only rank
// 0 knows, and that any time, it announces a plan, and all ranks adopt it in the same begin_iteration().
//
// Ranks 0..workers-1 train. Those behind them are dedicated servers under plans that have some, otherwise
// idle: they call serve(), or adopt() and end_plan() as the others do. As many ranks as the plan with the
// most servers needs have to be there from the start.
//
// Threads: ready(), wait() and is_back() from any thread, several at once; everything else from one at a
// time, and not while one of those is under way.
//
// After anything but PlanRefused was thrown the session is over: abort() tells the other ranks why.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/engine/engine.h"
#include "executor/engine/message_buffer.h"
#include "executor/roads/road.h"
#include "executor/session/adoption.h"
#include "executor/session/adoption_notice.h"
#include "executor/session/exchange.h"
#include "executor/session/joint_library.h"
#include "executor/transport/communicator.h"
#include "perfmodel/base/error.h"
#include "perfmodel/plan.h"
#include "perfmodel/tensor_layout.h"

namespace commtune {

struct SessionOptions {
  Memory* memory = nullptr;  ///< that gradients lie in, which outlives the session; nullptr: the host's
  int workers = 1;           ///< ranks 0..workers-1 train, under every plan
  Result result = Result::kMean;
  Seconds timeout{60.0};  ///< longest wait for any one message, or for the ranks to agree
  Bytes chunk;            ///< longest transfer; 0: as the transport likes
  /// Rank 0 may announce() plans. Each worker then keeps a receive posted for that as long as a plan is in
  /// force, so that the session is over with leave() or abort() only, and not with the object alone.
  bool announced_plans = false;
  /// Whether a plan's own pace holds while it is in force; else the transport keeps the one that it was made
  /// with.
  bool at_the_plans_pace = false;
  bool own_barrier = false;  ///< EngineOptions::own_barrier, of this rank
  std::vector<Fact> facts;   ///< what else all ranks must have in common
  /// This rank's own objections to a plan, which it throws as an Error; may be empty. Called with plans that
  /// suit the layout.
  std::function<void(const Plan&)> accept;
};

/// A plan was not adopted, on no rank; every rank is told the same. What was in force before still is.
class PlanRefused : public Error {
 public:
  using Error::Error;
};

/// What this rank did under a plan.
struct PlanEnd {
  std::vector<Served> served;      ///< by a server in this process, in order
  std::uint64_t buffer_bytes = 0;  ///< fusion buffers and receive blocks
};

class Session {
 public:
  /// Collective.
  ///
  /// transport  connects the ranks; this session's alone until it is destroyed, and outlives it
  /// gradients  on a worker one per tensor of the layout, which stay allocated; elsewhere none
  /// throws     Error{kConflict} on every rank with the same text: the first fact that differs, and who has
  ///            what; Error{kBadInput} for gradients that are not the layout's
  Session(Transport& transport, TensorLayout layout, Gradients gradients, SessionOptions options);
  /// Ends whatever is under way, without a word to the others.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return communicator_.rank(); }
  bool trains() const { return rank() < options_.workers; }
  const Peers& peers() const { return communicator_.peers(); }
  const TensorLayout& layout() const { return layout_; }

  /// Collective: from the next iteration on, this plan is in force. The ranks end the one before first, so
  /// that none of its messages is under way; no iteration is lost, and none is run twice.
  ///
  /// plan     on rank 0, what all ranks adopt, or nothing: the session ends. On other ranks the same, which
  ///          is compared, or nothing: whatever rank 0 says
  /// returns  false: the session ends, no plan is in force
  /// throws   PlanRefused where any rank refuses it: it does not suit the layout, needs other workers or more
  ///          ranks than there are, is not what a rank was handed, or ranks are not at the same iteration;
  ///          Error{kTimeout}, Error{kPeerLost}. A rank that does not train waits without a limit
  bool adopt(const std::optional<Plan>& plan);
  /// nullptr: none is in force.
  const Plan* plan() const { return plan_ ? &*plan_ : nullptr; }
  /// Of the plan that is in force.
  const RoadSettings& settings() const { return settings_; }
  /// The transport's, as far as the options do not say otherwise.
  TransferTraits traits() const;

  /// From the next adopt() on a server in this process keeps a record of what it did in so many iterations of
  /// a plan (PlanEnd::served); none before.
  void record_served(int iterations) { served_iterations_ = static_cast<std::size_t>(iterations); }

  /// Where an announced plan is due, it is adopted first, as by adopt().
  ///
  /// returns  whether another plan is in force than in the iteration before; refusal() says why not
  /// throws   as Engine's and adopt(), but for PlanRefused, and on rank 0 Error{kTimeout} naming a worker
  /// that
  ///          did not hear of an announced plan in time
  bool begin_iteration();

  /// On rank 0, not during begin_iteration(): all workers adopt the plan before the iteration that is
  /// returned, a few from now; those in between go on under the plan that is in force, and none is lost.
  ///
  /// throws  PlanRefused where this rank refuses it by itself: nothing is announced then; Error{kBadInput} on
  ///         another rank, without a plan in force, before the one announced last is due, or in a session
  ///         without SessionOptions::announced_plans
  std::uint64_t announce(Plan plan);
  /// Why the plan that was announced last, and is due, was not adopted, on any rank; empty: it was.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  /// Iterations that began so far, under all plans.
  std::uint64_t iteration() const { return iteration_; }
  /// As Engine's.
  void ready(TensorRange tensors) { engine().ready(tensors); }
  void ready(TensorId tensor) { ready({tensor, tensor + 1}); }
  bool is_back(TensorRange tensors) { return engine().is_back(tensors); }
  bool is_back(TensorId tensor) { return is_back({tensor, tensor + 1}); }
  bool wait(TensorRange tensors, Clock::time_point asked) { return engine().wait(tensors, asked); }
  bool wait(TensorId tensor) { return wait({tensor, tensor + 1}, Clock::now()); }
  /// As Engine's.
  std::span<const MessageTimes> times() { return engine().times(); }
  std::span<const MessageTimes> pull_times() { return engine().pull_times(); }
  EngineCounts counts() { return engine().counts(); }

  /// Collective: no plan is in force, none of its messages is under way. A dedicated server comes back when
  /// every worker has called it.
  PlanEnd end_plan();
  /// While no plan is in force, for what ranks have to tell each other.
  Communicator& communicator() { return communicator_; }

  /// For a rank that does not train: serves under one plan after another, until rank 0 leaves.
  void serve();

  /// Collective: ends the plan and the session. Comes back when no rank needs this one any more.
  void leave();

  /// For who has heard elsewhere that a rank may be gone: for so long all of them are looked at, also those
  /// that nothing is awaited from.
  ///
  /// throws  what ended the run, such as Error{kPeerLost} naming a rank
  void look_for_lost(Seconds within);

  /// Ends every rank of the job; they are told why. No other call follows.
  void abort(std::string_view why) noexcept;

 private:
  Engine& engine() {
    if (!engine_) refuse_without_plan();
    return *engine_;
  }
  [[noreturn]] void refuse_without_plan() const;
  std::vector<Fact> facts();
  /// Names the first tensor that ranks do not have in common.
  void agree_on_layout();
  Deadline deadline() const;
  /// For what rank 0 says next: a rank that does not train may wait for it through whole plans.
  Deadline patience() const;
  const Plan* known(const std::string& digest) const;
  /// The announced plan, if this rank can follow it; otherwise `answer` says why not.
  std::optional<Plan> judged(const Announcement& announcement, const std::optional<Plan>& own,
                             AdoptionAnswer& answer);
  void check_plan(const Plan& plan) const;
  void start(Plan plan);
  void remember(const Plan& plan);
  /// Before any rank sends by it.
  void allow(const Plan& plan);
  bool adopt_announced();

  Communicator communicator_;
  const TensorLayout layout_;
  const Gradients gradients_;
  const SessionOptions options_;
  std::deque<std::pair<std::string, Plan>> known_;  // by digest, the last ones adopted: equal on all ranks
  MessageLimits limits_;
  std::optional<Plan> plan_;
  RoadSettings settings_;
  std::uint64_t iteration_ = 0;
  std::size_t served_iterations_ = 0;       // under one plan, that are recorded
  std::unique_ptr<AdoptionNotice> notice_;  // on workers, where plans may be announced
  std::optional<Plan> announced_;           // on rank 0
  std::optional<Refusal> refusal_;          // of the one announced last
  JointLibrary library_;                    // of the plan, where it sums by one
  std::unique_ptr<Engine> engine_;          // none on an idle rank; last: its thread uses what is above
};

}  // namespace commtune
