#pragma once
// What a user is told when the card says that something could not be done, and how long it tries before that.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "executor/transport/matching/transfers.h"
#include "executor/transport/transport.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::verbs {

/// What a connection was asked for.
enum class Operation : std::uint8_t {
  kSend,     ///< of a frame
  kWrite,    ///< of a part of a message
  kLook,     ///< whether the peer is still there
  kReceive,  ///< of a frame, or of the end of a message
};

/// A completion with a status that is no success.
struct WorkFailure {
  Operation operation = Operation::kSend;
  int status = 0;                  ///< ibv_wc_status
  std::string_view status_text{};  ///< ibv_wc_status_str()
  std::uint32_t vendor = 0;        ///< the driver's own number
  /// That it belongs to, or that is waited for; of 0 B where nothing has come that says how long it is.
  std::optional<matching::Envelope> message{};
  bool is_awaited = false;      ///< the message is waited for
  std::string own_port_down{};  ///< this rank's own port, where that is down; otherwise empty
};

/// "lost rank 3 (host c): write of a message of 4194304 B (channel 1, number 7): transport retry counter
/// exceeded (verbs status 12, vendor 0x81)"
///
/// kPeerLost, but where the status says that a rank has done what no rank does (kConflict) or that this one's
/// own card or memory failed (kUnavailable). Where this rank's own port is down, no peer is to blame: "rank 1
/// (host b) has lost its link (mlx5_0:1, GID 3 (RoCE v2, 10.0.0.2, eth0)) to rank 0 (host a): write of ..."
Error error_of(const WorkFailure& failure, const Peers& peers, int peer);

/// " of a message of 4096 B (channel 1, number 7)"; empty where there is none.
/// of  "of", "while waiting for"
std::string message_text(const std::optional<matching::Envelope>& message, std::string_view of);

/// Throws the error, as a MessageError where it is of a message.
[[noreturn]] void raise(const Error& error, const std::optional<matching::Envelope>& message);

/// A connection was ended by an error that has been, or will be, reported of something else.
bool is_aftermath(int status);

/// How a card tries again: `tries` times beyond the first, each after 4.096 us * 2^timeout. A card may
/// stretch that to four times as long (InfiniBand Architecture Specification 1.7, 9.7.6.1.3).
struct RetryRule {
  std::uint8_t timeout = 0;
  std::uint8_t tries = 6;    ///< not 7, the most: drivers (rxe) take that for "without end"
  Seconds patience() const;  ///< until it gives up, where it stretches nothing
};
/// The most patient one that gives up within the limit; the least patient one that cards have where none
/// does.
RetryRule retry_rule(Seconds limit);

}  // namespace commtune::verbs
