// A library that the product does not have: this folder, and a line in the registry's list. Its ranks are
// threads of one process; the last one to call does the work for all.

#include "tests/executor/collectives/toy/toy.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "executor/base/segment.h"
#include "executor/collectives/library_kind.h"
#include "executor/memory/reduce.h"

COMMTUNE_DECLARE_LIBRARY(toy)

namespace commtune::toy {
namespace {

enum class Which { kAllReduce, kReduceScatter, kAllGather };

/// Of the ranks of one job.
class Meeting {
 public:
  explicit Meeting(int ranks) : ends_(static_cast<std::size_t>(ranks)) {}

  bool full() const { return joined_ == ends_.size(); }
  void join(int rank, Transport& transport) {
    const std::lock_guard lock(mutex_);
    ends_[static_cast<std::size_t>(rank)].transport = &transport;
    ++joined_;
  }
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    ends_[static_cast<std::size_t>(rank)].transport = nullptr;
  }

  CollectiveId start(int rank, Which which, DataType type, Buffer data) {
    const std::lock_guard lock(mutex_);
    const CollectiveId number = ends_[static_cast<std::size_t>(rank)].next++;
    std::vector<Buffer>& buffers = under_way_[number];
    buffers.resize(ends_.size());
    buffers[static_cast<std::size_t>(rank)] = data;
    const auto given =
        std::count_if(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.bytes > 0; });
    if (static_cast<std::size_t>(given) < ends_.size()) return number;
    work(which, type, buffers);
    under_way_.erase(number);
    ++collectives;
    for (End& end : ends_) {
      end.ended.push_back(number);
      if (end.transport != nullptr) end.transport->wake();
    }
    return number;
  }

  std::vector<CollectiveId> ended(int rank) {
    const std::lock_guard lock(mutex_);
    return std::exchange(ends_[static_cast<std::size_t>(rank)].ended, {});
  }

 private:
  struct End {
    Transport* transport = nullptr;
    CollectiveId next = 0;
    std::vector<CollectiveId> ended;
  };

  static void work(Which which, DataType type, const std::vector<Buffer>& buffers) {
    const auto part = [&](std::size_t rank) {
      return segment(buffers.front().bytes, element_size(type).count, static_cast<int>(buffers.size()),
                     static_cast<int>(rank));
    };
    std::vector<std::byte> result(buffers.front().bytes);
    for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
      const std::span<std::byte> bytes = buffers[rank].host();
      if (which == Which::kAllGather) {
        const auto own = bytes.subspan(part(rank).offset, part(rank).length);
        std::copy(own.begin(), own.end(), result.begin() + static_cast<std::ptrdiff_t>(part(rank).offset));
      } else if (rank == 0) {
        std::copy(bytes.begin(), bytes.end(), result.begin());
      } else {
        add(type, result, bytes);
      }
    }
    for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
      const std::span<std::byte> bytes = buffers[rank].host();
      const Range range = which == Which::kReduceScatter ? part(rank) : Range{0, bytes.size()};
      // What a first stage leaves in the other parts is undefined: nobody may count on it.
      if (which == Which::kReduceScatter) std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
      std::copy_n(result.begin() + static_cast<std::ptrdiff_t>(range.offset), range.length,
                  bytes.begin() + static_cast<std::ptrdiff_t>(range.offset));
    }
  }

  std::mutex mutex_;  // guards what follows
  std::vector<End> ends_;
  std::size_t joined_ = 0;
  std::map<CollectiveId, std::vector<Buffer>> under_way_;
};

/// Ranks that call it while it is not full are of the same job: tests run one at a time.
std::shared_ptr<Meeting> meet(int ranks, Transport& transport) {
  static std::mutex mutex;
  static std::shared_ptr<Meeting> next;
  const std::lock_guard lock(mutex);
  if (!next || next->full()) next = std::make_shared<Meeting>(ranks);
  next->join(transport.peers().rank, transport);
  return next;
}

class ToyLibrary final : public CollectiveLibrary {
 public:
  ToyLibrary(Transport& transport, int ranks)
      : rank_(transport.peers().rank), meeting_(meet(ranks, transport)) {}
  ~ToyLibrary() override { meeting_->leave(rank_); }

  std::string_view name() const override { return kKind.name; }
  CollectiveId all_reduce(DataType type, Buffer data) override {
    return meeting_->start(rank_, Which::kAllReduce, type, data);
  }
  CollectiveId reduce_scatter(DataType type, Buffer data) override {
    return meeting_->start(rank_, Which::kReduceScatter, type, data);
  }
  CollectiveId all_gather(DataType type, Buffer data) override {
    return meeting_->start(rank_, Which::kAllGather, type, data);
  }
  std::span<const CollectiveId> ended() override {
    reported_ = meeting_->ended(rank_);
    return reported_;
  }

 private:
  const int rank_;
  const std::shared_ptr<Meeting> meeting_;  // by all ranks of the job
  std::vector<CollectiveId> reported_;
};

}  // namespace

std::optional<std::string> unusable(const Communicator& communicator) {
  if (communicator.rank() != rank_without) return std::nullopt;
  return "no toy on this host";
}

std::unique_ptr<CollectiveLibrary> make(const LibraryPlace& place, int ranks) {
  return std::make_unique<ToyLibrary>(place.communicator.transport(), ranks);
}

}  // namespace commtune::toy
