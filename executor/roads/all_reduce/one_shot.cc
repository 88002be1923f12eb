#include "executor/roads/all_reduce/one_shot.h"

#include <algorithm>
#include <array>

#include "executor/roads/pipeline.h"

namespace commtune {
namespace {

/// One message's way through one rank.
class Swap {
 public:
  explicit Swap(const RoadMessage& message)
      : message_(message),
        rank_(message.communicator.rank()),
        workers_(message.settings.workers),
        chunk_bytes_(message.settings.chunk_for(message.data.bytes, 1)) {}

  std::size_t count() const { return chunks(message_.data.bytes, chunk_bytes_); }
  Buffer own(std::size_t index) const {
    return message_.part(chunk({0, message_.data.bytes}, chunk_bytes_, index));
  }

  /// To the next rank first, so that not all of them begin with the same receiver.
  void send(std::size_t index, Group& sends) const {
    for (int step = 1; step < workers_; ++step) {
      message_.communicator.send((rank_ + step) % workers_, tag(), own(index), sends);
    }
  }

  /// All ranks' chunk, in the order of ranks; this rank's own stays as it is.
  Task add_up(std::size_t index, Buffer sum) const {
    struct Incoming {
      Transfer transfer;
      Scratch::Block block;
    };
    Window<Incoming> window(std::clamp(workers_ - 1, 1, kMaxWindow));
    int posted = 0;
    const auto post = [&] {
      for (; !window.full() && posted < workers_; ++posted) {
        if (posted == rank_) continue;
        Incoming incoming{{}, message_.scratch.take()};
        incoming.transfer = message_.communicator.receive(posted, tag(), incoming.block.bytes(sum.bytes));
        window.push(std::move(incoming));
      }
    };
    const auto take = [&](int rank, ConstBuffer term) {
      return rank == 0 ? message_.copy(sum, term) : message_.add(sum, term);
    };
    for (int rank = 0; rank < workers_; ++rank) {
      post();
      if (rank == rank_) {
        co_await take(rank, own(index));
        continue;
      }
      const Incoming incoming = window.pop();
      co_await incoming.transfer;
      co_await take(rank, incoming.block.bytes(sum.bytes));
    }
  }

 private:
  Tag tag() const { return make_tag(TagSpace::kReduce, message_.number); }

  const RoadMessage& message_;
  const int rank_, workers_;
  const std::size_t chunk_bytes_;
};

}  // namespace

Task one_shot_all_reduce(RoadMessage message) {
  const Swap swap(message);
  std::array<Group, 2> sends;  // of this chunk and of the next
  if (swap.count() > 0) swap.send(0, sends[0]);
  for (std::size_t i = 0; i < swap.count(); ++i) {
    if (i + 1 < swap.count()) swap.send(i + 1, sends[(i + 1) % 2]);
    const Buffer own = swap.own(i);
    const Scratch::Block sum = message.scratch.take();
    co_await swap.add_up(i, sum.bytes(own.bytes));
    co_await sends[i % 2].empty();  // what is being sent must not change before it has left
    const Buffer whole = sum.bytes(own.bytes);
    co_await message.finish(whole);
    co_await message.copy(own, whole);
  }
  message.report(Stage::kReduce);
}

}  // namespace commtune
