#pragma once
// What ranks tell each other over the bootstrap before they connect: where each listens, and the run's
// secret, which rank 0 makes. Nothing else protects the secret than what protects the bootstrap.

#include <vector>

#include "executor/transport/bootstrap/bootstrap.h"
#include "executor/transport/tcp/address_card.h"
#include "executor/transport/tcp/handshake.h"
#include "executor/transport/transport.h"

namespace commtune::tcp {

struct Introduction {
  std::vector<AddressCard> cards;  ///< by rank
  Secret secret{};                 ///< the same on all ranks of a run, another one in each run
};

/// Collective. Throws as Bootstrap::all_gather() does, and Error{kConflict} naming a rank whose card is none
/// of this program's.
Introduction introduce(Bootstrap& bootstrap, const AddressCard& mine, Deadline deadline);

}  // namespace commtune::tcp
