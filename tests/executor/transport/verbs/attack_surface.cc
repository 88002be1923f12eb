#include "tests/executor/transport/attack_surface.h"

COMMTUNE_DECLARE_ATTACK_SURFACE(verbs)

namespace commtune::verbs {

const tests::AttackSurface kAttackSurface{
    .none = "its door is a card's queue pair: faults_test.cc attacks it where there is a card"};

}  // namespace commtune::verbs
