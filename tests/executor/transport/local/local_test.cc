#include "executor/transport/local/local.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "perfmodel/base/error.h"

namespace commtune::tests {
namespace {

void expect_lost(const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_STREQ(error.what(), "lost rank 1 (host local1): it has left in the middle of a transfer");
  }
}

TEST(LocalTransport, NamesTheRankThatLeftBeforeItSentOrTookWhatItWasTo) {
  std::array<std::byte, 8> data{};
  const Tag tag = make_tag(TagSpace::kReduce, 0);
  {
    auto ends = make_local_transports(2);
    ends[0]->receive(1, tag, data);
    ends[1].reset();
    expect_lost([&] { ends[0]->wait(Clock::now()); });
  }
  {
    auto ends = make_local_transports(2, {.send_ends = LocalOptions::SendEnds::kWhenReceived});
    ends[0]->send(1, tag, data);
    ends[1].reset();
    expect_lost([&] { ends[0]->wait(Clock::now()); });
  }
  auto ends = make_local_transports(2);
  ends[1].reset();
  expect_lost([&] { ends[0]->send(1, tag, data); });
}

TEST(LocalTransport, ARankThatOwesNothingMayLeave) {
  auto ends = make_local_transports(3, {.send_ends = LocalOptions::SendEnds::kWhenReceived});
  const Tag tag = make_tag(TagSpace::kReduce, 0);
  std::array<std::byte, 8> data{};
  ends[1]->send(0, tag, data);
  ends[1].reset();
  // What it has sent is there, and another one is still waited for.
  const TransferId taken = ends[0]->receive(1, tag, data);
  ends[0]->receive(2, tag, data);
  EXPECT_EQ(ends[0]->wait(Clock::now()).front().transfer, taken);
  EXPECT_TRUE(ends[0]->wait(Clock::now()).empty());
}

}  // namespace
}  // namespace commtune::tests
