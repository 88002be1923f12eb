#include "executor/transport/tcp/handshake.h"

#include <cstring>
#include <type_traits>

namespace commtune::tcp {
namespace {

static_assert(std::is_trivially_copyable_v<Hello> && sizeof(Hello) == 28, "no padding travels");

/// All that a proof is bound to beside the secret.
struct Statement {
  std::array<char, 16> purpose{"commtune tcp 1"};
  Side side{};
  Hello hello;
  Challenge challenge{};
};
static_assert(sizeof(Statement) == 64, "no padding is digested");

template <typename Message>
void copy_to(Message& message, std::span<const std::byte> bytes) {
  std::memcpy(&message, bytes.data(), sizeof message);
}

}  // namespace

Proof prove(const Secret& secret, Side side, const Hello& hello, const Challenge& challenge) {
  const Statement statement{.side = side, .hello = hello, .challenge = challenge};
  return proof::prove(secret, std::as_bytes(std::span(&statement, 1)));
}

std::size_t AcceptingSide::awaited() const { return challenged_ ? sizeof(Proof) : sizeof(Hello); }

Step AcceptingSide::take(std::span<const std::byte> message) {
  if (message.size() != awaited()) return refuse("its message has another length");
  return challenged_ ? take_proof(message) : take_hello(message);
}

Step AcceptingSide::take_hello(std::span<const std::byte> message) {
  copy_to(hello_, message);
  if (hello_.magic != Hello::kMagic) return refuse("it does not speak commtune's protocol");
  if (hello_.accepting != rank_) return refuse("it asks for another rank");
  if (hello_.connecting <= rank_ || hello_.connecting >= ranks_) return refuse("no such rank connects here");
  challenge_ = make_challenge();
  challenged_ = true;
  return Step::kReply;
}

Step AcceptingSide::take_proof(std::span<const std::byte> message) {
  if (!equal(message, prove(secret_, Side::kConnecting, hello_, challenge_))) {
    return refuse("it does not know the run's secret");
  }
  proof_ = prove(secret_, Side::kAccepting, hello_, challenge_);
  proven_ = true;
  return Step::kProven;
}

Step AcceptingSide::refuse(std::string_view why) {
  why_ = why;
  return Step::kRefused;
}

ConnectingSide::ConnectingSide(const Secret& secret, int rank, int peer)
    : secret_(secret), hello_{Hello::kMagic, rank, peer, make_challenge()} {}

std::size_t ConnectingSide::awaited() const { return challenged_ ? sizeof(Proof) : sizeof(Challenge); }

Step ConnectingSide::take(std::span<const std::byte> message) {
  if (message.size() != awaited()) {
    why_ = "its message has another length";
    return Step::kRefused;
  }
  if (!challenged_) {
    copy_to(challenge_, message);
    challenged_ = true;
    proof_ = prove(secret_, Side::kConnecting, hello_, challenge_);
    return Step::kReply;
  }
  proven_ = equal(message, prove(secret_, Side::kAccepting, hello_, challenge_));
  if (proven_) return Step::kProven;
  why_ = "who listens there does not know the run's secret";
  return Step::kRefused;
}

}  // namespace commtune::tcp
