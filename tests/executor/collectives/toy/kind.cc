#include "executor/collectives/library_kind.h"

COMMTUNE_DECLARE_LIBRARY(toy)

namespace commtune::toy {

const LibraryKind kKind{"toy"};

}  // namespace commtune::toy
