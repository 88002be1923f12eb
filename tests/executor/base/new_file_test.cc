#include "executor/base/new_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "executor/session/trace.h"
#include "perfmodel/base/error.h"
#include "tests/perfmodel/synthetic_profile.h"

namespace commtune {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder that others could write to, with a file of ours beside it.
class Folder : public testing::Test {
 protected:
  Folder() {
    fs::remove_all(top_);
    fs::create_directories(shared_);
    std::ofstream(victim_) << "dear";
  }
  ~Folder() override {
    std::error_code ignored;
    fs::remove_all(top_, ignored);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(shared_)) found.push_back(entry.path().filename());
    return found;
  }
  const fs::path top_ = fs::path(testing::TempDir()) / fmt::format("commtune_new_file_{}", ::getpid());
  const fs::path shared_ = top_ / "shared", victim_ = top_ / "victim", out_ = shared_ / "out.json";
};

using NewFileTest = Folder;
using HostileFolder = Folder;

TEST_F(NewFileTest, IsWholeOrAbsent) {
  {
    NewFile file(out_);
    std::fputs("a", file.stream());
    EXPECT_FALSE(fs::exists(out_));
    file.put_in_place();
    EXPECT_EQ(text_of(out_), "a");
    std::fputs("b", file.stream());
  }
  EXPECT_EQ(text_of(out_), "ab");
  { const NewFile never(out_); }
  EXPECT_EQ(text_of(out_), "ab");
  write_file(out_, "c");
  EXPECT_EQ(text_of(out_), "c");
  EXPECT_THAT(names(), testing::ElementsAre("out.json"));
}

TEST_F(NewFileTest, SaysWhatCannotBeWritten) {
  EXPECT_THROW(write_file(top_ / "missing" / "out", ""), Error);
  EXPECT_THROW(write_file(shared_, ""), Error);
  EXPECT_THROW(write_file(shared_ / "", ""), Error);
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(HostileFolder, LinkUnderTheNameIsReplacedNotFollowed) {
  fs::create_symlink(victim_, out_);
  write_file(out_, "new");
  EXPECT_EQ(text_of(victim_), "dear");
  EXPECT_FALSE(fs::is_symlink(out_));
  EXPECT_EQ(text_of(out_), "new");
}

TEST_F(HostileFolder, LinkToNothingMakesNoFileElsewhere) {
  fs::create_symlink(top_ / "made", out_);
  write_file(out_, "new");
  EXPECT_FALSE(fs::exists(top_ / "made"));
}

TEST_F(HostileFolder, LinkToADeviceIsRefused) {
  fs::create_symlink("/dev/null", out_);
  EXPECT_THROW(write_file(out_, "new"), Error);
  EXPECT_TRUE(fs::is_symlink(out_));
  EXPECT_THROW(write_file("/dev/null", "new"), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(HostileFolder, LinkUnderTheNameOfATraceIsNotFollowed) {
  fs::create_symlink(victim_, out_);
  const Profile profile = synthetic_profile(1, Bytes{4}, Seconds{1e-3}, Seconds{1e-3});
  Plan plan;
  plan.messages.push_back({{{0, Bytes{0}, Bytes{4}}}});
  { const TraceWriter trace({out_.string(), 0, "rank 0", {}, 0}, plan, profile); }
  EXPECT_EQ(text_of(victim_), "dear");
  EXPECT_THAT(text_of(out_), testing::HasSubstr("traceEvents"));
}

TEST_F(HostileFolder, LinkInPlaceOfTheFolderComesTooLate) {
  fs::create_directory(top_ / "mine");
  std::ofstream(top_ / "mine" / "out.json") << "dear";
  NewFile file(out_);
  fs::rename(shared_, top_ / "moved");
  fs::create_directory_symlink(top_ / "mine", shared_);
  file.put_in_place();
  EXPECT_EQ(text_of(top_ / "mine" / "out.json"), "dear");
}

}  // namespace
}  // namespace commtune
