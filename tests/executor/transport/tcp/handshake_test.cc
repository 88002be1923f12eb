#include "executor/transport/tcp/handshake.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace commtune::tcp {
namespace {

std::span<const std::byte> bytes_of(const Hello& hello) { return std::as_bytes(std::span(&hello, 1)); }

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

TEST(Handshake, RanksOfOneRunProveThemselvesToEachOther) {
  const Secret secret = make_secret();
  AcceptingSide accepting(secret, 1, 4);
  ConnectingSide connecting(secret, 3, 1);
  ASSERT_EQ(connecting.opening().size(), accepting.awaited());
  ASSERT_EQ(accepting.take(connecting.opening()), Step::kReply);
  EXPECT_EQ(accepting.peer(), 3);
  ASSERT_EQ(accepting.reply().size(), connecting.awaited());
  ASSERT_EQ(connecting.take(accepting.reply()), Step::kReply);
  ASSERT_EQ(connecting.reply().size(), accepting.awaited());
  ASSERT_EQ(accepting.take(connecting.reply()), Step::kProven);
  ASSERT_EQ(accepting.reply().size(), connecting.awaited());
  EXPECT_EQ(connecting.take(accepting.reply()), Step::kProven);
  EXPECT_TRUE(connecting.reply().empty());
}

TEST(Handshake, SecretsAndChallengesAreNeverTheSame) {
  EXPECT_NE(make_secret(), make_secret());
  EXPECT_NE(make_challenge(), make_challenge());
}

TEST(Handshake, AProofIsBoundToAllThatWasSaid) {
  const Secret secret = make_secret();
  const Challenge challenge = make_challenge();
  const Hello hello{Hello::kMagic, 3, 1, make_challenge()};
  const Proof proof = prove(secret, Side::kConnecting, hello, challenge);
  EXPECT_EQ(proof, prove(secret, Side::kConnecting, hello, challenge));
  Hello other_rank = hello, other_peer = hello, other_challenge = hello;
  other_rank.connecting = 2;
  other_peer.accepting = 0;
  other_challenge.challenge = make_challenge();
  EXPECT_NE(proof, prove(make_secret(), Side::kConnecting, hello, challenge));
  EXPECT_NE(proof, prove(secret, Side::kAccepting, hello, challenge));
  EXPECT_NE(proof, prove(secret, Side::kConnecting, other_rank, challenge));
  EXPECT_NE(proof, prove(secret, Side::kConnecting, other_peer, challenge));
  EXPECT_NE(proof, prove(secret, Side::kConnecting, other_challenge, challenge));
  EXPECT_NE(proof, prove(secret, Side::kConnecting, hello, make_challenge()));
}

TEST(Handshake, AProofIsAnHmacOfSha256) {
  // python3: hmac.new(bytes(range(16)), b"commtune tcp 1\0\0" + struct.pack("<IIii", 1, 0x636f6d74, 3, 1)
  //          + bytes([7]) * 16 + bytes([9]) * 16, "sha256").hexdigest()
  Secret secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(i);
  Challenge mine{}, theirs{};
  mine.fill(std::byte{7});
  theirs.fill(std::byte{9});
  EXPECT_EQ(hex(prove(secret, Side::kConnecting, {Hello::kMagic, 3, 1, mine}, theirs)),
            "086d76a310791b44ffa5e226bf8b12fa799e670da56ca07df8decda9bd3d1d73");
}

TEST(Handshake, MessagesOfAnotherLengthAreRefused) {
  AcceptingSide accepting(make_secret(), 0, 2);
  EXPECT_EQ(accepting.take(bytes_of({}).first(3)), Step::kRefused);
  ConnectingSide connecting(make_secret(), 1, 0);
  EXPECT_EQ(connecting.take(bytes_of({}).first(3)), Step::kRefused);
}

TEST(Handshake, ProofsAreComparedWhole) {
  Proof proof{};
  EXPECT_TRUE(equal(proof, proof));
  EXPECT_FALSE(equal(std::span(proof).first(31), proof));
  Proof other = proof;
  other.back() = std::byte{1};
  EXPECT_FALSE(equal(other, proof));
}

}  // namespace
}  // namespace commtune::tcp
