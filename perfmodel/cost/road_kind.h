#pragma once
// Which operations a road has, and which roads are alike.

#include <optional>

#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"

namespace commtune {

/// The operations of a road: both stages at once, then each alone.
struct Operations {
  Operation both, reduce, distribute;
};
Operations operations_of(const Road& road);

/// How a road's servers get their messages; nothing where it has none.
std::optional<Assignment> assignment_of(const Road& road);

/// Whether two roads differ at most in how many servers they have, where the first one is, and how messages
/// are assigned to them: what was measured of one calibrates the formulas of the other.
bool same_kind(const Road& a, const Road& b);

}  // namespace commtune
