#include "tests/cluster/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace commtune::cluster {
namespace {

using testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    fabric.add_group({});
    fabric.add_port({}, 0);
    fabric.add_port({}, 0);
  }
  nlohmann::json ask(std::string_view request) {
    return nlohmann::json::parse(handle_request(request, fabric).json);
  }
  std::string error(std::string_view request) { return ask(request).at("error"); }

  Fabric fabric{[](std::size_t, std::span<const std::byte>) {}};
};

TEST_F(ControlTest, StatusListsEveryPort) {
  const auto status = ask("status");
  ASSERT_EQ(status.at("ports").size(), 2U);
  EXPECT_EQ(status.at("ports")[1].at("host"), 2);
  EXPECT_EQ(status.at("ports")[1].at("up_bytes_per_second"), 125'000'000);
  EXPECT_EQ(status.at("groups").size(), 1U);
}

TEST_F(ControlTest, SetChangesOnlyWhatItNames) {
  const auto reply = ask("set 2 down=1000 delay=5000 buffer=77");
  EXPECT_EQ(reply.at("down_bytes_per_second"), 1000);
  EXPECT_EQ(reply.at("delay_ns"), 5000);
  EXPECT_EQ(reply.at("buffer_bytes"), 77);
  EXPECT_EQ(reply.at("up_bytes_per_second"), 125'000'000);
  EXPECT_EQ(fabric.settings(0).down_bytes_per_second, 125'000'000);
}

TEST_F(ControlTest, CutAndRestore) {
  EXPECT_TRUE(ask("cut 1").at("cut").get<bool>());
  EXPECT_TRUE(fabric.settings(0).cut);
  EXPECT_FALSE(ask("restore 1").at("cut").get<bool>());
}

TEST_F(ControlTest, QuitIsSaidToTheOwner) {
  EXPECT_TRUE(handle_request("quit", fabric).quit);
  EXPECT_FALSE(handle_request("status", fabric).quit);
}

TEST_F(ControlTest, RefusesWithAReason) {
  EXPECT_THAT(error(""), HasSubstr("expected: status"));
  EXPECT_THAT(error("dance 1"), HasSubstr("expected: status"));
  EXPECT_THAT(error("cut 3"), HasSubstr("there are 2 hosts"));
  EXPECT_THAT(error("cut h1"), HasSubstr("whole number"));
  EXPECT_THAT(error("set 1 up"), HasSubstr("KEY=NUMBER"));
  EXPECT_THAT(error("set 1 up=0"), HasSubstr("at least 1"));
  EXPECT_THAT(error("set 1 speed=3"), HasSubstr("up, down, delay or buffer"));
}

// The second pair is wrong: the first one must not have been applied.
TEST_F(ControlTest, RefusedRequestsChangeNothing) {
  error("set 1 up=5 down=x");
  EXPECT_EQ(fabric.settings(0).up_bytes_per_second, 125'000'000);
}

}  // namespace
}  // namespace commtune::cluster
