#include "executor/session/exchange.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <latch>
#include <mutex>

#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string text_of(int rank) { return std::string(static_cast<std::size_t>(rank) * 50'000, 'x'); }

TEST(AllGather, GivesEveryTextToEveryRank) {
  // Of 0, 50,000 and 100,000 characters.
  on_ranks(3, [](Transport& transport) {
    Communicator communicator(transport);
    EXPECT_THAT(all_gather(communicator, text_of(communicator.rank()), soon()),
                ElementsAre(text_of(0), text_of(1), text_of(2)));
  });
}

TEST(AllGather, OfOneRankIsItsOwn) {
  on_ranks(1, [](Transport& transport) {
    Communicator communicator(transport);
    EXPECT_THAT(all_gather(communicator, "here", soon()), ElementsAre("here"));
  });
}

TEST(AllGather, NamesARankThatDoesNotAnswer) {
  std::latch sent(1), heard(1);
  on_ranks(3, [&](Transport& transport) {
    Communicator communicator(transport);
    if (communicator.rank() == 2) return heard.wait();
    if (communicator.rank() == 1) {
      EXPECT_THROW(all_gather(communicator, "one", Clock::now()), Error);  // its text has left
      return sent.count_down();
    }
    sent.wait();
    try {
      all_gather(communicator, "none", Clock::now() + std::chrono::milliseconds(50));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
      EXPECT_STREQ(
          error.what(),
          "rank 0 (host local0): receiving from rank 2 (host local2) did not end in time (channel 0, "
          "number 1)");
    }
    heard.count_down();
  });
}

TEST(Gather, GivesEveryTextToTheFirstRankAlone) {
  on_ranks(3, [](Transport& transport) {
    Communicator communicator(transport);
    const auto texts = gather(communicator, text_of(communicator.rank()), soon());
    if (communicator.rank() == 0) {
      EXPECT_THAT(texts, ElementsAre(text_of(0), text_of(1), text_of(2)));
    } else {
      EXPECT_THAT(texts, IsEmpty());
    }
  });
}

TEST(Barrier, LetsNobodyPassBeforeTheLastHasCome) {
  std::atomic<int> come{0};
  on_ranks(4, [&](Transport& transport) {
    Communicator communicator(transport);
    for (int round = 1; round <= 20; ++round) {
      ++come;
      barrier(communicator, soon());
      EXPECT_GE(come, 4 * round);
    }
  });
}

TEST(SurveyClocks, FindsAnOffsetNoFurtherOffThanHalfOfTheFastestTrip) {
  // Ranks that are threads share a clock: the offset is 0, and no trip took longer than all of them did.
  std::mutex mutex;
  std::vector<Clock::time_point> zeros;
  on_ranks(3, [&](Transport& transport) {
    Communicator communicator(transport);
    const Clock::time_point before = Clock::now();
    const ClockSurvey survey = survey_clocks(communicator, soon());
    const Seconds took = Clock::now() - before;
    EXPECT_LE(std::abs(survey.offset_seconds), took.count() / 2);
    if (communicator.rank() == 0) {
      EXPECT_EQ(survey.offset_seconds, 0);
    }
    EXPECT_LE(survey.zero, Clock::now());
    const std::lock_guard lock(mutex);
    zeros.push_back(survey.zero);
  });
  EXPECT_THAT(zeros, ElementsAre(zeros.front(), zeros.front(), zeros.front()));
}

/// What each rank is told when they have these plans.
std::vector<std::string> told(const std::vector<std::string>& plans) {
  std::vector<std::string> texts(plans.size());
  on_ranks(static_cast<int>(plans.size()), [&](Transport& transport) {
    Communicator communicator(transport);
    const auto rank = static_cast<std::size_t>(communicator.rank());
    try {
      agree(communicator, {{"transport", "local"}, {"plan", plans[rank]}}, soon());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConflict);
      texts[rank] = error.what();
    }
  });
  return texts;
}

TEST(Agree, SaysNothingWhereAllHaveTheSame) { EXPECT_THAT(told({"a", "a", "a"}), ElementsAre("", "", "")); }

TEST(Agree, NamesTheFactAndWhoHasWhatOnEveryRank) {
  const std::string text =
      "ranks disagree about the plan: rank 0 (host local0) has a (and 1 more), rank 1 (host local1) has b";
  EXPECT_THAT(told({"a", "b", "a"}), ElementsAre(text, text, text));
}

/// What rank 0 is told where rank 1 says this in place of its facts.
std::string told_by_a_stranger(const std::string& text) {
  std::string said;
  on_ranks(2, [&](Transport& transport) {
    Communicator communicator(transport);
    if (communicator.rank() == 1) {
      all_gather(communicator, text, soon());
      return;
    }
    try {
      agree(communicator, {{"transport", "local"}, {"plan", "a"}}, soon());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadInput);
      said = error.what();
    }
  });
  return said;
}

TEST(Agree, NamesARankThatSaysSomethingElse) {
  for (const char* const text :
       {"", "[", "{}", "[]", R"(["local"])", R"(["local", 1])", R"(["local", "a", "b"])"}) {
    EXPECT_THAT(told_by_a_stranger(text), HasSubstr("rank 1 (host local1)")) << text;
  }
}

}  // namespace
}  // namespace commtune::tests
