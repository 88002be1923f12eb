#include "api/launch/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

/// A shell script as the child; tests may use a shell, the product does not.
ProcessOptions script(const std::string& text) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", text};
  return options;
}

struct Heard {
  std::vector<std::string> output, error;
  ProcessHooks hooks() {
    ProcessHooks made;
    made.on_output = [this](std::string_view line) { output.emplace_back(line); };
    made.on_error = [this](std::string_view line) { error.emplace_back(line); };
    return made;
  }
};

TEST(Process, HandsLinesOnAndTheLastOneWithoutAnEnd) {
  Heard heard;
  Cancellation never;
  const ProcessEnd end =
      run_process(script("echo one; echo two >&2; printf three; exit 7"), heard.hooks(), never);
  EXPECT_THAT(heard.output, ElementsAre("one", "three"));
  EXPECT_THAT(heard.error, ElementsAre("two"));
  EXPECT_EQ(end.status, 7);
  EXPECT_EQ(end.signal, 0);
  EXPECT_FALSE(end.cancelled);
}

TEST(Process, WritesAllItsInputEvenWhenThatFillsThePipe) {
  Heard heard;
  Cancellation never;
  ProcessOptions options = script("wc -c");
  options.input = std::string(3'000'000, 'x');
  run_process(options, heard.hooks(), never);
  EXPECT_THAT(heard.output, ElementsAre(HasSubstr("3000000")));
}

TEST(Process, InputMayStayOpenUntilTheChildHasEnded) {
  Heard heard;
  Cancellation never;
  ProcessOptions options = script("read line; read -t 1 more; echo $line $?");  // more than 128: no end came
  options.argv.front() = "bash";
  options.input = "order\n";
  options.ends_input = false;
  run_process(options, heard.hooks(), never);
  EXPECT_THAT(heard.output, ElementsAre("order 142"));
}

TEST(Process, AChildThatDoesNotReadItsInputIsNoFailure) {
  Heard heard;
  Cancellation never;
  ProcessOptions options = script("exit 0");
  options.input = std::string(3'000'000, 'x');
  EXPECT_EQ(run_process(options, heard.hooks(), never).status, 0);
}

TEST(Process, AMissingProgramIsNamed) {
  Cancellation never;
  ProcessOptions options;
  options.argv = {"/nowhere/mpirun"};
  try {
    run_process(options, {}, never);
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/mpirun: No such file"));
  }
}

TEST(Process, ArgumentsAreNotRead) {
  Heard heard;
  Cancellation never;
  ProcessOptions options;
  options.argv = {"/bin/echo", "$HOME; `id` 'x'"};
  run_process(options, heard.hooks(), never);
  EXPECT_THAT(heard.output, ElementsAre("$HOME; `id` 'x'"));
}

TEST(Process, CancelledItIsAskedAndEndsInItsOwnWay) {
  Cancellation cancellation;
  Heard heard;
  ProcessHooks hooks = heard.hooks();
  hooks.on_output = [&](std::string_view line) {
    heard.output.emplace_back(line);
    if (line == "ready") cancellation.cancel();
  };
  const ProcessEnd end = run_process(
      script("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done"), hooks, cancellation);
  EXPECT_TRUE(end.cancelled);
  EXPECT_EQ(end.status, 5);
  EXPECT_THAT(heard.output, ElementsAre("ready", "bye"));
}

TEST(Process, OneThatDoesNotListenIsKilledAfterItsGrace) {
  Cancellation cancellation;
  ProcessOptions options = script("trap '' TERM; echo ready; while :; do sleep 0.02; done");
  options.ending = {{SIGTERM, milliseconds(50)}};
  ProcessHooks hooks;
  hooks.on_output = [&](std::string_view) { cancellation.cancel(); };
  EXPECT_EQ(run_process(options, hooks, cancellation).signal, SIGKILL);
}

TEST(Process, EachFurtherRequestGoesAStepOnAtOnce) {
  Cancellation cancellation;
  ProcessOptions options = script("trap '' USR1 TERM; echo ready; while :; do sleep 0.02; done");
  options.ending = {{SIGUSR1, std::chrono::hours(1)}, {SIGTERM, std::chrono::hours(1)}};
  ProcessHooks hooks;
  hooks.on_output = [&](std::string_view) {
    for (int i = 0; i < 3; ++i) cancellation.cancel();
  };
  EXPECT_EQ(run_process(options, hooks, cancellation).signal, SIGKILL);
}

TEST(Process, PastItsDeadlineItIsEnded) {
  Cancellation never;
  ProcessHooks hooks;
  hooks.deadline = [] { return std::optional(std::chrono::steady_clock::now()); };
  const ProcessEnd end = run_process(script("exec sleep 600"), hooks, never);
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.signal, SIGTERM);
}

TEST(Process, AHookThatThrowsEndsTheChildAndIsPassedOn) {
  Cancellation never;
  ProcessHooks hooks;
  hooks.on_output = [](std::string_view) { throw std::runtime_error("disk full"); };
  EXPECT_THROW(run_process(script("echo x; exec sleep 600"), hooks, never), std::runtime_error);
}

TEST(Process, AGrandchildThatHoldsTheStreamsDoesNotHoldUs) {
  Heard heard;
  Cancellation never;
  run_process(script("sleep 3600 & echo $!; exit 0"), heard.hooks(), never);
  ASSERT_EQ(heard.output.size(), 1U);
  EXPECT_EQ(::kill(std::stoi(heard.output.front()), SIGKILL), 0) << "it still runs, and we are back";
}

TEST(Interrupt, SignalsPressTheButtonOnlyWhileTheGuardLives) {
  Cancellation button;
  {
    const InterruptGuard guard(button);
    std::raise(SIGINT);
    std::raise(SIGTERM);
  }
  EXPECT_EQ(button.requests(), 2);
}

}  // namespace
}  // namespace commtune::api
