#pragma once
// How ranks tell each other the little that they must know before they are connected: names, addresses, a
// secret. Whoever starts a job's ranks has a way for it, such as Open MPI or the memory of one process; a
// transport that connects ranks on its own is handed it, and knows nothing else of how they were started.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "executor/transport/transport.h"

namespace commtune {

/// One rank's place in a job: from the moment when it joins until its destructor, which leaves the job and
/// may wait for the others to do so. From one thread at a time. After any method has thrown, only the
/// destructor and abort() may be called.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  virtual const Peers& peers() const = 0;

  /// Collective: all ranks make the same calls. Returns when every rank has called it.
  ///
  /// own      this rank's record, a few KiB at most, with as many bytes as the others'
  /// returns  all ranks' records, one after the other in rank order
  /// throws   Error{kTimeout} past the deadline, Error{kConflict} on every rank, naming one whose record has
  ///          another length, Error{kPeerLost} where a rank has ended the job
  virtual std::vector<std::byte> all_gather(std::span<const std::byte> own, Deadline until) = 0;

  /// Ends every rank of the job without waiting for any of them, as Transport::abort() does.
  virtual void abort(std::string_view why) noexcept = 0;
};

/// Records travel as they lie in memory: all ranks run the same program on the same kind of processor.
///
/// returns  every rank's, by rank
template <typename Record>
requires std::is_trivially_copyable_v<Record> std::vector<Record> all_gather(Bootstrap& bootstrap,
                                                                             const Record& own,
                                                                             Deadline until) {
  const std::vector<std::byte> bytes = bootstrap.all_gather(std::as_bytes(std::span(&own, 1)), until);
  std::vector<Record> records(bootstrap.peers().hosts.size());
  std::memcpy(records.data(), bytes.data(), bytes.size());
  return records;
}

/// For those who implement it: throws Error{kConflict} unless all ranks' records are as long as rank 0's.
void check_record_sizes(const Peers& peers, std::span<const std::uint64_t> sizes);

}  // namespace commtune
