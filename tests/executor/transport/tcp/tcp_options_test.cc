#include "executor/transport/tcp/options.h"

#include <gtest/gtest.h>

#include "executor/base/ipv4_network.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

TEST(ReadNetwork, TakesAnAddressAndTheLengthOfItsPrefix) {
  const auto network = read_network("10.1.2.3/16");
  ASSERT_TRUE(network);
  EXPECT_EQ(network->address, 0x0a010000U);
  EXPECT_EQ(network->mask, 0xffff0000U);
  EXPECT_EQ(read_network("10.1.2.3/32")->address, 0x0a010203U);
}

TEST(ReadNetwork, TakesNothingElse) {
  for (const char* text : {"", "/", "10.1.0.0", "10.1.0.0/", "10.1.0.0/0", "10.1.0.0/33", "10.1.0.0/-8",
                           "10.1.0.0/24x", "10.1.0.0/ 24", "10.1/16", "fe80::/10", "eth0/24"})
    EXPECT_FALSE(read_network(text)) << text;
}

TEST(TcpOptions, RefuseANetworkThatIsNone) {
  TcpOptions options;
  options.network = "eth0";
  EXPECT_THROW(options.check(), Error);
  options.network = "10.1.0.0/16";
  EXPECT_NO_THROW(options.check());
}

}  // namespace
}  // namespace commtune
