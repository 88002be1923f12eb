// Every rank of an mpirun job runs this program; a test that fails on any rank fails the job.

#include "executor/transport/mpi/mpi.h"

#include <gtest/gtest.h>

#include "tests/executor/transport/conformance.h"

namespace commtune::testing {
namespace {

std::unique_ptr<Transport> transport;

class MpiTransportTest : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(MpiTransportTest, Conforms) {
  synchronize(*transport);  // what another rank sends in this case must not meet a receive of the one before
  GetParam().body(*transport);
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiTransportTest, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace commtune::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  commtune::testing::transport = commtune::make_mpi_transport();
  // One voice: the first rank's, and of the others what fails.
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (commtune::testing::transport->peers().rank != 0)
    delete listeners.Release(listeners.default_result_printer());
  const int status = RUN_ALL_TESTS();
  if (status != 0) commtune::testing::transport->abort("a test failed");
  commtune::testing::transport.reset();
  return status;
}
