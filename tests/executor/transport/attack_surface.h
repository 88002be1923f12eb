#pragma once
// What strangers at a transport's door, and peers that keep to no rule, do to its ranks. Each transport of
// the registry says in the folder of its tests how it withstands them, or why nobody can do so.

#include <array>
#include <string_view>
#include <utility>

namespace commtune::tests {

struct AttackSurface {
  /// Lets right ranks connect while it attacks them, or one rank attack another; records with EXPECT_... what
  /// they do.
  using Attack = void (*)();

  std::string_view
      none{};  ///< why nothing but its ranks reaches them, or who else attacks them; empty: all of these
  Attack silence{};           ///< a connection that says nothing
  Attack wrong_magic{};       ///< a greeting that no rank says
  Attack wrong_proof{};       ///< of a secret that is not the run's
  Attack replayed_proof{};    ///< what a rank said on another connection
  Attack taken_rank{};        ///< a second rank of a number
  Attack oversized_length{};  ///< a message that nobody could allocate
  Attack closing_half_way{};  ///< at any byte of greeting, proof and message
};

inline constexpr std::array<std::pair<const char*, AttackSurface::Attack AttackSurface::*>, 7> kAttacks{{
    {"Silence", &AttackSurface::silence},
    {"WrongMagic", &AttackSurface::wrong_magic},
    {"WrongProof", &AttackSurface::wrong_proof},
    {"ReplayedProof", &AttackSurface::replayed_proof},
    {"TakenRank", &AttackSurface::taken_rank},
    {"OversizedLength", &AttackSurface::oversized_length},
    {"ClosingHalfWay", &AttackSurface::closing_half_way},
}};

}  // namespace commtune::tests

/// A transport's tests define it in the namespace of its name.
#define COMMTUNE_DECLARE_ATTACK_SURFACE(NAME)       \
  namespace commtune::NAME {                        \
  extern const tests::AttackSurface kAttackSurface; \
  }
