// Where the token of a start is kept, and that nobody can have it written or read elsewhere.

#include "api/rest/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "api/actions/tokens.h"
#include "tests/perfmodel/throws.h"
#include "tests/store/support.h"

namespace commtune::api::rest {
namespace {

namespace fs = std::filesystem;

class TokenInAFolder : public testing::Test {
 protected:
  fs::path path() const { return folder_ / "commtune" / "token"; }
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static unsigned mode_of(const fs::path& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0;
  }

  tests::TempFolder folder_;
};

class KeptToken : public TokenInAFolder {};
class HostileTokenFile : public TokenInAFolder {};

TEST(StartToken, IsDifferentEachTimeAndNoIdOfTheStore) {
  const std::string one = make_start_secret(), other = make_start_secret();
  EXPECT_THAT(one, testing::MatchesRegex("ct_start_[0-9a-f]{64}"));
  EXPECT_NE(one, other);
  EXPECT_EQ(token_id(one), std::nullopt);
  EXPECT_TRUE(is_start_secret(one));
  EXPECT_FALSE(is_start_secret("ct_12_ab"));
  EXPECT_TRUE(is_same_secret(one, one));
  EXPECT_FALSE(is_same_secret(one, other));
  EXPECT_FALSE(is_same_secret(one, one.substr(1)));
}

TEST(KeptTokenPath, IsInTheUsersRuntimeDirectoryOrState) {
  EXPECT_EQ(start_token_path({{"XDG_RUNTIME_DIR", "/run/user/7"}, {"HOME", "/home/u"}}),
            "/run/user/7/commtune/token");
  EXPECT_EQ(start_token_path({{"XDG_STATE_HOME", "/state"}, {"HOME", "/home/u"}}), "/state/commtune/token");
  EXPECT_EQ(start_token_path({{"XDG_RUNTIME_DIR", ""}, {"HOME", "/home/u"}}),
            "/home/u/.local/state/commtune/token");
  EXPECT_EQ(start_token_path({}), "");
}

TEST_F(KeptToken, IsThereForItsUserOnlyUntilTheEnd) {
  {
    const TokenFile file(path(), "ct_start_1");
    EXPECT_EQ(text_of(path()), "ct_start_1\n");
    EXPECT_EQ(mode_of(path()), 0600U);
    EXPECT_EQ(mode_of(path().parent_path()), 0700U);
  }
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_TRUE(fs::is_empty(path().parent_path()));
}

TEST_F(KeptToken, OfALaterStartStays) {
  auto first = std::make_unique<TokenFile>(path(), "ct_start_1");
  const TokenFile second(path(), "ct_start_2");
  first.reset();
  EXPECT_EQ(text_of(path()), "ct_start_2\n");
}

TEST_F(HostileTokenFile, LinkInItsPlaceIsReplacedAndNotFollowed) {
  const fs::path victim = folder_ / "victim";
  std::ofstream(victim) << "mine";
  fs::create_directory(path().parent_path());
  fs::permissions(path().parent_path(), fs::perms::owner_all);
  fs::create_symlink(victim, path());
  {
    const TokenFile file(path(), "ct_start_1");
    EXPECT_EQ(text_of(victim), "mine");
    EXPECT_FALSE(fs::is_symlink(path()));
    EXPECT_EQ(mode_of(path()), 0600U);
  }
  EXPECT_EQ(text_of(victim), "mine");
}

TEST_F(HostileTokenFile, LinkInPlaceOfItsFolderIsRefused) {
  fs::create_directory(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", path().parent_path());
  EXPECT_THAT(error_text(ErrorCode::kUnavailable, [&] { TokenFile(path(), "ct_start_1"); }),
              testing::HasSubstr("no link"));
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
}

TEST_F(HostileTokenFile, FolderThatOthersMayWriteToIsRefused) {
  fs::create_directory(path().parent_path());
  fs::permissions(path().parent_path(), fs::perms::all);
  EXPECT_THAT(error_text(ErrorCode::kUnavailable, [&] { TokenFile(path(), "ct_start_1"); }),
              testing::HasSubstr("nobody else may write"));
  EXPECT_TRUE(fs::is_empty(path().parent_path()));
}

TEST_F(HostileTokenFile, FolderOfAnotherUserIsRefused) {
  fs::create_directory(path().parent_path());
  fs::permissions(path().parent_path(), fs::perms::owner_all);
  if (::chown(path().parent_path().c_str(), 65534, 65534) != 0)
    GTEST_SKIP() << "needs root, to give a folder to another user";
  EXPECT_THAT(error_text(ErrorCode::kUnavailable, [&] { TokenFile(path(), "ct_start_1"); }),
              testing::HasSubstr("must belong to the user"));
  EXPECT_TRUE(fs::is_empty(path().parent_path()));
}

TEST_F(HostileTokenFile, LinkInItsPlaceAtTheEndIsLeftAlone) {
  const fs::path victim = folder_ / "victim";
  std::ofstream(victim) << "ct_start_1\n";
  {
    const TokenFile file(path(), "ct_start_1");
    fs::remove(path());
    fs::create_symlink(victim, path());
  }
  EXPECT_EQ(text_of(victim), "ct_start_1\n");
}

}  // namespace
}  // namespace commtune::api::rest
