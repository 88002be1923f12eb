#include "tests/executor/transport/attack_surface.h"

COMMTUNE_DECLARE_ATTACK_SURFACE(local)

namespace commtune::local {

const tests::AttackSurface kAttackSurface{
    .none = "messages pass through memory of one process, which nobody else reaches"};

}  // namespace commtune::local
