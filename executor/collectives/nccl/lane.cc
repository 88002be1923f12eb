#include "executor/collectives/nccl/lane.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "executor/collectives/nccl/functions.h"
#include "perfmodel/base/error.h"

namespace commtune::nccl {
namespace {

/// A call that was put off is under way within microseconds; one that connects ranks takes up to seconds.
constexpr std::chrono::microseconds kPoll{20};
/// A call that only puts something on a stream has done so by then: a sleep would last longer.
constexpr std::chrono::microseconds kUsual{300};
constexpr std::chrono::seconds kConnectLimit{60};
/// For what NCCL still sends to peers after this rank's last collective has ended.
constexpr std::chrono::seconds kGoodbye{5};

ncclDataType_t type_of(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return ncclFloat32;
    case DataType::kFloat16:
      return ncclFloat16;
    case DataType::kBfloat16:
      break;
  }
  return ncclBfloat16;
}

cudaStream_t stream_of(const cuda::Stream& stream) { return reinterpret_cast<cudaStream_t>(stream.handle()); }

[[noreturn]] void fail(ncclResult_t result, std::string_view call, ncclComm_t communicator) {
  const bool peer = result == ncclRemoteError || result == ncclSystemError;
  std::string words = words_of(result, communicator);
  if (words.find("Duplicate GPU") != std::string::npos)
    words += "; ranks that share a GPU each need an NCCL_HOSTID of their own";
  throw Error(peer ? ErrorCode::kPeerLost : ErrorCode::kUnavailable,
              fmt::format("NCCL {}, {}: {}", version_text(loaded().version), call, words));
}

}  // namespace

std::string make_unique_id() {
  ncclUniqueId id{};
  if (const ncclResult_t result = functions().unique_id(&id); result != ncclSuccess)
    fail(result, "ncclGetUniqueId", nullptr);
  return {id.internal, sizeof id.internal};
}

ncclUniqueId unique_id_of(const std::string& text) {
  ncclUniqueId id{};
  if (text.size() != sizeof id.internal) {
    throw Error(ErrorCode::kConflict,
                fmt::format("what rank 0 says of NCCL's communicator has {} B: must have {}", text.size(),
                            sizeof id.internal));
  }
  std::memcpy(id.internal, text.data(), text.size());
  return id;
}

Lane::Lane(const ncclUniqueId& id, int rank, int ranks, int channels) : rank_(rank), ranks_(ranks) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (channels > 0) config.minCTAs = config.maxCTAs = channels;
  const ncclResult_t result = functions().init(&communicator_, ranks, id, rank, &config);
  if (result != ncclSuccess && result != ncclInProgress)
    fail(result, "ncclCommInitRankConfig", communicator_);
}

Lane::~Lane() {
  if (communicator_ == nullptr) return;
  if (!given_up_) {
    ncclResult_t result = functions().finalize(communicator_);
    if (result == ncclInProgress) result = settled(Clock::now() + kGoodbye);
    if (result == ncclSuccess) {
      functions().destroy(communicator_);  // gone even where it says that something failed
      return;
    }
  }
  abort();
}

void Lane::abort() noexcept {
  if (communicator_ != nullptr) functions().abort(std::exchange(communicator_, nullptr));
}

ncclResult_t Lane::settled(Deadline until) {
  const Clock::time_point begin = Clock::now();
  ncclResult_t result = ncclInProgress;
  while (functions().async_error(communicator_, &result) == ncclSuccess && result == ncclInProgress) {
    const Clock::time_point now = Clock::now();
    if (now >= until) break;
    if (now - begin < kUsual) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPoll);
    }
  }
  return result;
}

void Lane::wait_until_connected(Deadline until) {
  const ncclResult_t result = settled(until);
  if (result == ncclSuccess) return;
  given_up_ = true;
  if (result == ncclInProgress) {
    throw Error(ErrorCode::kTimeout,
                fmt::format("NCCL {}: not all of {} ranks joined its communicator in time",
                            version_text(loaded().version), ranks_));
  }
  fail(result, "ncclCommInitRankConfig", communicator_);
}

void Lane::connect(const Buffer& some, Deadline until) {
  wait_until_connected(until);
  all_reduce(DataType::kFloat32, some);
  cuda::Event ended;
  ended.record(stream_);
  while (!ended.has_passed()) {
    check();
    if (Clock::now() >= until) {
      given_up_ = true;
      throw Error(ErrorCode::kTimeout,
                  fmt::format("NCCL {}: the first collective of {} ranks did not end in time",
                              version_text(loaded().version), ranks_));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

void Lane::started(ncclResult_t result, const char* call) {
  if (result == ncclInProgress) result = settled(Clock::now() + kConnectLimit);
  if (result == ncclSuccess) return;
  given_up_ = true;
  if (result == ncclInProgress) {
    throw Error(ErrorCode::kTimeout,
                fmt::format("NCCL {}, {}: not all of {} ranks connected in {} s",
                            version_text(loaded().version), call, ranks_, kConnectLimit.count()));
  }
  fail(result, call, communicator_);
}

void Lane::all_reduce(DataType type, Buffer data) {
  started(functions().all_reduce(data.address, data.address, data.bytes / element_size(type).count,
                                 type_of(type), ncclSum, communicator_, stream_of(stream_)),
          "ncclAllReduce");
}

/// Where parts are not of one length: a collective for each, all of them at once.
void Lane::group(const char* call, DataType type, Buffer data,
                 ncclResult_t (*each)(Lane& lane, ncclDataType_t type, std::byte* part, std::size_t count,
                                      int root)) {
  ncclResult_t result = functions().group_start();
  for (int root = 0; root < ranks_ && result == ncclSuccess; ++root) {
    const Range part = part_of(type, data, root);
    if (part.length == 0) continue;
    result =
        each(*this, type_of(type), data.address + part.offset, part.length / element_size(type).count, root);
    if (result == ncclInProgress) result = ncclSuccess;  // the group's end says it
  }
  const ncclResult_t ended = functions().group_end();
  started(result == ncclSuccess ? ended : result, call);
}

void Lane::reduce_scatter(DataType type, Buffer data) {
  if (divides(type, data)) {
    const Range own = part_of(type, data, rank_);
    started(functions().reduce_scatter(data.address, data.address + own.offset,
                                       own.length / element_size(type).count, type_of(type), ncclSum,
                                       communicator_, stream_of(stream_)),
            "ncclReduceScatter");
    return;
  }
  group("ncclReduce", type, data,
        [](Lane& lane, ncclDataType_t nccl_type, std::byte* part, std::size_t count, int root) {
          return functions().reduce(part, part, count, nccl_type, ncclSum, root, lane.communicator_,
                                    stream_of(lane.stream_));
        });
}

void Lane::all_gather(DataType type, Buffer data) {
  if (divides(type, data)) {
    const Range own = part_of(type, data, rank_);
    started(
        functions().all_gather(data.address + own.offset, data.address, own.length / element_size(type).count,
                               type_of(type), communicator_, stream_of(stream_)),
        "ncclAllGather");
    return;
  }
  group("ncclBroadcast", type, data,
        [](Lane& lane, ncclDataType_t nccl_type, std::byte* part, std::size_t count, int root) {
          return functions().broadcast(part, part, count, nccl_type, root, lane.communicator_,
                                       stream_of(lane.stream_));
        });
}

void Lane::check() {
  ncclResult_t result = ncclSuccess;
  functions().async_error(communicator_, &result);
  if (result == ncclSuccess || result == ncclInProgress) return;
  given_up_ = true;
  fail(result, "asynchronous error", communicator_);
}

}  // namespace commtune::nccl
