#pragma once
// Transport over plain TCP sockets: one full-duplex connection for each pair of ranks, sends in the order in
// which they were started, bytes straight from and into the caller's memory, and one epoll that sleeps in the
// kernel until something can move. Waiting costs no core, so ranks that share one do not starve each other.
// Small messages that are started together travel together: the last of them goes when its rank waits.

#include <memory>

#include "executor/transport/bootstrap/bootstrap.h"
#include "executor/transport/tcp/options.h"
#include "executor/transport/transport.h"

namespace commtune {

/// Connects every pair of ranks and returns when the mesh stands.
///
/// Both ranks of a connection prove that they belong to this run (handshake.h), by a secret that rank 0 makes
/// and the bootstrap carries: it is as safe as that. A rank listens on 127.0.0.1 and on the addresses that it
/// told the others, until its mesh stands, and a peer must come from an address of its own. What travels
/// afterwards is neither encrypted nor signed: who can change packets on the way can change gradients.
///
/// bootstrap  tells who is where and carries addresses and secret. Kept, so that the ranks leave it together
///            before their connections close; whoever else holds it lets go of it before
/// throws     Error{kTimeout} naming the rank and host that could not be reached, and what was refused
///            meanwhile, Error{kUnavailable} without a usable network address
///
/// Messages that arrive before their receive are kept in memory of the transport's own and copied, as far as
/// Transport::limit_messages allows.
std::unique_ptr<Transport> make_tcp_transport(std::shared_ptr<Bootstrap> bootstrap,
                                              const TcpOptions& options = {});

}  // namespace commtune
