#include "api/launch/srun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using testing::Contains;
using testing::Not;
using testing::StartsWith;

MpirunOptions srun_options(const std::string& list) {
  MpirunOptions made;
  made.program = "/usr/bin/srun";
  made.hosts = parse_host_list(list);
  made.rank_command = {"/opt/tune-rank"};
  return made;
}

TEST(Srun, IsChosenByItsName) {
  EXPECT_EQ(launch_command(srun_options("h1:2"), {}), srun_command(srun_options("h1:2")));
  MpirunOptions other = srun_options("h1:2");
  other.program = "/opt/srun/mpirun";
  EXPECT_THAT(launch_command(other, {}), Contains("-np"));
}

TEST(Srun, PlacesRanksOnTheHostsOfTheAllocation) {
  const auto argv = srun_command(srun_options("n[1-2]:2"));
  for (const char* part :
       {"--ntasks=4", "--nodes=2", "--nodelist=n1,n2", "--ntasks-per-node=2", "--mpi=pmix"})
    EXPECT_THAT(argv, Contains(part));
  EXPECT_EQ(argv.back(), "/opt/tune-rank");
}

TEST(Srun, TakesNoMoreHostsThanTheRanksNeed) {
  MpirunOptions few = srun_options("n[1-4]:2");
  few.ranks = 3;
  EXPECT_THAT(srun_command(few), Contains("--nodelist=n1,n2"));
  few.ranks = 9;
  EXPECT_THROW(srun_command(few), Error);
}

TEST(Srun, LeavesThisMachineToTheAllocation) {
  MpirunOptions here = srun_options("h1:1");
  here.hosts = local_hosts(2);
  EXPECT_THAT(srun_command(here), Contains("--ntasks=2"));
  EXPECT_THAT(srun_command(here), Not(Contains(StartsWith("--nodelist"))));
}

TEST(Srun, RefusesDifferentSlots) { EXPECT_THROW(srun_command(srun_options("n1:2,n2:4")), Error); }

}  // namespace
}  // namespace commtune::api
