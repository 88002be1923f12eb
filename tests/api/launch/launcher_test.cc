#include "api/launch/launcher.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

/// A shell script in the place of mpirun.
class Launch : public ::testing::Test {
 protected:
  Launch() { std::filesystem::create_directories(folder_); }
  ~Launch() override { std::filesystem::remove_all(folder_); }

  ErrorCode error_of(const std::string& script, const LaunchReportHandler& on_report) {
    const std::string program = folder_ / "mpirun";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0700);
    LaunchOptions options;
    options.mpirun.program = program;
    try {
      launch({}, options, on_report, cancellation_);
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
}

}  // namespace
}  // namespace commtune::api
