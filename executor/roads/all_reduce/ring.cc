#include "executor/roads/all_reduce/ring.h"

#include "executor/roads/pipeline.h"

namespace commtune {
namespace {

/// Position in the sequence of chunks that a rank takes from its left neighbour, step by step.
class Cursor {
 public:
  Cursor(const RoadMessage& message, const Circle& circle, int first_step, int end_step)
      : workers_(circle.size),
        rank_(circle.own),
        bytes_(message.data.bytes),
        element_(element_size(message.settings.type).count),
        chunk_bytes_(message.settings.chunk_for(bytes_, workers_)),
        step_(first_step),
        end_(end_step) {
    skip_empty();
  }

  bool done() const { return step_ == end_; }
  int step() const { return step_; }
  Range range() const { return chunk(incoming(), chunk_bytes_, index_); }
  void next() {
    ++index_;
    skip_empty();
  }

  /// The segment that this rank sends in `step`.
  Range outgoing(int step) const { return at(rank_ - step); }
  std::size_t chunk_bytes() const { return chunk_bytes_; }

 private:
  Range at(int segment_index) const {
    const int n = workers_;
    return segment(bytes_, element_, n, ((segment_index % n) + n) % n);
  }
  Range incoming() const { return at(rank_ - step_ - 1); }
  void skip_empty() {
    while (step_ < end_ && index_ >= chunks(incoming().length, chunk_bytes_)) {
      ++step_;
      index_ = 0;
    }
  }

  int workers_, rank_;
  std::size_t bytes_, element_, chunk_bytes_;
  int step_, end_;
  std::size_t index_ = 0;
};

struct Incoming {
  Transfer transfer;
  Scratch::Block block;  // only while reducing: distributed chunks land in place
  Range range;
  int step = 0;
  bool ends_reduce = false;  // the last one that is added to
};

/// Steps first..end-1 of the 2(N-1) steps: in step t rank r sends segment r-t and takes segment r-t-1, adding
/// to it while t < N-1 and replacing it after that.
Task run_steps(RoadMessage message, Circle circle, int first, int end, TagSpace space) {
  Communicator& communicator = message.communicator;
  const RoadSettings& settings = message.settings;
  if (circle.size == 1) {
    if (space == TagSpace::kReduce) co_await message.finish(message.data);
    co_return;
  }
  const int last_reduce = circle.size - 2;
  const Tag tag = make_tag(space, message.number);
  Group sends;
  Window<Incoming> window(settings.window);
  Cursor cursor(message, circle, first, end);

  const auto post = [&] {
    while (!window.full() && !cursor.done()) {
      Incoming incoming;
      incoming.range = cursor.range();
      incoming.step = cursor.step();
      const bool adds = incoming.step <= last_reduce;
      if (adds) incoming.block = message.scratch.take();
      incoming.transfer = communicator.receive(
          circle.left, tag,
          adds ? incoming.block.bytes(incoming.range.length) : message.part(incoming.range));
      cursor.next();
      incoming.ends_reduce = adds && (cursor.done() || cursor.step() > last_reduce);
      window.push(std::move(incoming));
    }
  };

  post();
  const Range own = cursor.outgoing(first);
  for (std::size_t i = 0; i < chunks(own.length, cursor.chunk_bytes()); ++i) {
    communicator.send(circle.right, tag, message.part(chunk(own, cursor.chunk_bytes(), i)), sends);
  }
  while (!window.empty()) {
    const Incoming incoming = window.pop();
    co_await incoming.transfer;
    const Buffer here = message.part(incoming.range);
    if (incoming.step <= last_reduce) {
      co_await message.add(here, incoming.block.bytes(here.bytes));
      if (incoming.step == last_reduce) co_await message.finish(here);
    }
    if (incoming.ends_reduce) message.report(Stage::kReduce);
    if (incoming.step + 1 < end) communicator.send(circle.right, tag, here, sends);
    post();
  }
  co_await sends.empty();
}

}  // namespace

Circle circle_of(const RoadMessage& message) {
  const int n = message.settings.workers;
  const int rank = message.communicator.rank();
  return {n, rank, (rank + n - 1) % n, (rank + 1) % n};
}

Task ring_all_reduce(RoadMessage message, Circle circle) {
  return run_steps(message, circle, 0, 2 * (circle.size - 1), TagSpace::kReduce);
}

Task ring_reduce_scatter(RoadMessage message, Circle circle) {
  return run_steps(message, circle, 0, circle.size - 1, TagSpace::kReduce);
}

Task ring_all_gather(RoadMessage message, Circle circle) {
  return run_steps(message, circle, circle.size - 1, 2 * (circle.size - 1), TagSpace::kDistribute);
}

Task ring_all_reduce(RoadMessage message) {
  co_await ring_all_reduce(message, circle_of(message));
  message.report(Stage::kDistribute);
}

Task ring_reduce_scatter(RoadMessage message) { return ring_reduce_scatter(message, circle_of(message)); }

Task ring_all_gather(RoadMessage message) {
  co_await ring_all_gather(message, circle_of(message));
  message.report(Stage::kDistribute);
}

}  // namespace commtune
