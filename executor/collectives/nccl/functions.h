#pragma once
// NCCL, loaded when the program runs: the one that the process has already (PyTorch's), else what the library
// path leads to. For the sources of this folder.

#include <nccl.h>

#include <string>

namespace commtune::nccl {

/// FUNCTION(member, name) for each function that every NCCL since 2.18 has, and for what newer ones have.
#define COMMTUNE_NCCL_FUNCTIONS(FUNCTION)      \
  FUNCTION(version, ncclGetVersion)            \
  FUNCTION(error_text, ncclGetErrorString)     \
  FUNCTION(last_error, ncclGetLastError)       \
  FUNCTION(unique_id, ncclGetUniqueId)         \
  FUNCTION(init, ncclCommInitRankConfig)       \
  FUNCTION(async_error, ncclCommGetAsyncError) \
  FUNCTION(abort, ncclCommAbort)               \
  FUNCTION(finalize, ncclCommFinalize)         \
  FUNCTION(destroy, ncclCommDestroy)           \
  FUNCTION(all_reduce, ncclAllReduce)          \
  FUNCTION(reduce_scatter, ncclReduceScatter)  \
  FUNCTION(all_gather, ncclAllGather)          \
  FUNCTION(reduce, ncclReduce)                 \
  FUNCTION(broadcast, ncclBroadcast)           \
  FUNCTION(send, ncclSend)                     \
  FUNCTION(receive, ncclRecv)                  \
  FUNCTION(group_start, ncclGroupStart)        \
  FUNCTION(group_end, ncclGroupEnd)
#define COMMTUNE_NCCL_NEWER_FUNCTIONS(FUNCTION)   \
  FUNCTION(register_buffer, ncclCommRegister)     \
  FUNCTION(deregister_buffer, ncclCommDeregister) \
  FUNCTION(simulate, ncclGroupSimulateEnd)

struct Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of a declaration
#define COMMTUNE_NCCL_MEMBER(MEMBER, NAME) decltype(&NAME) MEMBER = nullptr;
  COMMTUNE_NCCL_FUNCTIONS(COMMTUNE_NCCL_MEMBER)
  COMMTUNE_NCCL_NEWER_FUNCTIONS(COMMTUNE_NCCL_MEMBER)  // nullptr where this NCCL has none
#undef COMMTUNE_NCCL_MEMBER
};

/// NCCL, or why this host does not have it. Loaded once a process and never unloaded; from any thread.
struct Loaded {
  Functions functions;
  int version = 0;      ///< as NCCL counts: 22907 is 2.29.7
  std::string why_not;  ///< empty: it is there
};
const Loaded& loaded();
/// NCCL itself; it must be there.
inline const Functions& functions() { return loaded().functions; }

std::string version_text(int version);  ///< "2.29.7"

/// What NCCL says of a result, with its last error where it has one: "unhandled system error
/// (ncclSystemError: ...)".
std::string words_of(ncclResult_t result, ncclComm_t communicator);

}  // namespace commtune::nccl
