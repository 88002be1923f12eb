#include "tuner/search/stream_plan.h"

#include <algorithm>
#include <utility>

#include "tuner/messages.h"

namespace commtune::tuner {

GradientStream::GradientStream(const Planning& job)
    : ends_{0},
      element_(element_size(job.profile.type).count),
      barrier_(job.barrier.value_or(Barrier::kPerLayer)) {
  const std::vector<TensorRef>& tensors = job.work.tensors;
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    ends_.push_back(ends_.back() + tensor->bytes.count);
    layers_.push_back(tensor->layer);
  }
}

std::size_t GradientStream::tensor_at(std::uint64_t place) const {
  const auto after = std::upper_bound(ends_.begin() + 1, ends_.end(), place);
  return static_cast<std::size_t>(after - ends_.begin()) - 1;
}

Cut GradientStream::cut(std::uint64_t place) const {
  return {place, place > 0 ? static_cast<std::uint32_t>(tensor_at(place - 1)) : 0};
}

StreamPlan stream_plan_of(const std::vector<SearchUnit>& units, const std::vector<Block>& blocks,
                          const GradientStream& stream, bool decoupled) {
  StreamPlan stream_plan;
  stream_plan.decoupled = decoupled;
  stream_plan.credit = kUnlimited;
  std::uint64_t end = 0;
  for (const Block& block : blocks) {
    for (std::size_t i = 0; i < block.count; ++i) end += units[block.first + i].bytes;
    stream_plan.ends.push_back(stream.cut(end));
  }
  const auto place = [&](std::uint32_t message, bool reduce, bool distribute) {
    if (reduce) stream_plan.steps.push_back({message, Stage::kReduce});
    if (distribute && decoupled) stream_plan.steps.push_back({message, Stage::kDistribute});
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
  return stream_plan;
}

std::optional<StreamPlan> stream_plan_from(const Plan& plan, const GradientStream& stream) {
  if (plan.order != Order::kList || plan.release != Release::kGradient || !plan.pulls.empty()) return {};
  struct Stretch {
    std::uint64_t begin, end;
    std::uint32_t message;
  };
  std::vector<Stretch> stretches;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;  // of a message's pieces: begin, end
  for (const Message& message : plan.messages) {
    places.clear();
    for (const Piece& piece : message.pieces) {
      const std::uint64_t begin = stream.place_of(piece);
      places.emplace_back(begin, begin + piece.length.count);
    }
    std::sort(places.begin(), places.end());
    for (std::size_t i = 1; i < places.size(); ++i)
      if (places[i].first != places[i - 1].second) return {};
    if (places.empty()) return {};
    stretches.push_back(
        {places.front().first, places.back().second, static_cast<std::uint32_t>(stretches.size())});
  }
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  StreamPlan stream_plan;
  stream_plan.decoupled = !plan.sequence.empty();
  stream_plan.credit = plan.credit;
  std::vector<std::uint32_t> number(stretches.size());
  for (const Stretch& stretch : stretches) {
    number[stretch.message] = static_cast<std::uint32_t>(stream_plan.ends.size());
    stream_plan.ends.push_back(stream.cut(stretch.end));
  }
  if (stream_plan.decoupled) {
    for (const Step& step : plan.sequence) stream_plan.steps.push_back({number[step.message], step.stage});
  } else {
    for (const std::uint32_t message : number) stream_plan.steps.push_back({message, Stage::kReduce});
  }
  return stream_plan;
}

void merge(StreamPlan& stream_plan, std::size_t message, Place place) {
  stream_plan.ends.erase(stream_plan.ends.begin() + static_cast<std::ptrdiff_t>(message));
  const auto kept = static_cast<std::uint32_t>(message);
  const std::uint32_t gone = place == Place::kOfFirst ? kept + 1 : kept;
  std::erase_if(stream_plan.steps, [gone](const Step& step) { return step.message == gone; });
  for (Step& step : stream_plan.steps) {
    if (step.message > kept) --step.message;
  }
}

void order_by_layer(StreamPlan& stream_plan) {
  stream_plan.by_layer = true;
  stream_plan.decoupled = false;
  stream_plan.steps.clear();
  for (std::uint32_t message = 0; message < stream_plan.ends.size(); ++message)
    stream_plan.steps.push_back({message, Stage::kReduce});
}

void flatten(const StreamPlan& stream_plan, const GradientStream& stream, FlatPlan& flat) {
  flat.clear();
  flat.order = stream_plan.by_layer ? Order::kPriority : Order::kList;
  flat.release = Release::kGradient;
  flat.barrier = stream.barrier();
  flat.credit = stream_plan.credit.count;
  const auto add = [&](std::size_t message) {
    flat.add_message(stream_plan.end(message) - stream_plan.begin(message),
                     stream.layer(stream_plan.ends[message].last), false);
  };
  if (stream_plan.decoupled) {
    for (std::size_t message = 0; message < stream_plan.ends.size(); ++message) add(message);
    flat.sequence = stream_plan.steps;
  } else {
    for (const Step& step : stream_plan.steps) add(step.message);
  }
  if (stream_plan.by_layer) flat.rank_by_layer();
}

Plan plan_of(const StreamPlan& stream_plan, const GradientStream& stream, const Planning& job,
             const Road& road) {
  Plan plan = job.empty_plan(road);
  const auto message_of = [&](std::size_t index) {
    Message message;
    const std::uint64_t begin = stream_plan.begin(index), end = stream_plan.end(index);
    for (std::size_t i = stream.tensor_at(begin); i < stream.tensors() && stream.end(i) < end; ++i) {
      const std::uint64_t from = std::max(begin, stream.end(i)), until = std::min(end, stream.end(i + 1));
      message.pieces.push_back({stream.id(i), Bytes{from - stream.end(i)}, Bytes{until - from}});
    }
    return message;
  };
  if (stream_plan.decoupled) {
    for (std::size_t message = 0; message < stream_plan.ends.size(); ++message)
      plan.messages.push_back(message_of(message));
    plan.sequence = stream_plan.steps;
  } else {
    for (const Step& step : stream_plan.steps) plan.messages.push_back(message_of(step.message));
  }
  if (stream_plan.by_layer) plan.order = Order::kPriority;
  plan.priority = stream_plan.by_layer ? layer_priorities(plan.messages, job.work.tensors)
                                       : list_priorities(plan.messages.size());
  plan.barrier = stream.barrier();
  plan.credit = stream_plan.credit;
  return plan;
}

}  // namespace commtune::tuner
