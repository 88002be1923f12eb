#include "perfmodel/profile.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "perfmodel/base/digest.h"
#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Profile two_layers() {
  Profile profile;
  profile.model = "tiny";
  profile.batch = 8;
  profile.origin = {"measured", "a device", "a source", "a note"};
  profile.layers = {
      {"conv", Seconds{1e-3}, Seconds{2e-3}, Seconds{0.1e-3}, {{"conv.weight", 400_B}}, 1e6},
      {"relu", Seconds{0.5e-3}, Seconds{0.5e-3}, Seconds{0}, {}, 0},
      {"fc", Seconds{3e-3}, Seconds{4e-3}, Seconds{0.2e-3}, {{"fc.weight", 80_B}, {"fc.bias", 4_B}}, 20}};
  return profile;
}

// The byte string that digests are made of, written out: what was stored under one must be found again.
TEST(Profile, DigestIsMadeOfTypeBatchTimesAndSizes) {
  Digest expected;
  expected.add("commtune/profile/1").add(8).add("float32").add(3);
  expected.add(1e-3).add(2e-3).add(0.1e-3).add(1).add(400);
  expected.add(0.5e-3).add(0.5e-3).add(0.0).add(0);
  expected.add(3e-3).add(4e-3).add(0.2e-3).add(2).add(80).add(4);
  EXPECT_EQ(digest(two_layers()), expected.hex());
}

TEST(Profile, AddsUp) {
  const Profile profile = two_layers();
  EXPECT_DOUBLE_EQ(profile.forward().count(), 4.5e-3);
  EXPECT_DOUBLE_EQ(profile.backward().count(), 6.5e-3);
  EXPECT_DOUBLE_EQ(profile.update().count(), 0.3e-3);
  EXPECT_EQ(profile.gradient_bytes(), 484_B);
  EXPECT_EQ(profile.tensor_count(), 3U);
}

TEST(Profile, NumbersTensorsInForwardOrder) {
  const auto refs = tensors_of(two_layers());
  ASSERT_EQ(refs.size(), 3U);
  EXPECT_EQ(refs[0].layer, 0U);
  EXPECT_EQ(refs[1].layer, 2U);
  EXPECT_EQ(refs[2].layer, 2U);
  EXPECT_EQ(refs[2].bytes, 4_B);
}

TEST(Profile, SurvivesJson) {
  Profile profile = two_layers();
  profile.layers[0].forward = Seconds{1.0 / 3};  // no short decimal
  const nlohmann::json json = to_json(profile);
  const Profile again = profile_from_json(nlohmann::json::parse(json.dump(2)));
  EXPECT_EQ(to_json(again), json);
  EXPECT_EQ(digest(again), digest(profile));
  EXPECT_EQ(again.layers[0].forward, profile.layers[0].forward);
  EXPECT_EQ(again.origin.note, "a note");
}

TEST(Profile, DigestSeesWhatTheNetworkSees) {
  const std::string original = digest(two_layers());
  EXPECT_EQ(original.size(), 16U);
  const auto changed = [](auto change) {
    Profile profile = two_layers();
    change(profile);
    return digest(profile);
  };
  EXPECT_EQ(changed([](Profile& p) { p.origin.note = "another"; }), original);
  EXPECT_EQ(changed([](Profile& p) { p.model = "another"; }), original);
  EXPECT_NE(changed([](Profile& p) { p.batch = 9; }), original);
  EXPECT_NE(changed([](Profile& p) { p.type = DataType::kFloat16; }), original);
  EXPECT_NE(changed([](Profile& p) { p.layers[1].backward *= 1.001; }), original);
  EXPECT_NE(changed([](Profile& p) { p.layers[2].update *= 1.001; }), original);
  EXPECT_NE(changed([](Profile& p) { p.layers[0].tensors[0].bytes += 4_B; }), original);
  // The same tensors, another owner.
  EXPECT_NE(changed([](Profile& p) { std::swap(p.layers[0].tensors, p.layers[1].tensors); }), original);
}

TEST(Profile, LayoutDigestSeesWhatMustTravelAndNothingElse) {
  const std::string original = layout_digest(two_layers());
  EXPECT_EQ(original.size(), 16U);
  const auto changed = [](auto change) {
    Profile profile = two_layers();
    change(profile);
    return layout_digest(profile);
  };
  EXPECT_EQ(changed([](Profile& p) { p.layers[1].backward *= 2; }), original);
  EXPECT_EQ(changed([](Profile& p) { p.layers[0].forward *= 2; }), original);
  EXPECT_EQ(changed([](Profile& p) { p.batch = 9; }), original);
  EXPECT_EQ(changed([](Profile& p) { p.model = "another"; }), original);
  EXPECT_NE(changed([](Profile& p) { p.type = DataType::kFloat16; }), original);
  EXPECT_NE(changed([](Profile& p) { p.layers[0].tensors[0].bytes += 4_B; }), original);
  EXPECT_NE(changed([](Profile& p) { p.layers[0].tensors[0].name += "2"; }), original);
  EXPECT_NE(changed([](Profile& p) { std::swap(p.layers[2].tensors[0], p.layers[2].tensors[1]); }), original);
  EXPECT_NE(changed([](Profile& p) { p.layers[2].tensors.pop_back(); }), original);
}

TEST(Profile, ScalesSizesAndTimes) {
  const Profile half = scaled(two_layers(), 0.5, 3);
  EXPECT_EQ(half.layers[0].tensors[0].bytes, 200_B);
  EXPECT_EQ(half.layers[2].tensors[1].bytes, 4_B);  // one element stays one
  EXPECT_DOUBLE_EQ(half.forward().count(), 13.5e-3);
  EXPECT_THAT(half.origin.note, HasSubstr("bytes by 0.5, times by 3"));
  for (const double bad : {0.0, -1.0, 1e300 * 1e300, 0.0 / 0.0}) {
    bad_input([&] { scaled(two_layers(), bad, 1); });
    bad_input([&] { scaled(two_layers(), 1, bad); });
  }
  bad_input([] { scaled(two_layers(), 1e300, 1); });
  bad_input([] { scaled(two_layers(), 1, 1e300); });
}

/// What reading says of a document that `change` has spoilt.
template <typename Change>
std::string profile_complaint(const Change& change) {
  nlohmann::json json = to_json(two_layers());
  change(json);
  return bad_input([&] { profile_from_json(json); });
}

TEST(ProfileFromJson, NamesThePathTheRuleAndTheValue) {
  using json = nlohmann::json;
  EXPECT_EQ(profile_complaint([](json& j) { j["layers"][2]["tensors"][0]["bytes"] = -4; }),
            "layers[2].tensors[0].bytes: expected a positive integer, got -4");
  EXPECT_EQ(profile_complaint([](json& j) { j["layers"][2]["tensors"][0]["bytes"] = 6; }),
            "layers[2].tensors[0].bytes: expected a multiple of the element size 4, got 6");
  EXPECT_THAT(profile_complaint([](json& j) { j["layers"][2]["tensors"][0]["bytes"] = UINT64_MAX; }),
              StartsWith("layers[2].tensors[0].bytes: expected an integer of at most"));
  EXPECT_THAT(profile_complaint([](json& j) { j["layers"][1]["forward_seconds"] = -1e-3; }),
              StartsWith("layers[1].forward_seconds: expected a number from 0"));
  EXPECT_EQ(profile_complaint([](json& j) { j["layers"][1].erase("backward_seconds"); }),
            "layers[1].backward_seconds: missing");
  EXPECT_THAT(profile_complaint([](json& j) { j["layers"][1]["backwards"] = 1; }),
              StartsWith("layers[1].backwards: unknown key; known here: name, forward_seconds"));
  EXPECT_EQ(profile_complaint([](json& j) { j["layers"] = json::array(); }),
            "layers: expected at least 1 elements, got 0");
  EXPECT_EQ(profile_complaint([](json& j) { j["layers"] = 7; }), "layers: expected an array, got 7");
  EXPECT_EQ(profile_complaint([](json& j) { j["batch"] = -1; }),
            "batch: expected an integer that is not negative, got -1");
  EXPECT_THAT(profile_complaint([](json& j) { j["data_type"] = "float64"; }),
              StartsWith("data_type: expected one of \"float32\", \"float16\", \"bfloat16\", got"));
  EXPECT_THAT(profile_complaint([](json& j) { j["origin"]["how"] = "guessed"; }),
              StartsWith("origin.how: expected one of"));
  EXPECT_THAT(profile_complaint([](json& j) { j["format"] = "commtune/profile/7"; }),
              HasSubstr("expected \"commtune/profile/1\""));
  EXPECT_EQ(profile_complaint([](json& j) { j = nullptr; }), "document: expected an object, got null");
}

TEST(ProfileFromJson, LetsOptionalPartsBeAbsent) {
  nlohmann::json json = to_json(two_layers());
  json["layers"][0].erase("update_seconds");
  json["layers"][0].erase("macs_per_sample");
  json["layers"][1].erase("tensors");
  json["origin"].erase("note");
  const Profile profile = profile_from_json(json);
  EXPECT_EQ(profile.layers[0].update.count(), 0);
  EXPECT_TRUE(profile.layers[1].tensors.empty());
}

}  // namespace
}  // namespace commtune
