#include "executor/collectives/library_kind.h"

COMMTUNE_DECLARE_LIBRARY(openmpi)

namespace commtune::openmpi {

const LibraryKind kKind{"openmpi"};

}  // namespace commtune::openmpi
