#include "tests/gpu/standin/nccl_comm.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "executor/base/segment.h"
#include "executor/memory/reduce.h"
#include "tests/gpu/standin/settings.h"

using commtune::DataType;
using commtune::standin::Mesh;
using commtune::standin::MeshBroken;
using commtune::standin::NcclCall;

namespace commtune::standin {

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclFloat32:
    case ncclInt32:
    case ncclUint32:
      return 4;
    default:
      return 0;
  }
}

namespace {

DataType gradient_type(ncclDataType_t type) {
  if (type == ncclFloat16) return DataType::kFloat16;
  return type == ncclBfloat16 ? DataType::kBfloat16 : DataType::kFloat32;
}

/// A part may be empty, and then nowhere.
void copy_bytes(void* into, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memmove(into, from, bytes);
}

std::byte* bytes(void* address) { return static_cast<std::byte*>(address); }
std::byte* bytes(const void* address) { return static_cast<std::byte*>(const_cast<void*>(address)); }

/// As of an all-reduce's ring: how many times its bytes pass a link.
double passes(NcclCall::What what, int ranks) {
  const double part = static_cast<double>(ranks - 1) / ranks;
  return what == NcclCall::What::kAllReduce ? 2 * part : part;
}

/// Of a collective, by NCCL's number.
int function_of(NcclCall::What what) {
  switch (what) {
    case NcclCall::What::kReduceScatter:
      return nccl_tuner::kReduceScatter;
    case NcclCall::What::kAllGather:
      return nccl_tuner::kAllGather;
    case NcclCall::What::kBroadcast:
      return nccl_tuner::kBroadcast;
    case NcclCall::What::kReduce:
      return nccl_tuner::kReduce;
    default:
      return nccl_tuner::kAllReduce;
  }
}

}  // namespace
}  // namespace commtune::standin

ncclComm::ncclComm(std::string name, int rank, int ranks, int device, std::uint32_t channels)
    : mesh_(std::move(name), rank, ranks),
      choice_(ranks, channels),
      device_(device),
      thread_([this] { serve(); }) {}

ncclComm::~ncclComm() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void ncclComm::wait_until_connected() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ != ncclInProgress; });
}

/// Of the whole buffer.
std::uint64_t ncclComm::bytes_of(const NcclCall& call) const {
  const bool parts = call.what == NcclCall::What::kReduceScatter || call.what == NcclCall::What::kAllGather;
  return call.count * commtune::standin::size_of(call.type) *
         (parts ? static_cast<std::uint64_t>(ranks()) : 1);
}

bool ncclComm::has(const NcclCall& call) const {
  if (call.what == NcclCall::What::kSend || call.what == NcclCall::What::kReceive) return true;
  return choice_.of(commtune::standin::function_of(call.what), bytes_of(call)).has_value();
}

commtune::NcclTuning ncclComm::tuning_of(const NcclCall& call) const {
  return choice_.of(commtune::standin::function_of(call.what), bytes_of(call)).value();
}

double ncclComm::expected_microseconds(const NcclCall& call) const {
  const double bytes = static_cast<double>(bytes_of(call)) * commtune::standin::passes(call.what, ranks());
  return commtune::standin::nccl_costs(tuning_of(call)).microseconds(bytes);
}

void ncclComm::abort() {
  aborted_ = true;
  mesh_.abort();
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void ncclComm::finalize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return (works_.empty() && idle_) || aborted_ || state_ != ncclSuccess; });
}

void ncclComm::put(std::vector<NcclCall> calls, CUstream stream) {
  auto work = std::make_shared<Work>();
  work->calls = std::move(calls);
  work->activity = stream->activity;
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(work);
    changed_.notify_all();
  }
  stream->works.put([work] {
    std::unique_lock lock(work->mutex);
    work->reached = true;
    work->changed.notify_all();
    work->changed.wait(lock, [&] { return work->done; });
  });
}

void ncclComm::serve() {
  ncclResult_t connected = ncclSuccess;
  try {
    mesh_.connect();
  } catch (const MeshBroken&) {
    connected = ncclSystemError;
  }
  {
    const std::lock_guard lock(mutex_);
    state_ = connected;
    changed_.notify_all();
  }
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !works_.empty(); });
    if (works_.empty()) return;
    const std::shared_ptr<Work> work = works_.front();
    works_.pop_front();
    idle_ = false;
    lock.unlock();
    do_work(*work);
    lock.lock();
    idle_ = true;
    changed_.notify_all();
  }
}

void ncclComm::do_work(Work& work) {
  {
    std::unique_lock lock(work.mutex);
    work.changed.wait(lock, [&] { return work.reached; });
  }
  ++work.activity->collectives;
  try {
    if (state_ != ncclSuccess) throw MeshBroken("broken before");
    do_transfers(work.calls);
    for (const NcclCall& call : work.calls) do_call(call, *work.activity);
  } catch (const MeshBroken&) {
    // As a kernel of NCCL's that waits for a peer: until somebody aborts.
    if (!aborted_ && state_ == ncclSuccess) state_ = ncclRemoteError;
    mesh_.wait_for_abort();
  }
  --work.activity->collectives;
  const std::lock_guard lock(work.mutex);
  work.done = true;
  work.changed.notify_all();
}

void ncclComm::do_transfers(const std::vector<NcclCall>& calls) {
  std::vector<Mesh::Bytes> sends;
  std::vector<Mesh::Bytes> receives;
  double sent = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const NcclCall& call : calls) {
    const std::size_t size = call.count * commtune::standin::size_of(call.type);
    if (call.what == NcclCall::What::kSend)
      sends.push_back({call.peer, commtune::standin::bytes(call.from), size});
    if (call.what == NcclCall::What::kReceive)
      receives.push_back({call.peer, commtune::standin::bytes(call.into), size});
    if (call.what == NcclCall::What::kSend) sent += static_cast<double>(size);
  }
  if (sends.empty() && receives.empty()) return;
  mesh_.exchange(std::move(sends), std::move(receives));
  commtune::standin::take_time(start, commtune::standin::setting("NCCL_ALPHA_US", 0), sent,
                               commtune::standin::setting("NCCL_BYTES_PER_S", 0));
}

/// Ranks that call different collectives would read each other's bytes wrongly: here that is an error.
void ncclComm::agree_on(const NcclCall& call) {
  struct Header {
    NcclCall::What what;
    std::uint32_t type, operation;
    std::int32_t root;
    std::uint64_t count;
    bool operator==(const Header&) const = default;
  };
  const Header own{call.what, static_cast<std::uint32_t>(call.type),
                   static_cast<std::uint32_t>(call.operation), call.peer, call.count};
  std::vector<Header> theirs(static_cast<std::size_t>(ranks()), own);
  std::vector<Mesh::Bytes> sends;
  std::vector<Mesh::Bytes> receives;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    sends.push_back({peer, commtune::standin::bytes(&own), sizeof own});
    receives.push_back({peer, commtune::standin::bytes(&theirs[static_cast<std::size_t>(peer)]), sizeof own});
  }
  mesh_.exchange(std::move(sends), std::move(receives));
  if (std::ranges::all_of(theirs, [&](const Header& each) { return each == own; })) return;
  state_ = ncclInvalidUsage;
  throw MeshBroken("ranks call different collectives");
}

void ncclComm::do_call(const NcclCall& call, const commtune::standin::Activity& activity) {
  using What = NcclCall::What;
  if (call.what == What::kSend || call.what == What::kReceive) return;
  const auto start = std::chrono::steady_clock::now();
  ++collectives_;
  const auto number = static_cast<double>(collectives_);
  if (number == commtune::standin::setting("NCCL_HANG_AT", 0)) mesh_.wait_for_abort();
  if (number == commtune::standin::setting("NCCL_FAIL_AT", 0)) {
    state_ = ncclInternalError;
    throw MeshBroken("asked to fail");
  }
  agree_on(call);
  const std::size_t element = commtune::standin::size_of(call.type);
  const auto n = static_cast<std::uint64_t>(ranks());
  const std::uint64_t bytes = call.count * element;
  if (call.what == What::kAllReduce) {
    if (call.into != call.from) commtune::standin::copy_bytes(call.into, call.from, bytes);
    std::vector<std::uint64_t> counts;
    counts.reserve(n);
    for (int part = 0; part < ranks(); ++part)
      counts.push_back(commtune::segment(bytes, element, ranks(), part).length / element);
    const auto own = commtune::segment(bytes, element, ranks(), rank());
    reduce_parts(call, commtune::standin::bytes(call.into) + own.offset, own.length / element);
    gather_parts(commtune::standin::bytes(call.into), counts, element);
  } else if (call.what == What::kReduceScatter) {
    reduce_parts(call, commtune::standin::bytes(call.into), call.count);
  } else if (call.what == What::kAllGather) {
    std::byte* const own = commtune::standin::bytes(call.into) + static_cast<std::size_t>(rank()) * bytes;
    if (own != call.from) commtune::standin::copy_bytes(own, call.from, bytes);
    gather_parts(commtune::standin::bytes(call.into), std::vector<std::uint64_t>(n, call.count), element);
  } else if (call.what == What::kBroadcast) {
    broadcast(call);
  } else {
    reduce(call);
  }
  const std::chrono::duration<double> moved = std::chrono::steady_clock::now() - start;
  commtune::standin::take_time_beside(expected_microseconds(call) * 1e-6 - moved.count(), activity.layers,
                                      commtune::standin::setting("CONTENTION", 0));
}

/// Sends every rank its part of what is summed, and sums its own, in the order of the ranks.
void ncclComm::reduce_parts(const NcclCall& call, std::byte* into, std::uint64_t count) {
  const std::size_t element = commtune::standin::size_of(call.type);
  const bool scattered = call.what == NcclCall::What::kReduceScatter;
  std::vector<std::vector<std::byte>> theirs(static_cast<std::size_t>(ranks()));
  std::vector<Mesh::Bytes> sends;
  std::vector<Mesh::Bytes> receives;
  std::byte* const from = commtune::standin::bytes(scattered ? call.from : call.into);
  for (int peer = 0; peer < ranks(); ++peer) {
    auto& part = theirs[static_cast<std::size_t>(peer)];
    part.resize(count * element);
    const std::size_t all = call.count * element * (scattered ? static_cast<std::size_t>(ranks()) : 1);
    const auto range = commtune::segment(all, element, ranks(), peer);
    if (peer == rank()) {
      commtune::standin::copy_bytes(part.data(), from + range.offset, part.size());
    } else {
      sends.push_back({peer, from + range.offset, range.length});
      receives.push_back({peer, part.data(), part.size()});
    }
  }
  mesh_.exchange(std::move(sends), std::move(receives));
  const DataType type = commtune::standin::gradient_type(call.type);
  for (int peer = 1; peer < ranks(); ++peer)
    commtune::add(type, theirs[0], theirs[static_cast<std::size_t>(peer)]);
  if (call.operation == ncclAvg) commtune::scale(type, theirs[0], 1.0F / static_cast<float>(ranks()));
  commtune::standin::copy_bytes(into, theirs[0].data(), count * element);
}

/// Every rank's part to all, in its place.
void ncclComm::gather_parts(std::byte* into, const std::vector<std::uint64_t>& counts, std::size_t element) {
  std::vector<Mesh::Bytes> sends;
  std::vector<Mesh::Bytes> receives;
  std::size_t own_offset = 0;
  for (int peer = 0; peer < rank(); ++peer) own_offset += counts[static_cast<std::size_t>(peer)] * element;
  const std::size_t own_bytes = counts[static_cast<std::size_t>(rank())] * element;
  std::size_t offset = 0;
  for (int peer = 0; peer < ranks(); ++peer) {
    const std::size_t size = counts[static_cast<std::size_t>(peer)] * element;
    if (peer != rank()) {
      sends.push_back({peer, into + own_offset, own_bytes});
      receives.push_back({peer, into + offset, size});
    }
    offset += size;
  }
  mesh_.exchange(std::move(sends), std::move(receives));
}

void ncclComm::broadcast(const NcclCall& call) {
  const std::size_t size = call.count * commtune::standin::size_of(call.type);
  std::vector<Mesh::Bytes> sends;
  std::vector<Mesh::Bytes> receives;
  if (rank() == call.peer) {
    if (call.into != call.from) commtune::standin::copy_bytes(call.into, call.from, size);
    for (int peer = 0; peer < ranks(); ++peer) {
      if (peer != rank()) sends.push_back({peer, commtune::standin::bytes(call.into), size});
    }
  } else {
    receives.push_back({call.peer, commtune::standin::bytes(call.into), size});
  }
  mesh_.exchange(std::move(sends), std::move(receives));
}

void ncclComm::reduce(const NcclCall& call) {
  const std::size_t size = call.count * commtune::standin::size_of(call.type);
  std::vector<std::vector<std::byte>> theirs(static_cast<std::size_t>(ranks()));
  std::vector<Mesh::Bytes> sends;
  std::vector<Mesh::Bytes> receives;
  if (rank() != call.peer) sends.push_back({call.peer, commtune::standin::bytes(call.from), size});
  for (int peer = 0; peer < ranks() && rank() == call.peer; ++peer) {
    auto& part = theirs[static_cast<std::size_t>(peer)];
    part.resize(size);
    if (peer == rank()) {
      commtune::standin::copy_bytes(part.data(), call.from, size);
    } else {
      receives.push_back({peer, part.data(), size});
    }
  }
  mesh_.exchange(std::move(sends), std::move(receives));
  if (rank() != call.peer) return;
  const DataType type = commtune::standin::gradient_type(call.type);
  for (int peer = 1; peer < ranks(); ++peer)
    commtune::add(type, theirs[0], theirs[static_cast<std::size_t>(peer)]);
  if (call.operation == ncclAvg) commtune::scale(type, theirs[0], 1.0F / static_cast<float>(ranks()));
  commtune::standin::copy_bytes(call.into, theirs[0].data(), size);
}
