#pragma once
// Of a plan whose pulls are not its messages: what is pushed together and also comes back together.

#include <cstdint>
#include <vector>

#include "perfmodel/plan.h"

namespace commtune {

/// All that one message and one pull have in common, at least a piece: servers sum and send back each such
/// part on its own.
struct CommonPart {
  std::uint32_t message = 0, pull = 0;
  Message pieces;  ///< in the message's order
};

struct CommonParts {
  std::vector<CommonPart> parts;
  /// Numbers of parts by message and by pull, each in the order in which its own pieces name them.
  std::vector<std::vector<std::uint32_t>> of_message, of_pull;
};

/// Empty where the plan has no pulls. Messages and pulls must each cover every byte of the same tensors once.
///
/// cost  O(p log p) for p pieces in messages and pulls
CommonParts common_parts(const Plan& plan);

}  // namespace commtune
