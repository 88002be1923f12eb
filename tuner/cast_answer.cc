#include "tuner/cast_answer.h"

#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/cost/plan_cost.h"

namespace commtune::tuner {

namespace {

/// A plan for tensors of the wire's sizes, as one of the profile's.
void make_of(Plan& plan, const Profile& profile, WireFormat wire) {
  const std::uint64_t larger =
      element_size(profile.type).count / element_size(wire_type(wire, profile.type)).count;
  plan.wire = wire;
  plan.profile = digest(profile);
  plan.layout = layout_digest(profile);
  for (std::vector<Message>* messages : {&plan.messages, &plan.pulls}) {
    for (Message& message : *messages) {
      for (Piece& piece : message.pieces) {
        piece.offset = Bytes{larger * piece.offset.count};
        piece.length = Bytes{larger * piece.length.count};
      }
    }
  }
}

}  // namespace

Answer cast_answer(const Profile& profile, const Cluster& cluster, const TuneOptions& options) {
  if (!options.trials.runs.empty()) {
    throw Error(ErrorCode::kBadInput, "runs: plans that cast are not ranked by runs");
  }
  TuneOptions search = options;
  search.wire = WireFormat::kAsIs;
  Answer answer = tune(cast_to(profile, options.wire), cast_to(cluster, options.wire), search);
  answer.wire = options.wire;
  answer.bounds.clear();
  answer.bound = Seconds{0};
  answer.bound_low.reset();
  for (Entry& entry : answer.ranking) {
    make_of(entry.plan, profile, options.wire);
    entry.digest = digest(entry.plan);
    entry.bound = Seconds{0};
    entry.gap = 0;
  }
  return answer;
}

}  // namespace commtune::tuner
