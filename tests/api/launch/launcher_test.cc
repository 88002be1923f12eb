#include "api/launch/launcher.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

/// A shell script in the place of mpirun.
class Launch : public ::testing::Test {
 protected:
  Launch() { std::filesystem::create_directories(folder_); }
  ~Launch() override { std::filesystem::remove_all(folder_); }

  LaunchOptions options_for(const std::string& script) const {
    const std::string program = folder_ / "mpirun";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0700);
    LaunchOptions options;
    options.mpirun.program = program;
    return options;
  }
  ErrorCode error_of(const std::string& script, const LaunchReportHandler& on_report) {
    try {
      launch({}, options_for(script), on_report, cancellation_);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kNotFound;  // no error
  }

  const std::string started_ = "echo '" + to_line(Started{"1", {"localhost", "localhost"}}) + "'\n";
  const std::string cut_short_ = "printf '" + to_line(Finished{{1, 2, 3}}).substr(0, 30) + "'";
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("commtune_launch_" + std::to_string(::getpid()));
  Cancellation cancellation_;
};

TEST_F(Launch, AReportThatIsCutShortByTheEndIsNoMistake) {
  const std::string until_told = "told() { " + cut_short_ + "; exit 0; }\ntrap told USR1\n";
  const std::string script = until_told + started_ + "while true; do sleep 0.01; done";
  EXPECT_EQ(error_of(script, [&](const LaunchReport&) { cancellation_.cancel(); }), ErrorCode::kInterrupted);
}

TEST_F(Launch, AReportThatIsCutShortOtherwiseIs) {
  EXPECT_EQ(error_of(started_ + cut_short_, {}), ErrorCode::kBadInput);
  EXPECT_EQ(error_of(started_ + cut_short_ + "\necho\necho '" + to_line(Finished{7}) + "'", {}),
            ErrorCode::kBadInput);
}

TEST_F(Launch, WhatCutAReportShortIsSaidInItsPlace) {
  const std::string failed = "echo '" + to_line(Failed{ErrorCode::kPeerLost, "rank 2 went away"}) + "' >&2\n";
  EXPECT_EQ(error_of(started_ + cut_short_ + "\necho\n" + failed + "exit 7", {}), ErrorCode::kPeerLost);
  EXPECT_EQ(error_of(started_ + cut_short_ + "\nkill -9 $$", {}), ErrorCode::kUnavailable);
}

/// Repeats what it is told as a thing found, until it is told to stop.
const std::string kEcho =
    "while IFS= read -r line; do\n"
    "  case \"$line\" in\n"
    "  '\"stop\"') echo '{\"report\":\"finished\",\"result\":7}'; exit 0;;\n"
    "  '\"die\"') echo '{\"report\":\"failed\",\"code\":\"peer_lost\",\"message\":\"gone\"}'; exit 7;;\n"
    "  *) echo \"{\\\"report\\\":\\\"found\\\",\\\"kind\\\":\\\"echo\\\",\\\"value\\\":$line}\";;\n"
    "  esac\n"
    "done\n";

class LaunchedJobTest : public Launch {
 protected:
  /// What is heard until that is said.
  void hear(LaunchedJob& job, const std::string& text) {
    job.listen(
        [&](const LaunchReport& report) {
          if (const auto* found = std::get_if<Found>(&report)) heard_.push_back(found->value);
        },
        [&] { return !heard_.empty() && heard_.back() == text; });
  }

  std::vector<nlohmann::json> heard_;
};

TEST_F(LaunchedJobTest, IsToldMoreWhileItRuns) {
  LaunchedJob job("order", options_for(started_ + kEcho), cancellation_);
  hear(job, "order");
  for (const char* text : {"one", "two"}) {
    job.tell(text);
    hear(job, text);
  }
  EXPECT_EQ(heard_, (std::vector<nlohmann::json>{"order", "one", "two"}));
  const std::string longer(300'000, 'x');  // than a pipe holds
  job.tell(longer);
  hear(job, longer);
  job.tell("stop");
  EXPECT_EQ(job.finish({}), 7);
}

TEST_F(LaunchedJobTest, ItsFailureIsThrownByWhoListens) {
  LaunchedJob job("order", options_for(started_ + kEcho), cancellation_);
  hear(job, "order");
  job.tell("die");
  try {
    hear(job, "more");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_STREQ(error.what(), "gone");
  }
}

TEST_F(LaunchedJobTest, AReportThatIsLostWhileTheJobGoesOnIsAMistake) {
  LaunchedJob job("order", options_for(started_ + cut_short_ + "\necho\n" + kEcho), cancellation_);
  try {
    hear(job, "order");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
  }
}

TEST_F(LaunchedJobTest, AnEndInOrderIsNoAnswer) {
  LaunchedJob job("order", options_for(started_ + kEcho), cancellation_);
  job.tell("stop");
  EXPECT_THROW(hear(job, "more"), Error);
}

TEST_F(LaunchedJobTest, GoesWithItsObject) {
  const std::string file = folder_ / "pid";
  {
    LaunchedJob job("order", options_for("echo $$ > '" + file + "'\n" + started_ + kEcho), cancellation_);
    hear(job, "order");
  }
  pid_t pid = 0;
  std::ifstream(file) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace commtune::api
