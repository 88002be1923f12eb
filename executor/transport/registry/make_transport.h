#pragma once
// How a program gets a transport whose name it was told.

#include <memory>
#include <string_view>

#include "executor/transport/bootstrap/bootstrap.h"
#include "executor/transport/transport_kind.h"

namespace commtune {

/// Connects the ranks of a job by the transport of that name. Collective.
///
/// until   by when the ranks must have told each other that they can use it, and be connected
/// throws  Error{kUnavailable} where a rank cannot, on every rank with the same text, which names the first
///         such rank and says why; Error{kTimeout}, Error{kPeerLost} and what else the transport throws
std::unique_ptr<Transport> make_transport(std::string_view name, std::shared_ptr<Bootstrap> bootstrap,
                                          const TransportOptions& options, Deadline until);

}  // namespace commtune
