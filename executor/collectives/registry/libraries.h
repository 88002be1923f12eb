#pragma once
// The libraries of collectives that this program has, by name.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "executor/collectives/library.h"
#include "executor/transport/transport.h"

namespace commtune {

/// "openmpi"
std::string library_names();

/// Why this rank cannot use the library of that name beside the transport, in one line that names it; empty:
/// it can. No name: the first of the list's.
std::optional<std::string> why_no_library(std::string_view name, const Transport& transport);

/// For the first `ranks` ranks of the transport, on each of them; the transport outlives it.
/// throws  Error{kUnavailable} with why_no_library()
std::unique_ptr<CollectiveLibrary> make_library(std::string_view name, Transport& transport, int ranks);

}  // namespace commtune
