#pragma once
// How the two ranks of a connection prove to each other that they belong to the same run. Both know the run's
// secret and show it by a keyed digest (HMAC-SHA-256, RFC 2104) over a challenge of either side, both ranks
// and who of them proves. The secret never travels on the connection, and what was recorded of another
// connection proves nothing, as its challenges were others.
//
//   connecting -> accepting  Hello      who connects to whom, and a challenge
//   accepting -> connecting  Challenge
//   connecting -> accepting  Proof
//   accepting -> connecting  Proof      only to who has proven himself: it is also the welcome
//
// No sockets and no clock here: bytes in, bytes out.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "executor/transport/proof/proof.h"

namespace commtune::tcp {

using proof::Challenge;
using proof::equal;
using proof::make_challenge;
using proof::make_secret;
using proof::Proof;
using proof::Secret;

/// Travels as it lies in memory: all ranks run the same program on the same kind of processor.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x636f6d74;  // "comt"
  std::uint32_t magic = kMagic;
  std::int32_t connecting = -1, accepting = -1;  ///< ranks
  Challenge challenge{};
};

enum class Side : std::uint32_t { kConnecting = 1, kAccepting = 2 };

/// What the rank on that side shows, where the other side answered the hello with `challenge`.
Proof prove(const Secret& secret, Side side, const Hello& hello, const Challenge& challenge);

/// What a message of the other side has led to.
enum class Step {
  kReply,    ///< reply() is to be sent, and then awaited() more bytes come
  kProven,   ///< it is who it says; reply() is to be sent if it is not empty
  kRefused,  ///< why() says why
};

/// The lower rank of a pair.
class AcceptingSide {
 public:
  AcceptingSide(const Secret& secret, int rank, int ranks) : secret_(secret), rank_(rank), ranks_(ranks) {}

  /// Bytes of the message that comes next.
  std::size_t awaited() const;
  /// message  awaited() bytes
  Step take(std::span<const std::byte> message);
  std::span<const std::byte> reply() const {
    return proven_ ? std::span<const std::byte>(proof_) : std::span<const std::byte>(challenge_);
  }
  /// Who it says it is; meaningful once a message was taken and not refused.
  int peer() const { return hello_.connecting; }
  std::string_view why() const { return why_; }

 private:
  Step take_hello(std::span<const std::byte> message);
  Step take_proof(std::span<const std::byte> message);
  Step refuse(std::string_view why);

  Secret secret_;
  int rank_, ranks_;
  Hello hello_;
  Challenge challenge_{};
  Proof proof_{};
  bool challenged_ = false, proven_ = false;
  std::string_view why_;  // a literal
};

/// The higher rank of a pair.
class ConnectingSide {
 public:
  ConnectingSide(const Secret& secret, int rank, int peer);

  /// Goes first.
  std::span<const std::byte> opening() const { return std::as_bytes(std::span(&hello_, 1)); }
  std::size_t awaited() const;
  Step take(std::span<const std::byte> message);
  std::span<const std::byte> reply() const {
    return proven_ ? std::span<const std::byte>() : std::span<const std::byte>(proof_);
  }
  std::string_view why() const { return why_; }

 private:
  Secret secret_;
  Hello hello_;
  Challenge challenge_{};
  Proof proof_{};
  bool challenged_ = false, proven_ = false;
  std::string_view why_;  // a literal
};

}  // namespace commtune::tcp
