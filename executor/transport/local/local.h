#pragma once
// Ranks that are threads of one process: for tests, sanitizers and what needs no network. Same contract as
// every other backend. Messages pass through memory of the process, so it has no limits of messages, no pace
// and no subnet; who can reach that memory is the process itself, hence there is nobody to keep out. In the
// registry for ranks that met by make_local_bootstraps(), and for no others.

#include <memory>
#include <string>
#include <vector>

#include "executor/transport/transport.h"

namespace commtune {

struct LocalOptions {
  int ranks_per_host = 1;  ///< host names are "local0", "local1", ...
  /// When a send is reported as complete. Real transports do both: small messages are taken into buffers at
  /// once, and large ones wait until the receiver has posted a receive (rendezvous).
  enum class SendEnds { kAtOnce, kWhenReceived } send_ends = SendEnds::kAtOnce;
};

/// What rank 0 of n such ranks knows of them; for another one set its rank.
Peers local_peers(int n, int ranks_per_host);

/// n connected ends, rank 0 first; hand one to each thread. They share the fabric between them, which lives
/// as long as the last end.
std::vector<std::unique_ptr<Transport>> make_local_transports(int n, LocalOptions options = {});

}  // namespace commtune
