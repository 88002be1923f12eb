// NCCL's collectives over gradients in a GPU's memory, whatever algorithm it takes.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "executor/collectives/library_kind.h"
#include "executor/collectives/nccl/functions.h"
#include "executor/collectives/nccl/lane.h"
#include "executor/collectives/nccl/told_tuning.h"
#include "executor/memory/cuda/completions.h"
#include "executor/memory/cuda/cuda_memory.h"
#include "executor/memory/pool.h"
#include "perfmodel/base/error.h"

COMMTUNE_DECLARE_LIBRARY(nccl)

namespace commtune::nccl {
namespace {

/// So many collectives may be under way at once; one communicator's run one after the other. With two, one's
/// latency passes while the other's bytes do.
constexpr int kLanes = 2;

class NcclLibrary final : public CollectiveLibrary {
 public:
  NcclLibrary(const LibraryPlace& place, const cuda::CudaMemory& memory, const std::vector<ncclUniqueId>& ids,
              int ranks);
  ~NcclLibrary() override;

  std::string_view name() const override { return kKind.name; }
  CollectiveId all_reduce(DataType type, Buffer data) override {
    Lane& lane = next_lane(data);
    lane.all_reduce(type, data);
    return ends_.add(lane.stream().handle());
  }
  CollectiveId reduce_scatter(DataType type, Buffer data) override {
    Lane& lane = next_lane(data);
    lane.reduce_scatter(type, data);
    return ends_.add(lane.stream().handle());
  }
  CollectiveId all_gather(DataType type, Buffer data) override {
    Lane& lane = next_lane(data);
    lane.all_gather(type, data);
    return ends_.add(lane.stream().handle());
  }
  std::span<const CollectiveId> ended() override;
  void give_up() noexcept override;

 private:
  /// The same on all ranks: they start the same collectives in the same order.
  Lane& next_lane(const Buffer& data);

  const cuda::CudaMemory& memory_;
  const Allocation some_;  // before the lanes: a GPU frees nothing while a collective is stuck
  std::deque<Lane> lanes_;
  std::size_t next_ = 0;
  cuda::Event asked_before_;  // of the memory
  cuda::Completions ends_;
};

NcclLibrary::NcclLibrary(const LibraryPlace& place, const cuda::CudaMemory& memory,
                         const std::vector<ncclUniqueId>& ids, int ranks)
    : memory_(memory), some_(place.communicator.memory(), sizeof(float), nullptr), ends_(memory.gpu()) {
  const NcclTuning tuning = nccl_tuning_named(place.options).value();
  const ToldTuning told(tuning);
  for (const ncclUniqueId& id : ids) {
    // One after the other: a rank that joined two at once could wait in the one for a rank that is in the
    // other.
    lanes_.emplace_back(id, place.communicator.rank(), ranks, static_cast<int>(tuning.channels));
    lanes_.back().connect(some_.buffer(), place.until);
  }
  Transport& transport = place.communicator.transport();
  ends_.wake_with([&transport] { transport.wake(); });
}

NcclLibrary::~NcclLibrary() {
  ends_.wake_with({});
  give_up();
  lanes_.clear();
}

void NcclLibrary::give_up() noexcept {
  cuda::driver().set_context(memory_.gpu().context());
  if (!ends_.any_under_way() && std::ranges::none_of(lanes_, &Lane::has_failed)) return;
  for (Lane& lane : lanes_) lane.abort();
}

Lane& NcclLibrary::next_lane(const Buffer& data) {
  if (data.device != memory_.device()) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("library {}: sums in the memory of {}, and this buffer lies elsewhere", name(),
                            memory_.name()));
  }
  memory_.gpu().current();
  Lane& lane = lanes_[next_++ % lanes_.size()];
  if (memory_.any_under_way()) {
    asked_before_.record(memory_.stream());
    asked_before_.hold(lane.stream());
  }
  return lane;
}

std::span<const CollectiveId> NcclLibrary::ended() {
  if (!ends_.any_under_way()) return {};
  memory_.gpu().current();
  const std::span<const CollectiveId> ids = ends_.ended();
  // Behind the ends: what NCCL gave up may end on its stream as if it were done.
  for (Lane& lane : lanes_) lane.check();
  return ids;
}

}  // namespace

std::optional<std::string> unusable(const Communicator& communicator) {
  if (communicator.memory().on_host())
    return "it sums in a GPU's memory, and these gradients lie on the host";
  if (dynamic_cast<const cuda::CudaMemory*>(&communicator.memory()) == nullptr)
    return fmt::format("it sums in a GPU's memory, and these gradients lie on {}",
                       communicator.memory().name());
  if (!loaded().why_not.empty()) return loaded().why_not;
  return std::nullopt;
}

std::unique_ptr<CollectiveLibrary> make(const LibraryPlace& place, int ranks) {
  const auto& memory = dynamic_cast<const cuda::CudaMemory&>(place.communicator.memory());
  memory.gpu().current();
  std::vector<ncclUniqueId> ids;
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool first = place.communicator.rank() == 0;
    ids.push_back(unique_id_of(place.broadcast(first ? make_unique_id() : std::string())));
  }
  if (place.communicator.rank() >= ranks) return nullptr;
  return std::make_unique<NcclLibrary>(place, memory, ids, ranks);
}

}  // namespace commtune::nccl
