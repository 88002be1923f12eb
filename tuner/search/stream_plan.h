#pragma once
// A plan as the joint search holds it: cheap to change, cheap to judge.
//
// All gradients laid end to end in the order in which they appear (the last tensor first) are one stream of
// bytes; every message is a stretch of it, which needs no fusion buffer. A stream plan is where the stretches
// end and in which order their steps go. Where a plan's messages are no such stretches it cannot be a stream
// plan; such plans enter the search as competitors only.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "perfmodel/plan.h"
#include "perfmodel/simulate/simulate.h"
#include "tuner/planning.h"
#include "tuner/search/nested_intervals.h"

namespace commtune::tuner {

/// A place between two bytes of the stream.
struct Cut {
  std::uint64_t at = 0;
  std::uint32_t last = 0;  ///< the tensor (in order of appearance) of the byte before
};

/// The stream of a job's gradients.
class GradientStream {
 public:
  explicit GradientStream(const Planning& job);

  std::uint64_t bytes() const { return ends_.back(); }
  std::uint64_t element() const { return element_; }
  std::size_t tensors() const { return ends_.size() - 1; }
  /// Where the i-th tensor to appear ends; 0 for i = 0 is the start of the stream.
  std::uint64_t end(std::size_t i) const { return ends_[i]; }
  /// Which tensor (from 0, in order of appearance) holds the byte at this place.
  std::size_t tensor_at(std::uint64_t place) const;
  Cut cut(std::uint64_t place) const;
  TensorId id(std::size_t i) const { return static_cast<TensorId>(tensors() - 1 - i); }
  /// Where a piece begins.
  std::uint64_t place_of(const Piece& piece) const {
    return ends_[tensors() - 1 - piece.tensor] + piece.offset.count;
  }
  std::uint32_t layer(std::size_t i) const { return layers_[i]; }
  /// Of plans for it: the job's own, else per layer.
  Barrier barrier() const { return barrier_; }

 private:
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> layers_;
  std::uint64_t element_ = 1;
  Barrier barrier_;
};

struct StreamPlan {
  std::vector<Cut> ends;    ///< where each message ends; rising, the last at the end of the stream
  std::vector<Step> steps;  ///< coupled: one (kReduce) per message, else both stages
  bool decoupled = false;
  /// Coupled, and with steps in the order of the stream: the lower a message's layer, the more urgent, and
  /// the more urgent overtakes. Else messages go in the order of their steps.
  bool by_layer = false;
  Bytes credit{};

  std::uint64_t begin(std::size_t message) const { return message == 0 ? 0 : ends[message - 1].at; }
  std::uint64_t end(std::size_t message) const { return ends[message].at; }
};

/// The blocks' schedule: left parts as they appear, then right parts as they are needed.
StreamPlan stream_plan_of(const std::vector<SearchUnit>& units, const std::vector<Block>& blocks,
                          const GradientStream& stream, bool decoupled);

/// The stream plan that becomes this plan's messages in its order; nothing where one of them is no stretch of
/// the stream, the order is not the list's, or what comes back is cut otherwise.
std::optional<StreamPlan> stream_plan_from(const Plan& plan, const GradientStream& stream);

/// Where in the order the steps of two messages go that become one.
enum class Place { kOfFirst, kOfSecond };
/// Makes a message and the next one in the stream one.
void merge(StreamPlan& stream_plan, std::size_t message, Place place);

/// The same messages, each whenever its layer is the most urgent (StreamPlan::by_layer).
void order_by_layer(StreamPlan& stream_plan);

/// For Simulator::run. Reuses the arrays of `flat`.
void flatten(const StreamPlan& stream_plan, const GradientStream& stream, FlatPlan& flat);

/// The plan, with the stream's barrier; whether a full one costs nothing is for the caller to find out.
Plan plan_of(const StreamPlan& stream_plan, const GradientStream& stream, const Planning& job,
             const Road& road);

}  // namespace commtune::tuner
