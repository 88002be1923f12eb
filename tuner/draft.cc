#include "tuner/draft.h"

#include <algorithm>

#include "tuner/messages.h"

namespace commtune::tuner {

Stream::Stream(const Planning& job) : ends_{0}, element_(element_size(job.profile.type).count) {
  const std::vector<TensorRef>& tensors = job.work.tensors;
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    ends_.push_back(ends_.back() + tensor->bytes.count);
    layers_.push_back(tensor->layer);
  }
}

std::size_t Stream::tensor_at(std::uint64_t place) const {
  const auto after = std::upper_bound(ends_.begin() + 1, ends_.end(), place);
  return static_cast<std::size_t>(after - ends_.begin()) - 1;
}

Cut Stream::cut(std::uint64_t place) const {
  const auto tensor = [&](std::uint64_t byte) { return static_cast<std::uint32_t>(tensor_at(byte)); };
  return {place, place > 0 ? tensor(place - 1) : 0, tensor(place)};
}

Draft draft_of(const std::vector<Atom>& atoms, const std::vector<Block>& blocks, const Stream& stream,
               bool decoupled) {
  Draft draft;
  draft.decoupled = decoupled;
  draft.credit = kUnlimited;
  std::uint64_t end = 0;
  for (const Block& block : blocks) {
    for (std::size_t i = 0; i < block.count; ++i) end += atoms[block.first + i].bytes;
    draft.ends.push_back(stream.cut(end));
  }
  const auto place = [&](std::uint32_t message, bool reduce, bool distribute) {
    if (reduce) draft.steps.push_back({message, Stage::kReduce});
    if (distribute && decoupled) draft.steps.push_back({message, Stage::kDistribute});
  };
  const auto count = static_cast<std::uint32_t>(blocks.size());
  for (std::uint32_t m = 0; m < count; ++m) {
    const Side side = blocks[m].side;
    place(m, side != Side::kRight, side == Side::kLeft);
  }
  for (std::uint32_t m = count; m-- > 0;) {
    const Side side = blocks[m].side;
    place(m, side == Side::kRight, side != Side::kLeft);
  }
  return draft;
}

void flatten(const Draft& draft, const Stream& stream, FlatPlan& flat) {
  flat.clear();
  flat.order = Order::kList;
  flat.release = Release::kGradient;
  flat.barrier = Barrier::kPerLayer;
  flat.credit = draft.credit.count;
  const auto add = [&](std::size_t message) {
    const Cut begin = message == 0 ? Cut{} : draft.ends[message - 1], end = draft.ends[message];
    flat.add_message(end.at - begin.at, stream.layer(end.below), begin.above != end.below);
  };
  if (draft.decoupled) {
    for (std::size_t message = 0; message < draft.ends.size(); ++message) add(message);
    flat.sequence = draft.steps;
  } else {
    for (const Step& step : draft.steps) add(step.message);
  }
}

Plan plan_of(const Draft& draft, const Stream& stream, const Planning& job, const Road& road) {
  Plan plan = job.empty_plan(road);
  const auto message_of = [&](std::size_t index) {
    Message message;
    const std::uint64_t begin = draft.begin(index), end = draft.end(index);
    for (std::size_t i = stream.tensor_at(begin); i < stream.tensors() && stream.end(i) < end; ++i) {
      const std::uint64_t from = std::max(begin, stream.end(i)), until = std::min(end, stream.end(i + 1));
      message.pieces.push_back({stream.id(i), Bytes{from - stream.end(i)}, Bytes{until - from}});
    }
    return message;
  };
  if (draft.decoupled) {
    for (std::size_t message = 0; message < draft.ends.size(); ++message)
      plan.messages.push_back(message_of(message));
    plan.sequence = draft.steps;
  } else {
    for (const Step& step : draft.steps) plan.messages.push_back(message_of(step.message));
  }
  plan.priority = list_priorities(plan.messages.size());
  plan.barrier = Barrier::kPerLayer;
  plan.credit = draft.credit;
  return plan;
}

}  // namespace commtune::tuner
