#pragma once
// Which card RDMA connections use, and how.

#include <string_view>

#include "executor/transport/verbs/gid_choice.h"
#include "perfmodel/base/units.h"

namespace commtune {

struct VerbsOptions {
  /// Card, port, address of this rank; what is left open is chosen by score (verbs/gid_choice.h), and the
  /// ranks of a host take its cards in turn where several are as good.
  verbs::GidWish gid;
  /// Messages up to this long travel in a receive that the peer has posted for any, and are copied on either
  /// side; a longer one is written from the sender's memory straight into the receiver's, for one more round
  /// trip.
  Bytes eager{4096};
  Bytes chunk{1 << 20};  ///< longest part of a message that the card is given as one write
  /// Connections of each pair of ranks, 1 to 8: where a network spreads connections over several ways, each
  /// may take another. The same on all ranks.
  int connections = 1;
  /// The card may write a message's bytes in any order; that all of them are there is told afterwards, in
  /// order. For memory of messages alone. Without effect where card or library do not know of it.
  bool relaxed_ordering = true;
  /// How long a peer's card may give no sign of life before the peer is lost. Cards know powers of two only,
  /// so it may be half of this, and may stretch it to four times as long: less than a run waits for a
  /// message.
  Seconds silence_limit{10};
  Seconds connect_timeout{30};  ///< for all connections together
  void check() const;           ///< throws Error{kBadInput} naming field, value and rule
};

/// Reads options as a user says them, "device=mlx5_0:1,gid-index=3,connections=2,relaxed-ordering=off", over
/// those that are there. Throws Error{kBadInput} naming key, value and rule.
void read_verbs_options(std::string_view text, VerbsOptions& options);

}  // namespace commtune
