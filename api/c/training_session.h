#pragma once
// What is behind a commtune_session: the transport, the gradients' memory and the executor's session of one
// rank, which are made one after the other.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/memory/cuda/stream_notices.h"
#include "executor/memory/memory.h"
#include "executor/memory/pool.h"
#include "executor/session/session.h"
#include "executor/transport/bootstrap/bootstrap.h"
#include "executor/transport/transport_kind.h"
#include "perfmodel/plan.h"
#include "perfmodel/tensor_layout.h"

namespace commtune::api {

/// A call alone was wrong; the session goes on.
class BadCall : public Error {
 public:
  explicit BadCall(const std::string& what) : Error(ErrorCode::kBadInput, what) {}
};

struct TrainingOptions {
  std::string transport = "tcp";
  TransportOptions network;
  SessionOptions session;  ///< workers 0: all ranks
};

/// Threads: as Session's.
class TrainingSession {
 public:
  /// Collective: connects the ranks. Throws Error as make_transport() does.
  TrainingSession(std::shared_ptr<Bootstrap> bootstrap, TrainingOptions options);
  /// Tells the other ranks why, where the session ended by an error.
  ~TrainingSession();
  TrainingSession(const TrainingSession&) = delete;
  TrainingSession& operator=(const TrainingSession&) = delete;

  const Peers& peers() const { return transport_->peers(); }

  /// Collective, once.
  ///
  /// memory  one address a tensor on a rank that trains; empty: allocated here, the last tensor first
  /// gpu     whose memory that is, as make_gpu_memory() numbers them; nullopt: the host's
  void set_layout(TensorLayout layout, std::span<void* const> memory, std::optional<int> gpu = std::nullopt);
  /// nullptr: there is no layout, or this rank does not train.
  void* gradient(std::size_t tensor) const;
  const std::string& layout_digest() const { return layout_digest_; }
  const std::string& plan_digest() const { return plan_digest_; }
  const TensorLayout& layout() const;
  int workers() const { return options_.session.workers; }

  /// As Session's. Throws BadCall where rank 0 names no plan.
  void adopt(const std::optional<Plan>& plan);
  /// As Session's. Throws BadCall on another rank than 0, without a plan in force, before the one announced
  /// last is due, and in a session without SessionOptions::announced_plans.
  std::uint64_t announce(const Plan& plan);
  /// Why the plan that was announced last, and is due, was not adopted; empty: it was.
  std::string refusal() const;
  void begin();
  void ready(std::size_t tensor);
  /// The same once all that the GPU's stream was given so far has ended; failures are the next wait's to
  /// tell. Throws BadCall where gradients lie on the host.
  void ready_after(std::size_t tensor, void* stream);
  bool is_back(std::size_t tensor);
  /// 1 for each tensor that is, 0 for the others. Throws BadCall unless there is a place for each.
  void are_back(std::span<unsigned char> back);
  void wait(std::size_t tensor);
  void wait_all();
  void serve();
  void leave();
  /// As Session's.
  void look_for_lost(Seconds within);
  void abort(const std::string& why) noexcept;

  /// After the last wait of an iteration.
  std::span<const MessageTimes> message_times();
  Clock::time_point begun() const { return begun_; }
  std::uint64_t iterations() const { return session_ ? session_->iteration() : 0; }
  std::size_t messages() const;
  Seconds waited() const { return std::chrono::nanoseconds{waited_.load()}; }
  Seconds copied();

 private:
  Session& session();
  TensorId checked(std::size_t tensor) const;
  void wait_for(TensorRange tensors);
  /// Runs what may end the session, and remembers what ended it. After that every call throws it.
  void carry_out(const std::function<void(Session&)>& call);
  void remember(const Error& error);
  [[noreturn]] void end_by(const Error& error);
  void refuse_when_over() const;
  Buffer allocate(std::size_t bytes);
  Gradients gradients_in(const TensorLayout& layout, std::span<void* const> memory);

  TrainingOptions options_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Memory> gpu_memory_;   // where gradients lie on one
  std::unique_ptr<std::byte[]> memory_;  // of gradients that the caller did not bring
  std::optional<Allocation> on_gpu_;     // the same on a GPU
  Gradients gradients_;
  std::string layout_digest_, plan_digest_;
  std::unique_ptr<Session> session_;
  Clock::time_point begun_{};
  std::atomic<std::chrono::nanoseconds::rep> waited_{0};
  bool told_ = false;  // the others, or they left together

  std::atomic<bool> over_{false};
  mutable std::mutex mutex_;      // guards the one below
  std::optional<Error> failure_;  // the first

  std::unique_ptr<StreamNotices> notices_;  // of a GPU; last: its threads use the rest
};

}  // namespace commtune::api
