#pragma once
// Connects every pair of ranks with one TCP socket: the higher rank connects, the lower one accepts.

#include <vector>

#include "executor/base/descriptor.h"
#include "executor/transport/bootstrap/bootstrap.h"
#include "executor/transport/tcp/acceptor.h"
#include "executor/transport/tcp/introduction.h"
#include "executor/transport/tcp/options.h"
#include "executor/transport/transport.h"

namespace commtune::tcp {

/// Non-blocking, connected sockets by rank; this rank's own entry is empty. Throws as make_tcp_transport
/// says.
std::vector<Descriptor> connect_mesh(Bootstrap& bootstrap, const TcpOptions& options);

/// The part of it that follows when the ranks know each other.
std::vector<Descriptor> meet(const Peers& peers, const Introduction& known,
                             const std::vector<Listener>& listeners, Deadline deadline);

}  // namespace commtune::tcp
