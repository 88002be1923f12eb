#pragma once
// A library of collectives, before there is one: what its folder tells the registry.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "executor/collectives/library.h"
#include "executor/transport/transport.h"

namespace commtune {

/// Plain data: it needs nothing of the library.
struct LibraryKind {
  std::string_view name;  ///< as plans have it: "openmpi"
};

}  // namespace commtune

/// A library's folder has a namespace of its name in commtune, with these three.
///
/// kKind     in a source of its own, out of unity builds: who only asks for names links nothing else
/// unusable  one line that says why this rank cannot use it beside this transport; empty: it can
/// make      for the first `ranks` ranks, on each of them, beside a transport that outlives it
#define COMMTUNE_DECLARE_LIBRARY(NAME)                                      \
  namespace commtune::NAME {                                                \
  extern const LibraryKind kKind;                                           \
  std::optional<std::string> unusable(const Transport& transport);          \
  std::unique_ptr<CollectiveLibrary> make(Transport& transport, int ranks); \
  }
