#include "tuner/server_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "perfmodel/shipped_profiles.h"
#include "tuner/messages.h"

namespace commtune::tuner {
namespace {

TEST(ServerKeys, HashIsBernsteinsOverDecimalDigits) {
  // h = 33 h + digit from 5381: '0' is 48, '1' is 49.
  EXPECT_EQ(byteps_hash(0), 5381U * 33 + 48);
  EXPECT_EQ(byteps_hash(10), (5381U * 33 + 49) * 33 + 48);
  EXPECT_EQ(byteps_hash(65536), ((((5381ULL * 33 + '6') * 33 + '5') * 33 + '5') * 33 + '3') * 33 + '6');
}

TEST(ServerKeys, TensorsAreDeclaredInTheOrderOfTheirNames) {
  // b is declared second, although its layer comes first: keys 65536 and 65537 for its halves, 0 for a.
  Profile profile;
  profile.layers = {{"one", Seconds{1}, Seconds{1}, Seconds{0}, {{"b", 80_B}}, 0},
                    {"two", Seconds{1}, Seconds{1}, Seconds{0}, {{"a", 40_B}}, 0}};
  const auto messages = cut_messages(tensor_messages(profile), 40_B, 4_B);
  const auto of = [](std::uint64_t key) { return static_cast<std::uint32_t>(byteps_hash(key) % 3); };
  EXPECT_THAT(byteps_servers(TensorKeys(profile), messages, 3),
              testing::ElementsAre(of(0), of(65536), of(65537)));
  EXPECT_THAT(byteps_servers_of_buffer(3, 3), testing::ElementsAre(of(0), of(1), of(2)));
}

TEST(ServerKeys, EveryServerGetsSomeOfALargeModel) {
  const Profile profile = *shipped_profile("bert_large");
  const auto messages = cut_messages(tensor_messages(profile), 4'096'000_B, 4_B);
  const auto servers = byteps_servers(TensorKeys(profile), messages, 8);
  for (std::uint32_t server = 0; server < 8; ++server) EXPECT_THAT(servers, testing::Contains(server));
}

TEST(ServerKeys, OneServerTakesEverythingWhole) {
  EXPECT_FALSE(takes_messages_whole(ParameterServer{1, Placement::kColocated, Assignment::kHashed}));
  EXPECT_TRUE(takes_messages_whole(ParameterServer{2, Placement::kColocated, Assignment::kHashed}));
  EXPECT_FALSE(takes_messages_whole(ParameterServer{2}));
  EXPECT_FALSE(takes_messages_whole(AllReduce{}));
}

}  // namespace
}  // namespace commtune::tuner
