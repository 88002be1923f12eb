#include "executor/transport/verbs/work_failure.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <string>

namespace commtune::verbs {
namespace {

Peers two_hosts() { return {.rank = 0, .hosts = {"a", "b"}, .node = {0, 1}}; }

TEST(WorkFailure, NamesPeerHostOperationMessageAndStatus) {
  const Error error = error_of({.operation = Operation::kWrite,
                                .status = IBV_WC_RETRY_EXC_ERR,
                                .status_text = "transport retry counter exceeded",
                                .vendor = 0x81,
                                .message = matching::Envelope{4096, make_tag(TagSpace::kReduce, 7)}},
                               two_hosts(), 1);
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_EQ(
      std::string(error.what()),
      "lost rank 1 (host b): write of a message of 4096 B (channel 1, number 7): transport retry counter "
      "exceeded (verbs status 12, vendor 0x81)");
}

TEST(WorkFailure, SaysWhatWasWaitedForFromAPeerThatGivesNoSign) {
  const WorkFailure failure{.operation = Operation::kLook,
                            .status = IBV_WC_RETRY_EXC_ERR,
                            .status_text = "transport retry counter exceeded",
                            .message = matching::Envelope{4096, make_tag(TagSpace::kReduce, 7)},
                            .is_awaited = true};
  EXPECT_EQ(
      std::string(error_of(failure, two_hosts(), 1).what()),
      "lost rank 1 (host b): no sign of life while waiting for a message of 4096 B (channel 1, number 7): "
      "transport retry counter exceeded (verbs status 12, vendor 0x0)");
}

TEST(WorkFailure, NamesThisRankWhereItsOwnLinkIsDown) {
  WorkFailure failure{.operation = Operation::kWrite,
                      .status_text = "",
                      .message = matching::Envelope{4096, make_tag(TagSpace::kReduce, 7)},
                      .own_port_down = "mlx5_0:1"};
  // Some cards say that the peer does not answer, others (rxe) that they failed themselves.
  for (const int status : {IBV_WC_RETRY_EXC_ERR, IBV_WC_LOC_QP_OP_ERR}) {
    failure.status = status;
    const Error error = error_of(failure, two_hosts(), 1);
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_TRUE(
        std::string(error.what())
            .starts_with("rank 0 (host a) has lost its link (mlx5_0:1) to rank 1 (host b): write of a "
                         "message of 4096 B (channel 1, number 7): "))
        << error.what();
  }
  failure.status = IBV_WC_REM_ACCESS_ERR;
  EXPECT_TRUE(std::string(error_of(failure, two_hosts(), 1).what()).starts_with("cannot go on with rank 1"))
      << "the peer has answered";
  failure.status = IBV_WC_LOC_PROT_ERR;
  failure.own_port_down.clear();
  EXPECT_TRUE(std::string(error_of(failure, two_hosts(), 1).what())
                  .starts_with("the card of rank 0 (host a) failed towards rank 1 (host b): write of"));
}

TEST(WorkFailure, SaysNoSizeWhereNothingHasCome) {
  const WorkFailure failure{.operation = Operation::kReceive,
                            .status = IBV_WC_REM_OP_ERR,
                            .status_text = "remote operation error",
                            .message = matching::Envelope{0, make_tag(TagSpace::kReduce, kAnyNumber)},
                            .is_awaited = true};
  EXPECT_EQ(std::string(error_of(failure, two_hosts(), 1).what()),
            "cannot go on with rank 1 (host b): receive while waiting for a message (channel 1, any number): "
            "remote operation error (verbs status 11, vendor 0x0)");
}

TEST(WorkFailure, IsRaisedWithTheMessageThatItIsOf) {
  const Error error(ErrorCode::kPeerLost, "gone");
  const Tag tag = make_tag(TagSpace::kDistribute, 5);
  try {
    raise(error, matching::Envelope{64, tag});
  } catch (const MessageError& raised) {
    EXPECT_EQ(raised.tag(), tag);
    EXPECT_EQ(raised.code(), ErrorCode::kPeerLost);
    EXPECT_EQ(std::string(raised.what()), "gone");
  }
  EXPECT_THROW(raise(error, std::nullopt), Error);
}

TEST(WorkFailure, TellsAPeerThatIsGoneFromOneThatMisbehavesAndFromOwnTrouble) {
  const auto code = [](int status) {
    return error_of({.status = status, .status_text = "", .message = {}}, two_hosts(), 1).code();
  };
  EXPECT_EQ(code(IBV_WC_RETRY_EXC_ERR), ErrorCode::kPeerLost);
  EXPECT_EQ(code(IBV_WC_RNR_RETRY_EXC_ERR), ErrorCode::kPeerLost);
  EXPECT_EQ(code(IBV_WC_REM_ACCESS_ERR), ErrorCode::kConflict);
  EXPECT_EQ(code(IBV_WC_LOC_PROT_ERR), ErrorCode::kUnavailable);
  EXPECT_TRUE(is_aftermath(IBV_WC_WR_FLUSH_ERR));
}

TEST(RetryRule, DoesNotTryWithoutEnd) { EXPECT_LT(RetryRule{}.tries, 7) << "soft-RoCE never gives up then"; }

TEST(RetryRule, GivesUpWithinTheLimit) {
  // 7 times 4.096 us * 2^18: 7.52 s; with 2^19 it would be 15.0 s.
  EXPECT_EQ(retry_rule(Seconds{10}).timeout, 18);
  EXPECT_NEAR(retry_rule(Seconds{10}).patience().count(), 7.52, 0.01);
  for (const double limit : {0.1, 0.5, 1.0, 5.0, 60.0})
    EXPECT_LE(retry_rule(Seconds{limit}).patience().count(), limit);
  EXPECT_EQ(retry_rule(Seconds{1e-6}).timeout, 8) << "cards know no shorter one";
  EXPECT_EQ(retry_rule(Seconds{1e6}).timeout, 22) << "nor do we wait for hours";
}

}  // namespace
}  // namespace commtune::verbs
