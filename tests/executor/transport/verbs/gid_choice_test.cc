#include "executor/transport/verbs/gid_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perfmodel/base/error.h"

namespace commtune::verbs {
namespace {

using ::testing::HasSubstr;

Gid ipv4(const std::string& device, std::array<std::uint8_t, 4> address, GidKind kind = GidKind::kRoceV2) {
  Gid gid{.device = device, .kind = kind, .network_device = "eth0", .active = true};
  gid.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, address[0], address[1], address[2], address[3]};
  return gid;
}

Gid link_local(const std::string& device, GidKind kind = GidKind::kRoceV2) {
  Gid gid{.device = device, .kind = kind, .network_device = "eth0", .active = true};
  gid.address = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return gid;
}

TEST(GidChoice, PrefersWhatIsRoutedOverTheTableOfAnOrdinaryCard) {
  // As show_gids prints it for a card with one IPv4 address: v1 and v2 of the link-local and the IPv4
  // address.
  std::vector<Gid> table{link_local("mlx5_0", GidKind::kRoceV1), link_local("mlx5_0"),
                         ipv4("mlx5_0", {10, 0, 0, 1}, GidKind::kRoceV1), ipv4("mlx5_0", {10, 0, 0, 1})};
  for (std::size_t i = 0; i < table.size(); ++i) table[i].index = static_cast<int>(i);
  EXPECT_EQ(choose_gid(table, {}, 0).index, 3);
}

TEST(GidChoice, LeavesOutWhatLeadsNowhere) {
  Gid down = ipv4("a", {10, 0, 0, 1});
  down.active = false;
  Gid empty = ipv4("b", {10, 0, 0, 2});
  empty.address = {};
  EXPECT_EQ(score(down), 0);
  EXPECT_EQ(score(empty), 0);
}

TEST(GidChoice, EachFailingCountsMoreThanAllThatFollow) {
  const Gid good = ipv4("a", {10, 0, 0, 1});
  Gid orphan = good, overlay = good;
  const Gid local = link_local("a");
  Gid old = good;
  old.kind = GidKind::kRoceV1;
  orphan.network_device.clear();
  overlay.overlay = true;
  EXPECT_GT(score(good), score(local));
  EXPECT_GT(score(local), score(overlay));
  EXPECT_GT(score(overlay), score(orphan));
  EXPECT_GT(score(orphan), score(old));
  EXPECT_GT(score(old), 0);
}

TEST(GidChoice, TheUsersWordStandsAboveTheScore) {
  std::vector<Gid> table{link_local("mlx5_0", GidKind::kRoceV1), ipv4("mlx5_0", {10, 0, 0, 1}),
                         ipv4("mlx5_1", {10, 0, 1, 1})};
  table[1].index = 3;
  table[2].port = 2;
  table[2].index = 5;
  EXPECT_EQ(choose_gid(table, {.index = 0}, 0).kind, GidKind::kRoceV1);
  EXPECT_EQ(choose_gid(table, {.device = "mlx5_1"}, 0).device, "mlx5_1");
  EXPECT_EQ(choose_gid(table, {.device = "mlx5_1:2"}, 0).device, "mlx5_1");
  EXPECT_EQ(choose_gid(table, {.subnet = "10.0.1.0/24"}, 0).device, "mlx5_1");
}

TEST(GidChoice, RanksOfOneHostTakeItsCardsInTurn) {
  std::vector<Gid> table{ipv4("rxe0", {10, 0, 0, 1}), ipv4("rxe0", {10, 0, 0, 9}),
                         ipv4("rxe1", {10, 0, 0, 2}), link_local("rxe2")};
  EXPECT_EQ(choose_gid(table, {}, 0).device, "rxe0");
  EXPECT_EQ(choose_gid(table, {}, 1).device, "rxe1");
  EXPECT_EQ(choose_gid(table, {}, 2).device, "rxe0") << "rxe2 has no address that is as good";
}

TEST(GidChoice, SaysWhatThereIsWhereNothingFits) {
  std::vector<Gid> table{ipv4("mlx5_0", {10, 0, 0, 1})};
  table[0].index = 3;
  try {
    choose_gid(table, {.device = "mlx5_7", .subnet = "10.9.0.0/16"}, 0);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("device mlx5_7, an address in 10.9.0.0/16"));
    EXPECT_THAT(error.what(), HasSubstr("mlx5_0:1, GID 3 (RoCE v2, 10.0.0.1, eth0)"));
  }
  table[0].active = false;
  try {
    choose_gid(table, {}, 0);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("port down"));
  }
  EXPECT_THROW(choose_gid({}, {}, 0), Error);
}

TEST(GidChoice, RefusesWishesThatMakeNoSense) {
  EXPECT_THROW((GidWish{.subnet = "10.0.0.1"}.check()), Error);
  EXPECT_THROW((GidWish{.index = -2}.check()), Error);
  EXPECT_NO_THROW((GidWish{.device = "mlx5_0:1", .index = 3, .subnet = "10.0.0.0/8"}.check()));
}

}  // namespace
}  // namespace commtune::verbs
