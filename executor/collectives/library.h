#pragma once
// A library's own collectives, whatever algorithms it takes: beside a transport, which carries what ranks say
// to each other otherwise. A library is a folder here and a line in the registry's list.

#include <cstdint>
#include <span>
#include <string_view>

#include "executor/memory/buffer.h"
#include "perfmodel/profile.h"

namespace commtune {

/// A collective that was started: index into the library's own table, reused after its end was reported.
using CollectiveId = std::uint32_t;

/// Collectives over the first ranks of a job, as many as the library was made for. All of these start the
/// same ones, with equal types and sizes, in the same order; several may be under way. Buffers are whole
/// elements, in memory that the library takes (its kind says which), and the library's until the end. Where
/// that memory is in_order(), a collective starts behind what was asked of the memory before.
///
/// With n ranks, part r of a buffer is segment(bytes, element size, n, r) of executor/base/segment.h.
///
/// Thread model: one call at a time, of the thread that calls the transport's wait(). An end makes wait()
/// return, as wake() would.
class CollectiveLibrary {
 public:
  virtual ~CollectiveLibrary() = default;
  CollectiveLibrary() = default;
  CollectiveLibrary(const CollectiveLibrary&) = delete;
  CollectiveLibrary& operator=(const CollectiveLibrary&) = delete;

  virtual std::string_view name() const = 0;  ///< its kind's

  /// The sum over all ranks, in place. Its order is the library's business.
  virtual CollectiveId all_reduce(DataType type, Buffer data) = 0;
  /// The first stage: the sum's part of this rank, in its place; what the other parts hold then is undefined.
  virtual CollectiveId reduce_scatter(DataType type, Buffer data) = 0;
  /// The second: every rank's part in its place on every rank.
  virtual CollectiveId all_gather(DataType type, Buffer data) = 0;

  /// What has ended since the last call; never blocks. Valid until the next call. Throws Error{kUnavailable}
  /// or Error{kPeerLost} where a collective failed.
  virtual std::span<const CollectiveId> ended() = 0;

  /// What is under way need not end: its buffers are about to go, and peers may be gone. No call follows but
  /// the destructor, which does the same. For a library whose work keeps a device from letting go of memory.
  virtual void give_up() noexcept {}
};

}  // namespace commtune
