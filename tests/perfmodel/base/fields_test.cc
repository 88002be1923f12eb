#include "perfmodel/base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "perfmodel/base/error.h"
#include "perfmodel/base/field_text.h"
#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::StartsWith;

enum class Colour { kRed, kBlue };
constexpr std::pair<std::string_view, Colour> kColours[] = {{"red", Colour::kRed}, {"blue", Colour::kBlue}};

struct Wheel {
  int spokes = 0;
  bool operator==(const Wheel&) const = default;
};

struct Cart {
  std::string owner;
  Bytes load;
  Seconds age{};
  Colour colour = Colour::kRed;
  bool covered = false;
  int horses = 2;
  std::string long_name;
  std::vector<Wheel> wheels;
  std::optional<Seconds> due;
};

template <typename Visitor, fields::Of<Wheel> Given>
void visit_fields(Visitor& visit, Given& wheel) {
  visit("spokes", wheel.spokes, fields::Whole{1, 99});
}

template <typename Visitor, fields::Of<Cart> Given>
void visit_fields(Visitor& visit, Given& cart) {
  visit.constant("format", "cart/1");
  visit(fields::aside("owner"), cart.owner, fields::Text{});
  visit("load_bytes", cart.load, fields::Whole{0, 1000});
  visit("age_seconds", cart.age, fields::Real{0, 10});
  visit("colour", cart.colour, fields::OneOf{kColours});
  visit("covered", cart.covered, fields::Truth{});
  visit(fields::optional("horses"), cart.horses, fields::Signed{-1, 8});
  visit.when_set("long_name", cart.long_name, fields::Name{});
  visit("wheels", cart.wheels, fields::ListOf{0, 4, fields::Object{}});
  visit.when_set("due_seconds", cart.due, fields::Real{0, 100});
}

// Digests take no bool; what is digested has none.
struct Load {
  std::string owner;
  Bytes bytes;
  std::vector<Wheel> wheels;
  int first_of_all = 0;
};

template <typename Visitor, fields::Of<Load> Given>
void visit_fields(Visitor& visit, Given& load) {
  visit(fields::aside("owner"), load.owner, fields::Text{});
  visit.when_set("first_of_all", load.first_of_all, fields::Whole{0, 9});
  visit("bytes", load.bytes, fields::Whole{0, 1000});
  visit("wheels", load.wheels, fields::ListOf{0, 4, fields::Object{}});
}

Cart full_cart() {
  return {"Ann", Bytes{5}, Seconds{2.5}, Colour::kBlue, true, -1, "Old Ben", {{8}, {12}}, Seconds{7}};
}

std::string complaint(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json json = fields::write_fields(full_cart());
  change(json);
  Cart cart;
  return bad_input([&] { fields::read_fields(JsonPlace(json), cart); });
}

std::string digest_of(const Load& load) {
  Digest digest;
  fields::digest_fields(digest, load);
  return digest.hex();
}

TEST(Fields, AreWrittenAsTheyAreListed) {
  EXPECT_EQ(fields::write_fields(full_cart()),
            nlohmann::json::parse(R"({"format": "cart/1", "owner": "Ann", "load_bytes": 5, "age_seconds": 2.5,
                "colour": "blue", "covered": 1, "horses": -1, "long_name": "Old Ben",
                "wheels": [{"spokes": 8}, {"spokes": 12}], "due_seconds": 7.0})"));
}

TEST(Fields, AreTheSameAsTextAtOnce) {
  EXPECT_EQ(fields::text_of(full_cart()), fields::write_fields(full_cart()).dump());
  EXPECT_EQ(fields::text_of(Cart{}), fields::write_fields(Cart{}).dump());
  Cart odd = full_cart();
  odd.owner = "A\"n\n\\ \x01 \xc3\xa9";
  odd.age = Seconds{0.1 + 0.2};
  EXPECT_EQ(fields::text_of(odd), fields::write_fields(odd).dump());
}

TEST(Fields, AsTextHaveWhatIsNoUtf8Replaced) {
  Cart cart;
  cart.owner = "\xff";
  EXPECT_THAT(fields::text_of(cart), testing::HasSubstr("\"owner\":\"\xef\xbf\xbd\""));
}

TEST(Fields, AreReadAsTheyWereWritten) {
  const nlohmann::json json = fields::write_fields(full_cart());
  Cart cart;
  fields::read_fields(JsonPlace(json), cart);
  EXPECT_EQ(fields::write_fields(cart), json);
  EXPECT_EQ(cart.wheels, full_cart().wheels);
  EXPECT_EQ(cart.due, Seconds{7});
}

TEST(Fields, ThatMayBeMissingStayAsTheyWere) {
  nlohmann::json json = fields::write_fields(Cart{});
  EXPECT_FALSE(json.contains("long_name"));
  EXPECT_FALSE(json.contains("due_seconds"));
  EXPECT_TRUE(json.contains("horses"));
  json.erase("horses");
  Cart cart;
  fields::read_fields(JsonPlace(json), cart);
  EXPECT_EQ(cart.horses, 2);
}

TEST(Fields, AreRefusedByPlaceRuleAndValue) {
  EXPECT_THAT(
      complaint([](auto& j) { j["format"] = "cart/2"; }),
      StartsWith("format: expected \"cart/1\", which is the only format understood here, got \"cart/2\""));
  EXPECT_THAT(
      complaint([](auto& j) { j["seats"] = 1; }),
      StartsWith("seats: unknown key; known here: format, owner, load_bytes, age_seconds, colour, covered, "
                 "horses, long_name, wheels, due_seconds"));
  EXPECT_EQ(complaint([](auto& j) { j.erase("owner"); }), "owner: missing");
  EXPECT_EQ(complaint([](auto& j) { j["load_bytes"] = 1001; }),
            "load_bytes: expected an integer of at most 1000, got 1001");
  EXPECT_THAT(complaint([](auto& j) { j["age_seconds"] = "old"; }),
              StartsWith("age_seconds: expected a number"));
  EXPECT_EQ(complaint([](auto& j) { j["colour"] = "green"; }),
            "colour: expected one of \"red\", \"blue\", got \"green\"");
  EXPECT_EQ(complaint([](auto& j) { j["wheels"][1]["spokes"] = 0; }),
            "wheels[1].spokes: expected a positive integer, got 0");
  EXPECT_THAT(complaint([](auto& j) { j["wheels"][1]["hub"] = 0; }),
              StartsWith("wheels[1].hub: unknown key"));
}

// What has no digest field set must have the digest that it had before there was one: over bytes and wheels.
TEST(Fields, EnterADigestLedByTheirNameWhereTheyAreNotUsual) {
  Load load{"Ann", Bytes{5}, {{8}}, 0};
  Digest before;
  before.add(std::uint64_t{5}).add(std::uint64_t{1}).add(8);
  EXPECT_EQ(digest_of(load), before.hex());
  load.owner = "Ben";
  EXPECT_EQ(digest_of(load), before.hex());
  load.first_of_all = 3;
  EXPECT_EQ(digest_of(load), before.add("first-of-all").add(3).hex());
}

}  // namespace
}  // namespace commtune
