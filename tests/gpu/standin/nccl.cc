// libnccl.so.2 of the stand-in: it really moves and sums bytes between processes, on the stand-in's streams.
// It says by its texts what it is, and refuses what it does not know.

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/gpu/standin/nccl_comm.h"
#include "tests/gpu/standin/settings.h"

using commtune::standin::NcclCall;

namespace {

/// Calls of this thread between ncclGroupStart() and ncclGroupEnd(), in their order.
struct Group {
  int depth = 0;
  struct Entry {
    ncclComm_t comm;
    CUstream stream;
    NcclCall call;
  };
  std::vector<Entry> entries;
};
thread_local Group g_group;

/// Sums are made of what gradients are; other types are only moved.
bool can_sum(ncclDataType_t type) {
  return type == ncclFloat32 || type == ncclFloat16 || type == ncclBfloat16;
}
bool sums(NcclCall::What what) {
  return what == NcclCall::What::kAllReduce || what == NcclCall::What::kReduceScatter ||
         what == NcclCall::What::kReduce;
}

CUstream stream_of(cudaStream_t stream) { return reinterpret_cast<CUstream>(stream); }

ncclResult_t put(ncclComm_t comm, cudaStream_t stream, const NcclCall& call) {
  if (comm == nullptr || stream == nullptr || commtune::standin::size_of(call.type) == 0)
    return ncclInvalidArgument;
  if (call.operation != ncclSum && call.operation != ncclAvg) return ncclInvalidArgument;
  if (sums(call.what) && !can_sum(call.type)) return ncclInvalidArgument;
  if (!comm->has(call)) return ncclInvalidUsage;
  if (comm->state() != ncclSuccess) return comm->state() == ncclInProgress ? ncclInvalidUsage : comm->state();
  if (g_group.depth > 0) {
    g_group.entries.push_back({comm, stream_of(stream), call});
  } else {
    comm->put({call}, stream_of(stream));
  }
  return ncclSuccess;
}

ncclResult_t connected(ncclComm_t comm, bool blocking) {
  if (!blocking) return ncclInProgress;
  comm->wait_until_connected();
  return comm->state();
}

int own_device() { return 0; }

}  // namespace

COMMTUNE_STANDIN_EXPORT ncclResult_t ncclGetVersion(int* version) {
  *version = static_cast<int>(commtune::standin::setting("NCCL_VERSION", NCCL_VERSION_CODE));
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error (stand-in)";
    case ncclSystemError:
      return "unhandled system error (stand-in)";
    case ncclInternalError:
      return "internal error (stand-in)";
    case ncclInvalidArgument:
      return "invalid argument (stand-in)";
    case ncclInvalidUsage:
      return "invalid usage (stand-in)";
    case ncclRemoteError:
      return "remote process exited or there was a network error (stand-in)";
    case ncclInProgress:
      return "NCCL operation in progress (stand-in)";
    default:
      return "unknown result (stand-in)";
  }
}
COMMTUNE_STANDIN_EXPORT const char* ncclGetLastError(ncclComm_t /*comm*/) { return ""; }

COMMTUNE_STANDIN_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  std::string name = "commtune-standin-nccl-";
  for (int i = 0; i < 4; ++i) name += std::to_string(random()) + ".";
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, name.data(), std::min(name.size(), sizeof id->internal - 1));
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id,
                                                            int rank, ncclConfig_t* config) {
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const bool limited = config != nullptr && config->maxCTAs != NCCL_CONFIG_UNDEF_INT;
  const auto channels = limited ? static_cast<std::uint32_t>(config->maxCTAs) : 0;
  *comm = new ncclComm(id.internal, rank, ranks, own_device(), channels);
  return connected(*comm, config == nullptr || config->blocking != 0);
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id,
                                                      int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  *result = comm->state();
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->finalize();
  return comm->state();
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->abort();
  delete comm;
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->ranks();
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank();
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  *device = comm->device();
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, std::size_t bytes,
                                                      void** handle) {
  if (comm == nullptr || buffer == nullptr || bytes == 0) return ncclInvalidArgument;
  *handle = buffer;
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return comm == nullptr || handle == nullptr ? ncclInvalidArgument : ncclSuccess;
}

COMMTUNE_STANDIN_EXPORT ncclResult_t ncclAllReduce(const void* from, void* into, std::size_t count,
                                                   ncclDataType_t type, ncclRedOp_t operation,
                                                   ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream, {NcclCall::What::kAllReduce, from, into, count, type, operation, 0});
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclReduceScatter(const void* from, void* into, std::size_t count,
                                                       ncclDataType_t type, ncclRedOp_t operation,
                                                       ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream, {NcclCall::What::kReduceScatter, from, into, count, type, operation, 0});
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclAllGather(const void* from, void* into, std::size_t count,
                                                   ncclDataType_t type, ncclComm_t comm,
                                                   cudaStream_t stream) {
  return put(comm, stream, {NcclCall::What::kAllGather, from, into, count, type, ncclSum, 0});
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclBroadcast(const void* from, void* into, std::size_t count,
                                                   ncclDataType_t type, int root, ncclComm_t comm,
                                                   cudaStream_t stream) {
  return put(comm, stream, {NcclCall::What::kBroadcast, from, into, count, type, ncclSum, root});
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclReduce(const void* from, void* into, std::size_t count,
                                                ncclDataType_t type, ncclRedOp_t operation, int root,
                                                ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream, {NcclCall::What::kReduce, from, into, count, type, operation, root});
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type,
                                              int peer, ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream, {NcclCall::What::kSend, from, nullptr, count, type, ncclSum, peer});
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclRecv(void* into, std::size_t count, ncclDataType_t type, int peer,
                                              ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream, {NcclCall::What::kReceive, nullptr, into, count, type, ncclSum, peer});
}

COMMTUNE_STANDIN_EXPORT ncclResult_t ncclGroupStart() {
  ++g_group.depth;
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclGroupEnd() {
  if (g_group.depth == 0) return ncclInvalidUsage;
  if (--g_group.depth > 0) return ncclSuccess;
  std::vector<Group::Entry> entries = std::exchange(g_group.entries, {});
  while (!entries.empty()) {
    const Group::Entry first = entries.front();
    std::vector<NcclCall> calls;
    for (const Group::Entry& each : entries) {
      if (each.comm == first.comm && each.stream == first.stream) calls.push_back(each.call);
    }
    std::erase_if(entries, [&](const Group::Entry& each) {
      return each.comm == first.comm && each.stream == first.stream;
    });
    first.comm->put(std::move(calls), first.stream);
  }
  return ncclSuccess;
}
COMMTUNE_STANDIN_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (g_group.depth != 1 || info == nullptr) return ncclInvalidUsage;
  g_group.depth = 0;
  double microseconds = 0;
  for (const Group::Entry& each : std::exchange(g_group.entries, {}))
    microseconds += each.comm->expected_microseconds(each.call);
  info->estimatedTime = static_cast<float>(microseconds);
  return ncclSuccess;
}

/// For tests: the algorithm and protocol of this process's last collective.
COMMTUNE_STANDIN_EXPORT const char* commtune_standin_nccl_choice() {
  static thread_local std::string text;
  text = commtune::standin::last_nccl_choice();
  return text.c_str();
}
