// Open MPI's choice of algorithms. Its requests are tested by its transport, which wakes up for what the
// library has to do.

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "executor/base/segment.h"
#include "executor/collectives/library_kind.h"
#include "executor/memory/pool.h"
#include "executor/memory/reduce.h"
#include "executor/transport/mpi/call.h"
#include "executor/transport/mpi/job.h"
#include "executor/transport/mpi/requests.h"
#include "perfmodel/base/error.h"

COMMTUNE_DECLARE_LIBRARY(openmpi)

namespace commtune::openmpi {
namespace {

using mpi::expect;

MPI_Datatype datatype_of(DataType type) { return type == DataType::kFloat32 ? MPI_FLOAT : MPI_UINT16_T; }

template <DataType type>
void add_operation(void* from, void* into, int* count, MPI_Datatype* /*unused*/) {
  const std::size_t bytes = static_cast<std::size_t>(*count) * element_size(type).count;
  add(type, {static_cast<std::byte*>(into), bytes}, {static_cast<const std::byte*>(from), bytes});
}

class OpenMpiLibrary final : public CollectiveLibrary {
 public:
  OpenMpiLibrary(mpi::Requests& requests, int rank, int ranks)
      : requests_(requests), rank_(rank), ranks_(ranks) {}
  ~OpenMpiLibrary() override;

  std::string_view name() const override { return kKind.name; }
  CollectiveId all_reduce(DataType type, Buffer data) override;
  CollectiveId reduce_scatter(DataType type, Buffer data) override;
  CollectiveId all_gather(DataType type, Buffer data) override;
  std::span<const CollectiveId> ended() override;

 private:
  /// A collective with a buffer of its own, from which its result is copied.
  struct Staged {
    Buffer block, result, into;
  };
  /// How the parts of all ranks lie in a buffer, in elements.
  struct Parts {
    std::vector<int> counts, places;
  };

  MPI_Comm communicator();
  MPI_Op operation(DataType type);
  Buffer host_only(Buffer data) const;
  /// Kept: the library reads it until the end of what was started.
  const Parts& parts_of(DataType type, std::size_t bytes);
  CollectiveId watch(MPI_Request request, const Staged& staged);
  void end(CollectiveId id);
  void started(int code, const char* call);

  mpi::Requests& requests_;
  const int rank_, ranks_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::array<MPI_Op, 2> half_operations_{MPI_OP_NULL, MPI_OP_NULL};
  BufferPool pool_;
  std::vector<Staged> staged_;                               // by id
  std::map<std::pair<DataType, std::size_t>, Parts> parts_;  // of buffers of that many bytes
  std::vector<CollectiveId> free_ids_, ended_, reported_;
};

OpenMpiLibrary::~OpenMpiLibrary() {
  // What is under way would have to end first, which takes peers that may be gone.
  if (requests_.forget(this)) requests_.job()->give_up();
  if (requests_.job()->given_up()) return;
  for (MPI_Op& op : half_operations_) {
    if (op != MPI_OP_NULL) MPI_Op_free(&op);
  }
  if (communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
}

/// Of the ranks that sum. Made when it is first needed, by all of them together.
MPI_Comm OpenMpiLibrary::communicator() {
  if (communicator_ != MPI_COMM_NULL) return communicator_;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group part = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  std::array<std::array<int, 3>, 1> range = {{{0, ranks_ - 1, 1}}};
  MPI_Group_range_incl(world, 1, reinterpret_cast<int(*)[3]>(range.data()), &part);
  const int code = MPI_Comm_create_group(MPI_COMM_WORLD, part, 0, &communicator_);
  MPI_Group_free(&part);
  MPI_Group_free(&world);
  started(code, "MPI_Comm_create_group");
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  return communicator_;
}

MPI_Op OpenMpiLibrary::operation(DataType type) {
  if (type == DataType::kFloat32) return MPI_SUM;
  MPI_Op& op = half_operations_[type == DataType::kFloat16 ? 0 : 1];
  if (op == MPI_OP_NULL) {
    MPI_Op_create(
        type == DataType::kFloat16 ? add_operation<DataType::kFloat16> : add_operation<DataType::kBfloat16>,
        1, &op);
  }
  return op;
}

Buffer OpenMpiLibrary::host_only(Buffer data) const {
  if (data.on_host()) return data;
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("library {}: sums in the host's memory, and these gradients lie on a device", name()));
}

const OpenMpiLibrary::Parts& OpenMpiLibrary::parts_of(DataType type, std::size_t bytes) {
  const auto [place, is_new] = parts_.try_emplace({type, bytes});
  Parts& parts = place->second;
  if (!is_new) return parts;
  const std::size_t element = element_size(type).count;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Range range = segment(bytes, element, ranks_, rank);
    parts.counts.push_back(static_cast<int>(range.length / element));
    parts.places.push_back(static_cast<int>(range.offset / element));
  }
  return parts;
}

CollectiveId OpenMpiLibrary::all_reduce(DataType type, Buffer data) {
  // In place the library always takes its binomial tree; with a buffer of its own it may take its ring.
  constexpr std::size_t kInPlaceUpTo = std::size_t{16} * 1024;
  std::byte* const memory = host_only(data).address;
  const MPI_Comm all = communicator();
  Staged staged;
  if (data.bytes > kInPlaceUpTo) {
    staged.block = staged.result = pool_.take(data.bytes);
    staged.into = data;
  }
  const bool in_place = staged.block.bytes == 0;
  const int count = static_cast<int>(data.bytes / element_size(type).count);
  MPI_Request request = MPI_REQUEST_NULL;
  started(MPI_Iallreduce(in_place ? MPI_IN_PLACE : memory, in_place ? memory : staged.block.address, count,
                         datatype_of(type), operation(type), all, &request),
          "MPI_Iallreduce");
  return watch(request, staged);
}

CollectiveId OpenMpiLibrary::reduce_scatter(DataType type, Buffer data) {
  std::byte* const memory = host_only(data).address;
  const MPI_Comm all = communicator();
  const Range own = segment(data.bytes, element_size(type).count, ranks_, rank_);
  Staged staged;
  staged.block = pool_.take(std::max<std::size_t>(own.length, 1));
  staged.result = staged.block.first(own.length);
  staged.into = data.part(own.offset, own.length);
  MPI_Request request = MPI_REQUEST_NULL;
  started(MPI_Ireduce_scatter(memory, staged.block.address, parts_of(type, data.bytes).counts.data(),
                              datatype_of(type), operation(type), all, &request),
          "MPI_Ireduce_scatter");
  return watch(request, staged);
}

CollectiveId OpenMpiLibrary::all_gather(DataType type, Buffer data) {
  std::byte* const memory = host_only(data).address;
  const MPI_Comm all = communicator();
  const Parts& parts = parts_of(type, data.bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  started(MPI_Iallgatherv(MPI_IN_PLACE, 0, datatype_of(type), memory, parts.counts.data(),
                          parts.places.data(), datatype_of(type), all, &request),
          "MPI_Iallgatherv");
  return watch(request, {});
}

void OpenMpiLibrary::started(int code, const char* call) {
  if (code != MPI_SUCCESS) requests_.job()->give_up();
  expect(code, call);
}

CollectiveId OpenMpiLibrary::watch(MPI_Request request, const Staged& staged) {
  if (free_ids_.empty()) {
    free_ids_.push_back(static_cast<CollectiveId>(staged_.size()));
    staged_.emplace_back();
  }
  const CollectiveId id = free_ids_.back();
  free_ids_.pop_back();
  staged_[id] = staged;
  requests_.watch(request, this, [this, id] { end(id); });
  return id;
}

void OpenMpiLibrary::end(CollectiveId id) {
  const Staged& staged = staged_[id];
  if (staged.block.bytes > 0) {
    if (staged.result.bytes > 0) std::memcpy(staged.into.address, staged.result.address, staged.result.bytes);
    pool_.give_back(staged.block);
  }
  ended_.push_back(id);
}

std::span<const CollectiveId> OpenMpiLibrary::ended() {
  reported_ = std::exchange(ended_, {});
  free_ids_.insert(free_ids_.end(), reported_.begin(), reported_.end());
  return reported_;
}

}  // namespace

std::optional<std::string> unusable(const Communicator& communicator) {
  if (!communicator.memory().on_host()) {
    return fmt::format("it sums in the host's memory, and these gradients lie on {}",
                       communicator.memory().name());
  }
  const Transport& transport = communicator.transport();
  if (dynamic_cast<const mpi::Requests*>(&transport) != nullptr) return std::nullopt;
  return fmt::format("it works beside transport mpi alone, and this one is {}", transport.name());
}

std::unique_ptr<CollectiveLibrary> make(const LibraryPlace& place, int ranks) {
  Transport& transport = place.communicator.transport();
  return std::make_unique<OpenMpiLibrary>(dynamic_cast<mpi::Requests&>(transport), transport.peers().rank,
                                          ranks);
}

}  // namespace commtune::openmpi
