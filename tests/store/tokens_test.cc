#include "store/tokens.h"

#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::IsError;
using tests::memory_store;

NewToken small_token() {
  return {.name = "scheduler",
          .scopes = {"read", "plan"},
          .salt = {std::byte{0}, std::byte{255}},
          .hash = {std::byte{1}, std::byte{0}, std::byte{2}},
          .expires = tests::noon() + std::chrono::hours(1)};
}

TEST(Tokens, AreReadBackToTheLastByte) {
  Store store = memory_store();
  Tokens tokens(store);
  const auto row = tokens.find(tokens.add(small_token()));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->name, "scheduler");
  EXPECT_EQ(row->scopes, small_token().scopes);
  EXPECT_EQ(row->salt, small_token().salt);
  EXPECT_EQ(row->hash, small_token().hash);
  EXPECT_EQ(row->expires, small_token().expires);
  EXPECT_FALSE(row->revoked);
  EXPECT_FALSE(tokens.find(99));
}

TEST(Tokens, AreValidUntilTheyExpireOrAreRevoked) {
  Store store = memory_store();
  Tokens tokens(store);
  const RowId id = tokens.add(small_token());
  const auto hour = std::chrono::hours(1);
  EXPECT_TRUE(tokens.find(id)->valid(tests::noon()));
  EXPECT_FALSE(tokens.find(id)->valid(tests::noon() + hour));
  tokens.revoke(id);
  const auto revoked = tokens.find(id)->revoked;
  EXPECT_FALSE(tokens.find(id)->valid(tests::noon()));
  tokens.revoke(id);
  EXPECT_EQ(tokens.find(id)->revoked, revoked);
  EXPECT_EQ(tokens.list().rows.size(), 1U);
}

TEST(Tokens, RefuseWhatProtectsNothing) {
  Store store = memory_store();
  Tokens tokens(store);
  const auto refused = [&](const std::function<void(NewToken&)>& spoil, const char* field) {
    NewToken token = small_token();
    spoil(token);
    EXPECT_THAT(error_of([&] { tokens.add(token); }), IsError(ErrorCode::kBadInput, field));
  };
  refused([](NewToken& t) { t.name.clear(); }, "token.name");
  refused([](NewToken& t) { t.scopes.clear(); }, "token.scopes");
  refused([](NewToken& t) { t.salt.clear(); }, "token.salt");
  refused([](NewToken& t) { t.hash.clear(); }, "token.hash");
  EXPECT_THAT(error_of([&] { tokens.revoke(5); }), IsError(ErrorCode::kNotFound, "token 5"));
}

}  // namespace
}  // namespace commtune
