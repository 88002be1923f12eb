#include "executor/transport/transport_kind.h"

COMMTUNE_DECLARE_TRANSPORT(mpi)

namespace commtune::mpi {

const TransportKind kKind{"mpi"};

}  // namespace commtune::mpi
