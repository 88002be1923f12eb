#include "tests/executor/transport/attack_surface.h"

COMMTUNE_DECLARE_ATTACK_SURFACE(mpi)

namespace commtune::mpi {

const tests::AttackSurface kAttackSurface{.none = "every connection is Open MPI's own; ours listens nowhere"};

}  // namespace commtune::mpi
