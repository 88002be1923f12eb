#pragma once
// How a transport's transfers are cut, and how far ahead of them receives are posted. The transport says so;
// a probe keeps it with what it measured, since costs hold for no other; formulas read it, since chunks that
// follow each other hide latencies and stages of one message from each other.

#include <algorithm>
#include <cmath>

#include "perfmodel/base/units.h"

namespace commtune {

/// A segment of up to `uncut` is not cut; a longer one evenly, into `cuts` chunks, or into more where these
/// would be longer than `chunk`.
struct TransferTraits {
  /// Longest transfer of a pipelined algorithm. This one stays below the size (64 KiB) from which Open MPI's
  /// TCP transport asks before it sends: at 1 Gb/s and 200 us a ring of 1 MiB takes 14 ms with it and 24 ms
  /// with 256 KiB, one of 25 MiB 336 ms (334 are the link's) and 364 ms.
  Bytes chunk{60_KiB};
  Bytes uncut{15_KiB};
  int cuts = 4;
  int window = 4;       ///< chunks that a rank has receives posted for ahead of the one it waits for; 1..16
  bool assumed = true;  ///< nobody said so: as all transports had it before they were asked
  /// So the chunks of a segment that is just beyond `uncut` are half of it, and on average this.
  Bytes short_chunk() const { return Bytes{uncut.count * 3 / 4}; }
  /// Of a segment of so many bytes.
  double chunks(double bytes) const {
    if (bytes <= static_cast<double>(uncut.count)) return 1;
    return std::max<double>(cuts, std::ceil(bytes / static_cast<double>(chunk.count)));
  }
  bool operator==(const TransferTraits&) const = default;
};

/// The same with a longest transfer of another length; 0: with its own.
inline TransferTraits with_chunk(TransferTraits traits, Bytes chunk) {
  if (chunk.count != 0) traits.chunk = chunk;
  return traits;
}

}  // namespace commtune
