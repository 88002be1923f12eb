#include "api/actions/context.h"

#include <gmock/gmock.h>

#include "api/error_status.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using testing::HasSubstr;

class PlacingTest : public testing::Test {
 protected:
  std::map<std::string, std::string> settings_of(const Placing& placing) {
    const Context context{settings_, environment_, store_, cancellation_, {}};
    return transport_settings(context, placing);
  }

  Settings settings_;
  Environment environment_;
  Store store_ = Store::open(":memory:", {});
  Cancellation cancellation_;
};

TEST_F(PlacingTest, ASubnetIsPartOfWhatAClusterIsKnownBy) {
  Placing placing;
  EXPECT_TRUE(settings_of(placing).empty());
  placing.subnet = "10.1.0.0/16";
  EXPECT_EQ(settings_of(placing).at("subnet"), "10.1.0.0/16");
  placing.network_options = "device=mlx5_0";
  EXPECT_EQ(settings_of(placing).at("network_options"), "device=mlx5_0");
}

TEST(ProbedOver, IsFoundAgainAmongAClustersFacts) {
  // Probes write a setting as "setting." and its name.
  EXPECT_EQ(probed_over("tcp", {{"setting.subnet", "10.1.0.0/16"}, {"ranks", "4"}}),
            (ProbedOver{"tcp", "10.1.0.0/16"}));
  EXPECT_EQ(probed_over("mpi", {{"ranks", "4"}}), (ProbedOver{"mpi", ""}));
  EXPECT_EQ(probed_over("verbs", {{"setting.network_options", "device=mlx5_0"}}),
            (ProbedOver{"verbs", "", "device=mlx5_0"}));
  EXPECT_EQ(probed_over("", {}), ProbedOver{});
}

TEST_F(PlacingTest, ATransportThatThisProgramDoesNotHaveIsUnavailable) {
  // A cluster keeps the name of what it was probed over, by whatever program.
  Placing placing;
  placing.network = probed_over("smoke", {}).network.value();
  try {
    placing.check();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(error_status(error.code()).exit_status, 9);
    EXPECT_THAT(error.what(), HasSubstr("transport smoke: this commtune does not have it, but mpi, tcp"));
  }
}

TEST_F(PlacingTest, ATransportOfThreadsIsUnavailableToProcesses) {
  Placing placing;
  placing.network = "local";
  try {
    placing.check();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(),
                HasSubstr("transport local: its ranks are threads of one process, and these are "
                          "processes: use one of mpi, tcp"));
  }
}

TEST_F(PlacingTest, ANetworkWithoutOptionsOfItsOwnTakesNone) {
  Placing placing;
  placing.network_options = "device=mlx5_0";
  try {
    placing.check();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("network_options = device=mlx5_0: --network tcp takes none"));
  }
}

TEST_F(PlacingTest, OpenMpiTakesNoSubnetAndIsToldOtherwise) {
  Placing placing;
  placing.subnet = "10.1.0.0/16";
  EXPECT_NO_THROW(placing.check());
  placing.network = "mpi";
  try {
    placing.check();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("--mpirun-arg=btl_tcp_if_include --mpirun-arg=10.1.0.0/16"));
  }
  placing.subnet.clear();
  EXPECT_NO_THROW(placing.check());
}

}  // namespace
}  // namespace commtune::api
