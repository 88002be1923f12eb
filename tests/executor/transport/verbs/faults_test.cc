// What goes wrong between cards: peers that keep to no rule, and memory that is gone. Rank 0 is an ordinary
// one.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <latch>

#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"
#include "tests/executor/transport/verbs/card_ranks.h"
#include "tests/executor/transport/verbs/raw_card.h"

namespace commtune::tests {
namespace {

using ::testing::HasSubstr;
using verbs::FrameKind;

constexpr Tag kTag = make_tag(TagSpace::kReduce, 7);

/// What body throws.
std::string complaint_of(ErrorCode code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    fmt::print("said: {}\n", error.what());
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

/// What rank 0 says of a peer that does this; it waits for a message in memory of its own.
std::string complaint_about(ErrorCode code, const std::function<void(RawCard&)>& misbehave) {
  std::string said;
  std::latch heard(1);
  on_bootstraps(2, [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    if (bootstrap->peers().rank == 1) {
      RawCard card(*bootstrap, cards()[1]);
      misbehave(card);
      return heard.wait();
    }
    said = complaint_of(code, [&] {
      const auto transport = connect(bootstrap);
      std::vector<std::byte> data(64 << 10);
      transport->receive(1, kTag, data);
      wait_for(*transport, 1);
    });
    heard.count_down();
  });
  EXPECT_THAT(said, HasSubstr("rank 1 (host local1)"));
  return said;
}

void introduce(RawCard& card) { EXPECT_EQ(card.send({.kind = FrameKind::kProof}, card.proof()), 0); }

TEST(VerbsFaults, APeerThatDoesNotKnowTheSecretIsRefused) {
  const std::string said = complaint_about(ErrorCode::kConflict, [](RawCard& card) {
    proof::Proof wrong = card.proof();
    wrong[0] ^= std::byte{1};
    card.send({.kind = FrameKind::kProof}, wrong);
  });
  EXPECT_THAT(said, HasSubstr("it does not know the run's secret"));
}

TEST(VerbsFaults, APeerThatSendsBeforeItHasProvenItselfIsRefused) {
  const std::string said =
      complaint_about(ErrorCode::kConflict, [](RawCard& card) { card.send({.kind = FrameKind::kCredits}); });
  EXPECT_THAT(said, HasSubstr("it has not proven that it is a rank of this run"));
}

TEST(VerbsFaults, APeerThatWritesTwiceWhatItWasGrantedOnceIsRefused) {
  const std::string said = complaint_about(ErrorCode::kConflict, [](RawCard& card) {
    introduce(card);
    card.send({.kind = FrameKind::kAnnounce, .send = 3, .envelope = {64 << 10, kTag}});
    const verbs::FrameHeader grant = card.next(FrameKind::kGrant);
    EXPECT_EQ(grant.send, 3U);
    // Of another sequence: as if it came late.
    EXPECT_EQ(card.write(grant.address, grant.key, grant.immediate + 1), 0);
  });
  EXPECT_THAT(said, HasSubstr("it has written what it was not granted"));
}

TEST(VerbsFaults, APeerCannotWriteWhereItWasGrantedNothing) {
  const std::string said = complaint_about(ErrorCode::kPeerLost, [](RawCard& card) {
    introduce(card);
    card.send({.kind = FrameKind::kAnnounce, .send = 3, .envelope = {64 << 10, kTag}});
    const verbs::FrameHeader grant = card.next(FrameKind::kGrant);
    EXPECT_EQ(card.write(grant.address + 1, grant.key, {}), IBV_WC_REM_ACCESS_ERR) << "a byte beyond the end";
  });
  EXPECT_THAT(said, HasSubstr("a message of 65536 B (channel 1, number 7)"));
}

TEST(VerbsFaults, APeerThatSendsMoreThanThereAreReceivesForIsHeldUpAndNamed) {
  // It has no credits left after the first ones; nobody takes more, as rank 0 does something else once it is
  // connected.
  std::string said;
  std::latch flooded(1), heard(1);
  on_bootstraps(2, [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    if (bootstrap->peers().rank == 1) {
      RawCard card(*bootstrap, cards()[1]);
      introduce(card);
      card.next(FrameKind::kProof);
      int status = 0;
      std::size_t sent = 0;
      for (; status == 0 && sent < 4 * verbs::ConnectionSizes::kReceives; ++sent)
        status = card.send({.kind = FrameKind::kMessage, .envelope = {0, kTag}});
      EXPECT_EQ(status, IBV_WC_RNR_RETRY_EXC_ERR);
      EXPECT_LT(sent, 4 * verbs::ConnectionSizes::kReceives);
      flooded.count_down();
      return heard.wait();
    }
    const auto transport = connect(bootstrap);
    flooded.wait();
    said = complaint_of(ErrorCode::kPeerLost, [&] {
      std::vector<std::byte> data(64);
      transport->receive(1, make_tag(TagSpace::kReduce, 8), data);
      wait_for(*transport, 1);
    });
    heard.count_down();
  });
  EXPECT_THAT(said, HasSubstr("rank 1 (host local1)"));
  EXPECT_THAT(said, HasSubstr("a message (channel 1, number 8)"));
}

TEST(VerbsFaults, MemoryThatIsTakenBackWhileAPeerWritesThereEndsBoth) {
  constexpr std::size_t kSize = 64 << 20;
  std::vector<std::string> said(2);
  std::latch ended(2);
  on_bootstraps(2, [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    const auto transport = connect(bootstrap);
    transport->limit_messages({.longest = 64_MiB, .early = 64_MiB});
    const int rank = bootstrap->peers().rank;
    std::vector<std::byte> data(kSize, rank == 0 ? std::byte{1} : std::byte{0});
    if (rank == 1) transport->register_memory(data);
    const ErrorCode code = rank == 0 ? ErrorCode::kConflict : ErrorCode::kPeerLost;
    said[static_cast<std::size_t>(rank)] = complaint_of(code, [&] {
      if (rank == 0) {
        transport->send(1, kTag, data);
      } else {
        transport->receive(0, kTag, data);
        // Granted, and the first of it has come; the rest takes much longer.
        while (data.front() != std::byte{1}) EXPECT_TRUE(transport->wait(Clock::now()).empty());
        transport->unregister_memory(data);
      }
      wait_for(*transport, 1);
    });
    ended.arrive_and_wait();
  });
  EXPECT_THAT(said[0], HasSubstr("rank 1 (host local1)"));
  EXPECT_THAT(said[0], HasSubstr("write of a message of 67108864 B (channel 1, number 7)"));
  EXPECT_THAT(said[1], HasSubstr("rank 0 (host local0)"));
  EXPECT_THAT(said[1], HasSubstr("a message of 67108864 B (channel 1, number 7)"));
}

}  // namespace
}  // namespace commtune::tests
