#pragma once
// What every road's algorithm is given. A road sums `data` element by element over the workers and hands the
// result back: after both stages every worker holds the same bits.
//
// Cuts: a message is cut into one segment per worker (or server) on element boundaries, evenly, the first
// segments longer by one element where it does not divide; segments are cut into chunks, and a chunk is what
// travels as one transfer. Pipelining by chunks lets a rank sum, forward and receive at the same time.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/base/segment.h"
#include "executor/base/task.h"
#include "executor/collectives/library_queue.h"
#include "executor/memory/buffer.h"
#include "executor/memory/memory_queue.h"
#include "executor/memory/pool.h"
#include "executor/roads/host_layout.h"
#include "executor/transport/communicator.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "perfmodel/transfer_traits.h"

namespace commtune {

enum class Result { kSum, kMean };

/// What is the same for all messages of a run.
struct RoadSettings {
  int workers = 1;  ///< ranks 0..workers-1 take part
  DataType type = DataType::kFloat32;
  Result result = Result::kMean;
  Bytes chunk = TransferTraits{}.chunk;  ///< these four: TransferTraits'
  Bytes uncut = TransferTraits{}.uncut;
  int cuts = TransferTraits{}.cuts;
  int window = TransferTraits{}.window;
  /// Of servers that take messages whole, which of them takes message i; empty: i mod S.
  std::vector<std::uint32_t> server;

  void take(const TransferTraits& traits);
  /// Longest chunk of a message of `bytes` that is cut into `parts` segments: whole elements.
  std::size_t chunk_for(std::size_t bytes, int parts) const;
};

/// Turns a complete sum into the result: divides by the number of workers for a mean.
AsyncOperation divided(const RoadSettings& settings, MemoryQueue& operations, Buffer sum);

/// One message on its way.
struct RoadMessage {
  Communicator& communicator;
  Scratch& scratch;  ///< blocks of at least settings.chunk, in the communicator's memory
  const RoadSettings& settings;
  const HostLayout& hosts;   ///< of the run's workers
  std::uint32_t number = 0;  ///< tag number; equal on all ranks, different for messages under way together
  Buffer data;               ///< summed in place; in the communicator's memory
  void (*reached)(void* context, Stage stage) = nullptr;  ///< called when this rank has ended a stage
  void* context = nullptr;
  LibraryQueue* library = nullptr;  ///< what kLibrary sums by

  Buffer part(Range range) const { return data.part(range.offset, range.length); }
  AsyncOperation copy(Buffer into, ConstBuffer from) const {
    return communicator.operations().copy(into, from);
  }
  AsyncOperation add(Buffer into, ConstBuffer from) const {
    return communicator.operations().add(settings.type, into, from);
  }
  AsyncOperation finish(Buffer sum) const { return divided(settings, communicator.operations(), sum); }
  void report(Stage stage) const {
    if (reached != nullptr) reached(context, stage);
  }
};

/// Number of chunks of a segment (0 for an empty one), and one of them: all are about as long, so that none
/// costs a transfer for the few bytes that the others left. `longest_chunk` and the segment are whole
/// elements of up to 64 bytes, and so is each chunk.
std::size_t chunks(std::size_t segment_bytes, std::size_t longest_chunk);
Range chunk(Range segment, std::size_t longest_chunk, std::size_t index);

}  // namespace commtune
