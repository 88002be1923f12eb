#include "executor/roads/parameter_server/held_sums.h"

#include <gmock/gmock.h>

#include <array>
#include <vector>

#include "tests/executor/recording_transport.h"

namespace commtune::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Of the server on rank 0 of three workers: two chunks of one number.
class HeldSumsTest : public ::testing::Test {
 protected:
  /// The sum of a chunk, all bytes of which have this value, is complete.
  void complete(std::size_t chunk, int value) {
    sums_.emplace_back(8, std::byte(value));
    Task task = held_.complete(0, chunk, replies_.start({}), Buffer(sums_.back()));
    task.start();
  }
  void ask(int worker) {
    Task task = held_.ask(worker, 0);
    task.start();
  }
  void ask_here() {
    answered_.hold();
    answered_.hold();
    Task task = held_.ask_here(0, {Buffer(own_[0]), Buffer(own_[1])}, answered_);
    task.start();
  }
  /// To whom, and the value of what was sent.
  std::vector<std::pair<int, int>> sent() const {
    std::vector<std::pair<int, int>> all;
    for (const auto& started : transport_.started())
      all.emplace_back(started.peer, static_cast<int>(*started.address));
    return all;
  }
  std::vector<int> own() const { return {static_cast<int>(own_[0][0]), static_cast<int>(own_[1][0])}; }

  RecordingTransport transport_{peers_of(0, {0, 1, 2})};
  Communicator communicator_{transport_};
  PullReplies replies_;
  HeldSums held_{communicator_, 3, {2}};
  std::vector<std::vector<std::byte>> sums_;
  std::array<std::array<std::byte, 8>, 2> own_{};
  Group answered_;
};

TEST_F(HeldSumsTest, AnswersWhoHasAskedForWhatIsCompleteInTheOrderOfChunks) {
  sums_.reserve(2);
  ask(1);
  complete(1, 21);
  EXPECT_THAT(sent(), IsEmpty());  // chunk 0 comes first
  complete(0, 20);
  EXPECT_THAT(sent(), ElementsAre(Pair(1, 20), Pair(1, 21)));
  ask(2);
  EXPECT_THAT(sent(), ElementsAre(Pair(1, 20), Pair(1, 21), Pair(2, 20), Pair(2, 21)));
  ask_here();
  EXPECT_THAT(own(), ElementsAre(20, 21));
  EXPECT_EQ(answered_.pending(), 0);
}

TEST_F(HeldSumsTest, AWorkerThatIsAheadDoesNotGetTheSumOfBeforeOnceMore) {
  sums_.reserve(4);
  ask(1);
  complete(0, 20);
  complete(1, 21);
  ask_here();
  ask(1);  // for the next iteration, while worker 2 has not asked yet
  ask_here();
  EXPECT_THAT(sent(), ElementsAre(Pair(1, 20), Pair(1, 21)));
  EXPECT_EQ(answered_.pending(), 2);
  ask(2);
  EXPECT_THAT(sent(), ElementsAre(Pair(1, 20), Pair(1, 21), Pair(2, 20), Pair(2, 21)));
  complete(0, 30);
  complete(1, 31);
  EXPECT_THAT(own(), ElementsAre(30, 31));
  EXPECT_EQ(sent().back(), std::pair(1, 31));
  EXPECT_EQ(answered_.pending(), 0);
}

}  // namespace
}  // namespace commtune::tests
