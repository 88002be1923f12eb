#include "api/launch/mpirun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

MpirunOptions mpirun_options(const std::string& list) {
  MpirunOptions made;
  made.hosts = parse_host_list(list);
  made.rank_command = {"/opt/tune-rank"};
  return made;
}

TEST(Mpirun, FillsTheHostsInOrder) {
  EXPECT_THAT(
      mpirun_command(mpirun_options("h1:4,h2:2"), {}),
      ElementsAre("mpirun", "-np", "6", "--host", "h1:4,h2:2", "--map-by", "slot", "--bind-to", "none",
                  "--mca", "plm_rsh_args", "-o BatchMode=yes -o ConnectTimeout=10", "/opt/tune-rank"));
}

TEST(Mpirun, AllowsTheSuperuserOnlyWhenItIs) {
  LaunchSite site;
  site.superuser = true;
  EXPECT_THAT(mpirun_command(mpirun_options("h1:1"), site), Contains("--allow-run-as-root"));
  site.superuser = false;
  EXPECT_THAT(mpirun_command(mpirun_options("h1:1"), site), Not(Contains("--allow-run-as-root")));
}

TEST(Mpirun, OversubscribesOnlyWhereSlotsSaySo) {
  LaunchSite site;
  site.cores = 2;
  MpirunOptions here;
  here.hosts = local_hosts(4);
  here.rank_command = {"r"};
  EXPECT_THAT(mpirun_command(here, site), Contains("--oversubscribe"));
  here.hosts = local_hosts(2);
  EXPECT_THAT(mpirun_command(here, site), Not(Contains("--oversubscribe")));
}

TEST(Mpirun, LeavesTheRemoteAgentToThoseWhoChoseOne) {
  MpirunOptions chosen = mpirun_options("h1:1,h2:1");
  chosen.remote_agent_chosen = true;
  EXPECT_THAT(mpirun_command(chosen, {}), Not(Contains("plm_rsh_args")));
  chosen.remote_agent_chosen = false;
  chosen.extra = {"--mca", "plm_rsh_agent", "/run/rsh"};
  EXPECT_THAT(mpirun_command(chosen, {}), Not(Contains("plm_rsh_args")));
}

TEST(Mpirun, HandsExtraArgumentsOnUnchanged) {
  MpirunOptions extra = mpirun_options("h1:1");
  extra.extra = {"--mca", "btl", "tcp,self", "-x", "A=b c"};
  const std::vector<std::string> argv = mpirun_command(extra, {});
  const std::vector<std::string> tail(argv.end() - 6, argv.end());
  EXPECT_THAT(tail, ElementsAre("--mca", "btl", "tcp,self", "-x", "A=b c", "/opt/tune-rank"));
}

TEST(Mpirun, AvoidsSingleCopyWhereTheKernelForbidsIt) {
  LaunchSite site;
  site.single_copy = false;
  MpirunOptions here;
  here.hosts = local_hosts(2);
  here.rank_command = {"r"};
  EXPECT_THAT(mpirun_command(here, site), Contains("btl_vader_single_copy_mechanism"));
}

TEST(Mpirun, UnknownSlotsAreLeftToOpenMpi) {
  MpirunOptions unknown;
  unknown.hosts = parse_hostfile("h1\nh2 slots=2\n", "f");
  unknown.rank_command = {"r"};
  const std::vector<std::string> argv = mpirun_command(unknown, {});
  EXPECT_THAT(argv, Contains("h1:*,h2:2"));
  EXPECT_THAT(argv, Not(Contains("-np")));
}

TEST(Mpirun, RefusesMoreRanksThanSlots) {
  MpirunOptions many = mpirun_options("h1:2,h2:2");
  many.ranks = 5;
  try {
    mpirun_command(many, {});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("ranks = 5: the 2 hosts have 4 slots in all"));
  }
}

TEST(Mpirun, IsShownAsAShellWouldReadIt) {
  EXPECT_EQ(quoted({"mpirun", "-x", "A=b c", "it's", "h1:*"}), "mpirun -x 'A=b c' 'it'\\''s' 'h1:*'");
}

}  // namespace
}  // namespace commtune::api
