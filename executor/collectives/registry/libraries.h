#pragma once
// The libraries of collectives that this program has, by name.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "executor/collectives/library.h"
#include "executor/collectives/library_kind.h"
#include "executor/transport/communicator.h"

namespace commtune {

/// "openmpi, nccl"
std::string library_names();

// A library's name may be followed by ':' and its options: "nccl:Ring+LL128".

/// Why this rank cannot use the library of that name with the communicator's transport and memory, in one
/// line that names it; empty: it can. No name: the first of the list's that sums in such memory.
std::optional<std::string> why_no_library(std::string_view name, const Communicator& communicator);

/// Collective over all ranks of the place: for the first `ranks` of them, nullptr on the others.
/// throws  Error{kUnavailable} with why_no_library()
std::unique_ptr<CollectiveLibrary> make_library(std::string_view name, const LibraryPlace& place, int ranks);

}  // namespace commtune
