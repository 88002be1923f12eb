#include "store/stored_replies.h"

#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::IsError;
using tests::memory_store;
using tests::noon;

TEST(StoredReplies, AreGivenAgainForTheSameRequest) {
  Store store = memory_store();
  StoredReplies answers(store);
  EXPECT_EQ(answers.claim({"k", "digest"}, noon()).claim, Claim::kOurs);
  EXPECT_EQ(answers.claim({"k", "digest"}, noon()).claim, Claim::kPending);
  const std::string body("{\"id\": 3}\0after", 15);
  answers.answer("k", {.status = 201, .content_type = "application/json", .body = body});
  const auto again = answers.claim({"k", "digest"}, noon());
  ASSERT_EQ(again.claim, Claim::kAnswered);
  EXPECT_EQ(again.answer->status, 201);
  EXPECT_EQ(again.answer->content_type, "application/json");
  EXPECT_EQ(again.answer->body, body);
}

TEST(StoredReplies, AreNotGivenForAnotherRequest) {
  Store store = memory_store();
  StoredReplies answers(store);
  answers.claim({"k", "digest"}, noon());
  EXPECT_EQ(answers.claim({"k", "other"}, noon()).claim, Claim::kOtherRequest);
  answers.answer("k", {});
  EXPECT_EQ(answers.claim({"k", "other"}, noon()).claim, Claim::kOtherRequest);
}

TEST(StoredReplies, AClaimThatWasGivenUpOrAbandonedIsFree) {
  Store store = memory_store();
  StoredReplies answers(store);
  answers.claim({"released", "digest"}, noon());
  answers.release("released");
  EXPECT_EQ(answers.claim({"released", "digest"}, noon()).claim, Claim::kOurs);
  const Timestamp later = noon() + std::chrono::hours(1);
  EXPECT_EQ(answers.claim({"released", "digest"}, later).claim, Claim::kOurs);
}

TEST(StoredReplies, AreNotReleasedOrAnsweredTwice) {
  Store store = memory_store();
  StoredReplies answers(store);
  answers.claim({"k", "digest"}, noon());
  answers.answer("k", {.status = 200});
  answers.release("k");
  EXPECT_EQ(answers.claim({"k", "digest"}, noon()).claim, Claim::kAnswered);
  EXPECT_THAT(error_of([&] { answers.answer("k", {}); }), IsError(ErrorCode::kConflict, "answered already"));
  EXPECT_THAT(error_of([&] { answers.answer("unclaimed", {}); }), IsError(ErrorCode::kConflict, "unclaimed"));
}

TEST(StoredReplies, AreForgottenAfterAWhile) {
  Store store = memory_store();
  StoredReplies answers(store);
  answers.claim({"old", "digest"}, noon());  // at noon
  answers.claim({"new", "digest"}, noon());  // a second later
  EXPECT_EQ(answers.forget(noon() + std::chrono::seconds(1)), 1);
  EXPECT_EQ(answers.claim({"old", "other"}, noon()).claim, Claim::kOurs);
  EXPECT_EQ(answers.claim({"new", "digest"}, noon()).claim, Claim::kPending);
}

}  // namespace
}  // namespace commtune
