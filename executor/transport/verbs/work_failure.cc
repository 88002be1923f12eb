#include "executor/transport/verbs/work_failure.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

namespace commtune::verbs {
namespace {

std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::kSend:
      return "send";
    case Operation::kWrite:
      return "write";
    case Operation::kLook:
      return "no sign of life";
    case Operation::kReceive:
      return "receive";
  }
  return "?";
}

ErrorCode error_code_of(int status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
      return ErrorCode::kConflict;
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kPeerLost;
  }
}

/// Of the message: whose fault it is, up to the peer's name.
std::string beginning(ErrorCode code, const WorkFailure& failure, const Peers& peers) {
  if (code == ErrorCode::kConflict) return "cannot go on with";
  const std::string own = describe(peers, peers.rank);
  if (!failure.own_port_down.empty())
    return fmt::format("{} has lost its link ({}) to", own, failure.own_port_down);
  return code == ErrorCode::kUnavailable ? fmt::format("the card of {} failed towards", own) : "lost";
}

}  // namespace

std::string message_text(const std::optional<matching::Envelope>& message, std::string_view of) {
  if (!message) return "";
  const std::string size = message->size > 0 ? fmt::format(" of {} B", message->size) : "";
  const std::string number = number_of(message->tag) == kAnyNumber
                                 ? "any number"
                                 : fmt::format("number {}", number_of(message->tag));
  return fmt::format(" {} a message{} (channel {}, {})", of, size,
                     static_cast<std::uint32_t>(tag_space_of(message->tag)), number);
}

void raise(const Error& error, const std::optional<matching::Envelope>& message) {
  if (message) throw MessageError(error, message->tag);
  throw error;
}

Error error_of(const WorkFailure& failure, const Peers& peers, int peer) {
  ErrorCode code = error_code_of(failure.status);
  // What a card says then depends on its driver: that the peer does not answer, or that it failed itself
  // (rxe).
  if (code == ErrorCode::kUnavailable && !failure.own_port_down.empty()) code = ErrorCode::kPeerLost;
  return {code,
          fmt::format("{} {}: {}{}: {} (verbs status {}, vendor {:#x})", beginning(code, failure, peers),
                      describe(peers, peer), operation_name(failure.operation),
                      message_text(failure.message, failure.is_awaited ? "while waiting for" : "of"),
                      failure.status_text, failure.status, failure.vendor)};
}

bool is_aftermath(int status) { return status == IBV_WC_WR_FLUSH_ERR; }

Seconds RetryRule::patience() const {
  constexpr double kUnit = 4.096e-6;
  return Seconds{kUnit * static_cast<double>(1U << timeout) * (tries + 1)};
}

RetryRule retry_rule(Seconds limit) {
  constexpr std::uint8_t kLeast = 8, kMost = 22;  // 1 ms to 17 s a try
  RetryRule rule{kLeast};
  while (rule.timeout < kMost && RetryRule{static_cast<std::uint8_t>(rule.timeout + 1)}.patience() <= limit)
    ++rule.timeout;
  return rule;
}

}  // namespace commtune::verbs
