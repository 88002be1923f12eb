#pragma once
// One communicator of NCCL's and the stream that its collectives are put on. For the sources of this folder.

#include <nccl.h>

#include <cstddef>
#include <string>

#include "executor/base/segment.h"
#include "executor/memory/buffer.h"
#include "executor/memory/cuda/device.h"
#include "executor/transport/transport.h"
#include "perfmodel/profile.h"

namespace commtune::nccl {

/// NCCL's own bytes by which ranks find each other, as text, and back.
std::string make_unique_id();
/// throws  Error{kConflict} for a text that no rank made
ncclUniqueId unique_id_of(const std::string& text);

/// Non-blocking: nothing here waits for a peer longer than until a deadline. One thread, whose GPU is
/// current.
class Lane {
 public:
  /// Collective over the ranks; comes back at once.
  ///
  /// channels  that its collectives take; 0: as many as NCCL will
  Lane(const ncclUniqueId& id, int rank, int ranks, int channels = 0);
  /// Aborts what is under way; otherwise lets go when NCCL has sent all that peers still need.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// By a first collective, since NCCL connects ranks when it needs them to be.
  ///
  /// some    elements of float32 on the GPU, whatever they are
  /// throws  Error{kTimeout} where not all ranks came until then, Error{kUnavailable} or Error{kPeerLost}
  /// with
  ///         what NCCL says
  void connect(const Buffer& some, Deadline until);

  /// As CollectiveLibrary's, put on the stream when this returns.
  void all_reduce(DataType type, Buffer data);
  void reduce_scatter(DataType type, Buffer data);
  void all_gather(DataType type, Buffer data);

  const cuda::Stream& stream() const { return stream_; }
  /// throws  Error{kPeerLost} or Error{kUnavailable} where NCCL has noticed a failure
  void check();
  bool has_failed() const { return given_up_; }
  /// Ends what is under way, which does not end by itself. Nothing follows but the destructor.
  void abort() noexcept;

 private:
  void wait_until_connected(Deadline until);
  void started(ncclResult_t result, const char* call);
  /// What NCCL says of the communicator once nothing is in progress, or until then.
  ncclResult_t settled(Deadline until);
  void group(const char* call, DataType type, Buffer data,
             ncclResult_t (*each)(Lane& lane, ncclDataType_t type, std::byte* part, std::size_t count,
                                  int root));
  Range part_of(DataType type, const Buffer& data, int rank) const {
    return segment(data.bytes, element_size(type).count, ranks_, rank);
  }
  bool divides(DataType type, const Buffer& data) const {
    return data.bytes % (element_size(type).count * static_cast<std::size_t>(ranks_)) == 0;
  }

  const int rank_, ranks_;
  const cuda::Stream stream_;
  ncclComm_t communicator_ = nullptr;
  bool given_up_ = false;
};

}  // namespace commtune::nccl
