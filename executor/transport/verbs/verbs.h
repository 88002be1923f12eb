#pragma once
// Transport over RDMA (InfiniBand, RoCE, soft-RoCE) by rdma-core's verbs: one reliable connection for each
// pair of ranks; long messages go from memory to memory without a copy by a processor, short ones through
// receives that are posted for any. libibverbs is loaded at run time. After a short spin a rank that waits
// sleeps in the kernel until its card, or wake(), has something to tell.

#include <cstdint>
#include <memory>

#include "executor/transport/bootstrap/bootstrap.h"
#include "executor/transport/transport.h"
#include "executor/transport/verbs/options.h"

namespace commtune {

/// What one rank's end has done so far.
struct TransferUsage {
  std::uint64_t copied_bytes = 0;     ///< of messages, by this transport; each copy counts
  std::uint64_t kept_regions = 0;     ///< registrations by register_memory()
  std::uint64_t passing_regions = 0;  ///< around a transfer each, of memory that nobody had registered
};

class VerbsTransport : public Transport {
 public:
  virtual TransferUsage usage() const = 0;
};

/// Connects every pair of ranks and returns when all have shown that they belong to this run.
///
/// Addresses, numbers of queue pairs and packets, and the run's secret travel over the bootstrap alone: it is
/// as safe as that. The first frame on each connection proves who sends it (proof/proof.h); nothing is
/// granted or taken before. What travels afterwards is neither encrypted nor signed.
///
/// bootstrap  tells who is where. Kept, so that the ranks leave it together before their connections close;
///            whoever else holds it lets go of it before
/// throws     Error{kUnavailable} on every rank with the text of the first rank that cannot, Error{kTimeout}
///            naming a rank that did not answer
///
/// A long message that arrives before its receive stays where it is; a short one is kept in memory of the
/// transport's own and copied, as far as Transport::limit_messages allows.
std::unique_ptr<VerbsTransport> make_verbs_transport(std::shared_ptr<Bootstrap> bootstrap,
                                                     const VerbsOptions& options = {});

}  // namespace commtune
