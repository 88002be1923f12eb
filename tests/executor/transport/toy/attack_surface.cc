#include "tests/executor/transport/attack_surface.h"

COMMTUNE_DECLARE_ATTACK_SURFACE(toy)

namespace commtune::toy {

const tests::AttackSurface kAttackSurface{.none = "its ends are the local transport's"};

}  // namespace commtune::toy
