#pragma once
// What trains in a session: layers that take the time of a profile's, and gradients that are compared with
// what every rank put in.

#include <cstdint>
#include <memory>
#include <span>

#include "executor/engine/message_buffer.h"
#include "executor/session/layer_times.h"
#include "executor/session/session.h"
#include "perfmodel/device_kind.h"

namespace commtune {

/// What a timed iteration compares.
enum class Compare {
  kEverything,  ///< gradients are written in full before the iteration and compared in full after it
  kSpots,       ///< a few elements of every tensor, written before its gradient exists
};

class SessionWorkload {
 public:
  virtual ~SessionWorkload() = default;
  SessionWorkload() = default;
  SessionWorkload(const SessionWorkload&) = delete;
  SessionWorkload& operator=(const SessionWorkload&) = delete;

  /// Memory of the gradients, for the session: side by side, the last tensor first.
  virtual const Gradients& gradients() const = 0;
  virtual std::uint64_t gradient_bytes() const = 0;

  /// The session has adopted this plan: which layers have to end on time is its business. Where it divides
  /// before it casts, gradients are that many times the pattern, so that what is summed are whole numbers and
  /// exact in every type; the result is the sum of the patterns.
  virtual void follow(const Plan& plan) = 0;

  /// Runs backward from the last layer to the first, then updates each layer and runs it forward, with the
  /// barrier of the session's plan.
  /// throws  Error{kConflict} naming tensor, element and values if a result differs from the reference; what
  ///         ended the session's engine
  virtual IterationTimes iterate(Session& session, Compare compare) = 0;

  virtual std::span<const LayerTimes> layers() const = 0;
  virtual std::uint64_t tensors_compared() const = 0;
  virtual std::uint64_t spots_compared() const = 0;
};

}  // namespace commtune
