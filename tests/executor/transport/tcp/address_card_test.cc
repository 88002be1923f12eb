#include "executor/transport/tcp/address_card.h"

#include <gtest/gtest.h>

#include "executor/transport/tcp/acceptor.h"
#include "perfmodel/base/error.h"

namespace commtune::tcp {
namespace {

constexpr int kBits = 96 + 24;

constexpr IpAddress ip(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return v4_address(a << 24 | b << 16 | c << 8 | d);
}
IpAddress v6(const char* text) { return read_address(text).value(); }

AddressCard card_of(std::initializer_list<Address> addresses) {
  AddressCard card;
  for (const Address& address : addresses) card.addresses[card.count++] = address;
  return card;
}

TEST(AddressCard, AnAddressAndAPortAreWrittenAsUsual) {
  EXPECT_EQ(to_text(kLoopback), "127.0.0.1");
  EXPECT_EQ(to_text(Endpoint{ip(10, 0, 0, 255), 65535}), "10.0.0.255:65535");
  EXPECT_EQ(to_text(Endpoint{v6("fd00::1"), 80}), "[fd00::1]:80");
}

TEST(AddressCard, OfOneNetworkHasAddressesOfItAlone) {
  const AddressCard card = own_card("127.0.0.0/8");
  ASSERT_EQ(card.count, 1U);
  EXPECT_TRUE(card.lists(kLoopback));
  EXPECT_FALSE(own_card("").lists(kLoopback));
  EXPECT_THROW(own_card("127.0.0.1"), Error);
  EXPECT_THROW(own_card("127.0.0.0/33"), Error);
}

TEST(AddressCard, AWayLeadsThroughANetworkThatBothHave) {
  const AddressCard mine = card_of({{ip(10, 1, 0, 1), kBits}, {ip(10, 2, 0, 1), kBits}});
  const AddressCard theirs = card_of({{ip(10, 3, 0, 2), kBits, 1}, {ip(10, 2, 0, 2), kBits, 2}});
  const auto way = way_between(mine, theirs);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->from, ip(10, 2, 0, 1));
  EXPECT_EQ(way->to.ip, ip(10, 2, 0, 2));
  EXPECT_EQ(way->to.port, 2U);
}

TEST(AddressCard, ABridgeThatEveryHostHasLeadsNowhere) {
  const Address bridge{ip(172, 17, 0, 1), 96 + 16};
  const auto way =
      way_between(card_of({bridge, {ip(10, 1, 0, 1), kBits}}), card_of({bridge, {ip(10, 1, 0, 2), kBits}}));
  ASSERT_TRUE(way);
  EXPECT_EQ(way->to.ip, ip(10, 1, 0, 2));
}

TEST(AddressCard, OfVersion6HasItsAddresses) {
  const AddressCard card = own_card("::1/128");
  if (card.count == 0) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_TRUE(card.lists(v6("::1")));
  EXPECT_FALSE(own_card("").lists(v6("::1")));
  EXPECT_EQ(own_card("fe80::/10").count, 0U) << "link-local ones lead nowhere without their interface";
}

TEST(AddressCard, AWayOfVersion4IsTakenFirst) {
  const AddressCard mine = card_of({{ip(10, 1, 0, 1), kBits}, {v6("fd00::1"), 64}});
  const AddressCard theirs = card_of({{v6("fd00::2"), 64, 6}, {ip(10, 1, 0, 2), kBits, 4}});
  EXPECT_EQ(way_between(mine, theirs)->to.port, 4U);
  const AddressCard elsewhere = card_of({{ip(10, 2, 0, 2), kBits, 4}, {v6("fd00::2"), 64, 6}});
  const auto way = way_between(mine, elsewhere);
  EXPECT_EQ(way->from, v6("fd00::1")) << "in one network, before a way by a route";
  EXPECT_EQ(way->to.port, 6U);
}

TEST(AddressCard, WithoutAnAddressThereIsNoWay) {
  const AddressCard card = card_of({{ip(10, 1, 0, 1), kBits}});
  EXPECT_FALSE(way_between(card, AddressCard{}));
  EXPECT_FALSE(way_between(AddressCard{}, card));
}

TEST(AddressCard, ARankListensOnlyWhereHigherRanksComeFrom) {
  // Ranks 0 and 1 on one host, rank 2 on another.
  const auto listeners_of = [](int rank) {
    AddressCard card = card_of({{ip(127, 0, 0, 6), 96 + 8}});
    return open_listeners({rank, {"a", "a", "b"}, {0, 0, 1}}, card).size();
  };
  EXPECT_EQ(listeners_of(0), 2U);
  EXPECT_EQ(listeners_of(1), 1U);
  EXPECT_EQ(listeners_of(2), 0U);
}

}  // namespace
}  // namespace commtune::tcp
