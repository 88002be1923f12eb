// The texts are Open MPI 4.1's and OpenSSH's own.
#include "api/launch/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace commtune::api {
namespace {

using testing::HasSubstr;

Error told(const std::string& text, bool started = false, bool timed_out = false) {
  Transcript transcript;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) transcript.add(line);
  const HostList hosts = parse_host_list("h1:1,node7:1,node70:1,node8.lab.example:1");
  ProcessEnd end;
  end.status = 1;
  end.timed_out = timed_out;
  return diagnose({transcript, hosts, end, "mpirun", started});
}

constexpr const char* kUnreliable =
    "--------------------------------------------------------------------------\n"
    "ORTE was unable to reliably start one or more daemons.\n"
    "This usually is caused by:\n"
    "* not finding the required libraries and/or binaries on\n";

TEST(Diagnosis, ADeadHostIsNamedWithWhatToDo) {
  const Error error =
      told("ssh: connect to host node7 port 22: No route to host\n" + std::string(kUnreliable));
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("host node7 cannot be reached (ssh: connect to host node7"));
  EXPECT_THAT(error.what(), HasSubstr("take it out of the host list"));
}

TEST(Diagnosis, AnUnknownNameIsNamed) {
  const Error error =
      told("ssh: Could not resolve hostname node70: Name or service not known\n" + std::string(kUnreliable));
  EXPECT_THAT(error.what(), HasSubstr("host node70 cannot be reached"));
}

TEST(Diagnosis, AHostIsKnownByItsShortNameToo) {
  const Error error =
      told("ssh: Could not resolve hostname node8: Name or service not known\r\n" + std::string(kUnreliable));
  EXPECT_THAT(error.what(),
              HasSubstr("host node8.lab.example cannot be reached (ssh: Could not resolve hostname "
                        "node8: Name or service not known);"));
}

TEST(Diagnosis, WithoutSshsWordsAllRemoteHostsAreNamed) {
  const Error error = told(kUnreliable);
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("h1, node7, node70, node8.lab.example"));
}

TEST(Diagnosis, AMissingRankProgramIsNamedWithItsHost) {
  const Error error = told(
      "mpirun was unable to find the specified executable file, and therefore\n"
      "did not launch the job.\n"
      "Node:       node7\n"
      "Executable: /opt/tune-rank\n");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("host node7: cannot execute /opt/tune-rank"));
}

TEST(Diagnosis, AKilledRankIsNamedWithItsHostAndSignal) {
  const Error error = told(
      "mpirun noticed that process rank 2 with PID 0 on node node7 exited on signal 9 (Killed).\n", true);
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("rank 2 on host node7 was ended by signal 9 (Killed)"));
}

TEST(Diagnosis, ALostHostIsNamed) {
  const Error error = told(
      "ORTE has lost communication with a remote daemon.\n\n"
      "  HNP daemon   : [[23461,0],0] on node h1\n"
      "  Remote daemon: [[23461,0],1] on node node7\n",
      true);
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("host node7 was lost"));
}

TEST(Diagnosis, TooFewSlotsAreBadInput) {
  EXPECT_EQ(told("There are not enough slots available in the system to satisfy the 4").code(),
            ErrorCode::kBadInput);
}

TEST(Diagnosis, MissingSshIsSaid) {
  const Error error =
      told("The value of the MCA parameter \"plm_rsh_agent\" was set to a path\nthat could not be found:\n");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("install ssh"));
}

TEST(Diagnosis, TimeoutsSayWhetherTheRanksHadStarted) {
  EXPECT_EQ(told("", false, true).code(), ErrorCode::kTimeout);
  EXPECT_THAT(told("", false, true).what(), HasSubstr("did not start in time"));
  EXPECT_THAT(told("", true, true).what(), HasSubstr("fell silent"));
}

TEST(Diagnosis, WhatMatchesNothingIsToldInMpirunsWordsWithoutItsRules) {
  const Error error = told("------------------------------------------\nsomething new\n\n");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("mpirun ended with status 1 without a result; it said: something new"));
}

}  // namespace
}  // namespace commtune::api
