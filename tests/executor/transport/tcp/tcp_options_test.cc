#include "executor/transport/tcp/options.h"

#include <gtest/gtest.h>

#include "executor/base/ip_network.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

TEST(ReadNetwork, TakesAnAddressAndTheLengthOfItsPrefix) {
  const auto network = read_network("10.1.2.3/16");
  ASSERT_TRUE(network);
  EXPECT_TRUE(network->contains(v4_address(0x0a01ffff)));
  EXPECT_FALSE(network->contains(v4_address(0x0a020000)));
  EXPECT_FALSE(network->contains(read_address("fd00::1").value()));
  EXPECT_FALSE(read_network("10.1.2.3/32")->contains(v4_address(0x0a010202)));
  const auto odd = read_network("fd00:0:0:80::/57");
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->contains(read_address("fd00:0:0:ff::1").value()));
  EXPECT_FALSE(odd->contains(read_address("fd00:0:0:7f::1").value()));
  EXPECT_FALSE(odd->contains(v4_address(0x0a010000)));
}

TEST(ReadNetwork, TakesNothingElse) {
  for (const char* text : {"", "/", "10.1.0.0", "10.1.0.0/", "10.1.0.0/0", "10.1.0.0/33", "10.1.0.0/-8",
                           "10.1.0.0/24x", "10.1.0.0/ 24", "10.1/16", "fd00::1", "fd00::/129", "fd00::/0",
                           "fd00:::/64", "fe80::1%eth0/64", "eth0/24"})
    EXPECT_FALSE(read_network(text)) << text;
}

TEST(IpAddress, IsReadAndWritten) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "fd00::1", "::1", "2001:db8::a:b"})
    EXPECT_EQ(to_text(read_address(text).value()), text);
  EXPECT_TRUE(read_address("::ffff:10.0.0.1")->is_v4());
  EXPECT_TRUE(read_address("fe80::1")->is_link_local());
  EXPECT_FALSE(read_address("fd00::1")->is_link_local());
  EXPECT_FALSE(read_address("10.0.0"));
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
