// What is an address of this machine alone, and what `--listen` takes.

#include "api/rest/http/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/perfmodel/throws.h"

namespace commtune::api::rest {
namespace {

TEST(Loopback, IsFourNumbersFrom127OrTheNameOrTheAddressOfVersion6) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1", "localhost",
                           "LocalHost", "localhost."})
    EXPECT_TRUE(is_loopback(host)) << host;
}

TEST(HostileName, ThatLooksLikeTheLoopbackAddressIsNot) {
  for (const char* host : {"127.evil.example",
                           "127.0.0.1.evil.example",
                           "localhost.evil.example",
                           "127.1",
                           "127.0.1",
                           "127",
                           "2130706433",
                           "0x7f.0.0.1",
                           "0177.0.0.1",
                           "127.0.0.1.",
                           "127.0.0.256",
                           "127.0.0.1 ",
                           " 127.0.0.1",
                           "::ffff:127.0.0.1",
                           "[::1]",
                           "::1.evil.example",
                           "localhost..",
                           "evil-localhost",
                           "",
                           ".",
                           "0.0.0.0",
                           "::",
                           "128.0.0.1"})
    EXPECT_FALSE(is_loopback(host)) << host;
  EXPECT_FALSE(is_loopback(std::string_view("127.0.0.1\0.evil.example", 23)));
}

TEST(HostHeader, NamesAHostWithOrWithoutAPort) {
  EXPECT_EQ(host_of("127.0.0.1:8080"), "127.0.0.1");
  EXPECT_EQ(host_of("localhost"), "localhost");
  EXPECT_EQ(host_of("[::1]:80"), "::1");
  EXPECT_EQ(host_of("[::1]"), "::1");
}

TEST(HostileName, InAMalformedHostHeaderIsNoName) {
  for (const char* header : {"", ":80", "[::1", "[::1]evil", "127.0.0.1:80@evil.example", "::1",
                             "127.0.0.1:80:90", "[]:80", "127.0.0.1:evil"})
    EXPECT_EQ(host_of(header), std::nullopt) << header;
}

ServeOptions listening_on(const std::string& address) {
  ServeOptions options;
  set_listen_address(options, address);
  return options;
}

TEST(HostileNetwork, GetsNoTokensInPlainTextUnlessThatIsAllowed) {
  for (const char* address : {"0.0.0.0:8080", ":8080", "[::]:8080", "192.0.2.1:80", "127.1:80"}) {
    ServeOptions options = listening_on(address);
    EXPECT_THAT(bad_input([&] { options.check(); }),
                testing::AllOf(testing::HasSubstr("--listen"), testing::HasSubstr("--tls-cert"),
                               testing::HasSubstr("--allow-plain-http")))
        << address;
    options.allow_plain_http = true;
    options.check();
  }
  ServeOptions encrypted = listening_on("0.0.0.0:8080");
  encrypted.tls_certificate = "cert.pem";
  encrypted.tls_key = "key.pem";
  encrypted.check();
  listening_on("[::1]:80").check();
}

}  // namespace
}  // namespace commtune::api::rest
