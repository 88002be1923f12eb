#include "api/actions/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/view/answer_json.h"
#include "api/view/outcome_json.h"
#include "store/json_text.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"

namespace commtune::api {
namespace {

/// The made-up lab with another answer, with marks and a question.
class KeepAnswerTest : public ::testing::Test {
 protected:
  KeepAnswerTest() {
    make_lab(store_, profile_);
    outcome_.fit = 1;
    outcome_.marks = {true, {"mtu: 1500 when it was fitted, 9000 now"}};
    outcome_.answer = tuner::tune(profile_, store_.current_fit("lab")->snapshot);
  }
  const tuner::Entry& chosen() const { return outcome_.answer.ranking.at(outcome_.answer.chosen); }

  const Profile profile_ = commtune::tests::small_profile();
  const nlohmann::json question_{{"seed", 1}, {"who", "\"me\""}};
  Store store_ = commtune::tests::memory_store();
  TuneOutcome outcome_;
};

TEST_F(KeepAnswerTest, TheChosenPlansRowHasTheWholeAnswer) {
  keep_answer(store_, profile_, {true, 1, question_}, outcome_);
  std::map<std::string, RowId> others = outcome_.plans;
  const RowId id = others.at(chosen().method);
  others.erase(chosen().method);
  EXPECT_EQ(others.size() + 1, outcome_.answer.ranking.size());
  nlohmann::json expected{
      {"chosen", true}, {"plans", others}, {"answer", to_json(outcome_.answer)}, {"question", question_}};
  put_marks(expected["marks"], outcome_.marks);
  EXPECT_EQ(store_.find_plan(id)->ranking, expected);
  EXPECT_EQ(store_.find_plan(id)->plan, chosen().plan);
  EXPECT_EQ(outcome_.document, to_json_but_plan(outcome_.answer));
  const auto texts = outcome_.texts;
  EXPECT_THAT(texts, ::testing::SizeIs(3));
  const nlohmann::json said = answer_to_json(outcome_);
  EXPECT_EQ(json_text(said, texts), json_text(said));
  // Letter by letter as the store writes JSON, so that the question finds it.
  EXPECT_EQ(store_.find_ranking(digest(chosen().plan), "question", question_)->id, id);
  for (const auto& [method, row] : others)
    EXPECT_EQ(store_.find_plan(row)->ranking, nlohmann::json({{"chosen", false}})) << method;
}

TEST_F(KeepAnswerTest, NothingOfAnAnswerIsKeptWhenAPartOfItIsRefused) {
  const auto before = store_.plans().rows.front().id;
  outcome_.answer.ranking.front().plan.messages.clear();
  EXPECT_THROW(keep_answer(store_, profile_, {true, 1, question_}, outcome_), Error);
  EXPECT_EQ(store_.plans().rows.front().id, before);
}

}  // namespace
}  // namespace commtune::api
