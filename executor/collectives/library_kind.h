#pragma once
// A library of collectives, before there is one: what its folder tells the registry.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "executor/collectives/library.h"
#include "executor/transport/communicator.h"

namespace commtune {

/// Where a library is to work.
struct LibraryPlace {
  Communicator& communicator;  ///< whose memory holds what is summed; outlives the library
  /// For what ranks must have in common: rank 0's text on every rank of the communicator.
  std::function<std::string(const std::string& own)> broadcast;
  Deadline until;         ///< for all ranks to come
  std::string options{};  ///< what stands behind the library's name; its kind takes them
};

/// Plain data: it needs nothing of the library.
struct LibraryKind {
  std::string_view name;  ///< as plans have it: "openmpi"
  bool on_host = true;    ///< whether it sums in the host's memory, or in a GPU's
  /// What is wrong with options, in one line; nullptr: it has none.
  std::optional<std::string> (*wrong_options)(std::string_view options) = nullptr;
};

}  // namespace commtune

/// A library's folder has a namespace of its name in commtune, with these three.
///
/// kKind     in a source of its own, out of unity builds: who only asks for names links nothing else
/// unusable  one line that says why this rank cannot use it with this transport and memory; empty: it can
/// make      collective over all ranks of the place: for the first `ranks` of them, nullptr on the others
#define COMMTUNE_DECLARE_LIBRARY(NAME)                                           \
  namespace commtune::NAME {                                                     \
  extern const LibraryKind kKind;                                                \
  std::optional<std::string> unusable(const Communicator& communicator);         \
  std::unique_ptr<CollectiveLibrary> make(const LibraryPlace& place, int ranks); \
  }
