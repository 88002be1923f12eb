#pragma once
// A communicator of the stand-in's NCCL: what it was asked for is done in the order of the calls, each when
// the stream that it was put on has come to it.

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/standin/cuda_objects.h"
#include "tests/gpu/standin/mesh.h"
#include "tests/gpu/standin/nccl_choice.h"

namespace commtune::standin {

/// One call of a collective, or of ncclSend() or ncclRecv().
struct NcclCall {
  enum class What : std::uint32_t {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kBroadcast,
    kReduce,
    kSend,
    kReceive
  };
  What what = What::kAllReduce;
  const void* from = nullptr;
  void* into = nullptr;
  std::uint64_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t operation = ncclSum;
  int peer = 0;  ///< or root
};

std::size_t size_of(ncclDataType_t type);  ///< 0: the stand-in does not know it

}  // namespace commtune::standin

struct ncclComm {
 public:
  /// channels  that the configuration asks for; 0: none
  ncclComm(std::string name, int rank, int ranks, int device, std::uint32_t channels);
  ~ncclComm();

  int rank() const { return mesh_.rank(); }
  int ranks() const { return mesh_.ranks(); }
  int device() const { return device_; }
  /// Success, in progress while it connects, or what went wrong.
  ncclResult_t state() const { return state_; }
  void wait_until_connected();
  /// False: the variables of NCCL's that name an algorithm and a protocol name what there is not.
  bool has(const commtune::standin::NcclCall& call) const;
  double expected_microseconds(const commtune::standin::NcclCall& call) const;
  /// Calls of one group: one after the other, but for sends and receives, which all are under way at once.
  void put(std::vector<commtune::standin::NcclCall> calls, CUstream stream);
  void abort();
  /// Comes back when all that was put has been done.
  void finalize();

 private:
  struct Work {
    std::vector<commtune::standin::NcclCall> calls;
    commtune::standin::Activity* activity = nullptr;  // of its GPUs
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false, done = false;  // by its stream; by this
  };
  void serve();
  void do_work(Work& work);
  void do_call(const commtune::standin::NcclCall& call, const commtune::standin::Activity& activity);
  void do_transfers(const std::vector<commtune::standin::NcclCall>& calls);
  void agree_on(const commtune::standin::NcclCall& call);
  void reduce_parts(const commtune::standin::NcclCall& call, std::byte* into, std::uint64_t count);
  void gather_parts(std::byte* into, const std::vector<std::uint64_t>& counts, std::size_t element);
  void broadcast(const commtune::standin::NcclCall& call);
  void reduce(const commtune::standin::NcclCall& call);

  std::uint64_t bytes_of(const commtune::standin::NcclCall& call) const;
  commtune::NcclTuning tuning_of(const commtune::standin::NcclCall& call) const;

  commtune::standin::Mesh mesh_;
  const commtune::standin::NcclChoice choice_;
  const int device_;
  std::atomic<ncclResult_t> state_{ncclInProgress};
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Work>> works_;
  bool closed_ = false, idle_ = true;
  std::uint64_t collectives_ = 0;
  std::thread thread_;  // last: uses what is above
};
