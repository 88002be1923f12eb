#pragma once
// The transports that this program has, by name.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "executor/transport/transport_kind.h"

namespace commtune {

std::span<const TransportKind* const> transport_kinds();

/// nullptr: this program has none of that name.
const TransportKind* find_transport(std::string_view name);

/// A test for the next: whether ranks that are processes can use it, such as those that mpirun starts.
bool joins_processes(const TransportKind& kind);

/// Names of all, or of those that the test holds for: "mpi, tcp".
std::string transport_names(bool (*test)(const TransportKind&) = nullptr);

/// That a transport cannot be used, and why: "transport verbs: no RDMA device".
std::string unusable_transport(std::string_view name, std::string_view why);
/// Whether a failure's text has that of this transport in it.
bool tells_of_transport(std::string_view text, std::string_view name);

/// Why ranks that are processes cannot use a transport of that name, and which they can use instead; empty:
/// they can, where it finds what it needs on their hosts.
std::optional<std::string> not_between_processes(std::string_view name);

/// Why a transport of that name, which this program does not have, cannot be used.
std::string no_such_transport(std::string_view name);

}  // namespace commtune
