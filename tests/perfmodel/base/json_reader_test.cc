#include "perfmodel/base/json_reader.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ParseJson, NamesThePositionOfWhatIsWrong) {
  EXPECT_THAT(
      bad_input([] { parse_json("{\n  \"a\": true,,\n}", "x.json"); }),
      testing::AllOf(StartsWith("x.json: not valid JSON: parse error at line 2"), HasSubstr("column")));
}

TEST(ParseJson, RefusesWhatTheParserItselfWouldTake) {
  EXPECT_THAT(bad_input([] { parse_json(R"({"a": 1, "b": {"a": 2}, "a": 3})", "x"); }),
              HasSubstr("the key \"a\" appears twice"));
  EXPECT_THAT(bad_input([] { parse_json(std::string(65, '[') + std::string(65, ']'), "x"); }),
              HasSubstr("nested deeper than 64"));
  EXPECT_EQ(parse_json(std::string(64, '[') + std::string(64, ']'), "x").size(), 1U);
}

TEST(ParseJson, RefusesHostileText) {
  for (const std::string& text :
       {std::string(), std::string(1'000'000, '['), std::string("1e999"), std::string("\"\xff\xfe\""),
        std::string("\"\\ud800\""), std::string("NaN"), std::string("{\"a\":1}}"), std::string("\0", 1)}) {
    bad_input([&] { parse_json(text, "x"); });
  }
}

TEST(JsonPlace, KnowsItsPath) {
  const auto json = parse_json(R"({"layers": [{}, {"tensors": [{"bytes": -4}]}]})", "x");
  const JsonPlace document(json);
  const JsonPlace layers = document["layers"];
  const JsonPlace layer = layers[1];
  const JsonPlace tensors = layer["tensors"];
  const JsonPlace tensor = tensors[0];
  const JsonPlace bytes = tensor["bytes"];
  EXPECT_EQ(bytes.path(), "layers[1].tensors[0].bytes");
  EXPECT_EQ(bad_input([&] { bytes.integer(1, 10); }),
            "layers[1].tensors[0].bytes: expected a positive integer, got -4");
  EXPECT_EQ(bad_input([&] { (void)layer["name"]; }), "layers[1].name: missing");
  EXPECT_EQ(bad_input([&] { layer.expect_keys({"name"}); }),
            "layers[1].tensors: unknown key; known here: name");
  EXPECT_EQ(bad_input([&] { (void)document.integer(0, 1); }),
            "document: expected an integer that is not negative, got an object");
}

TEST(JsonPlace, ReadsNumbersWithinBounds) {
  const auto read = [](const nlohmann::json& json) { return JsonPlace(json).number(0, 10); };
  EXPECT_EQ(read(3), 3);
  EXPECT_EQ(read(2.5), 2.5);
  EXPECT_EQ(bad_input([&] { read(-1); }), "document: expected a number from 0.0 to 10.0, got -1");
  bad_input([&] { read(std::numeric_limits<double>::quiet_NaN()); });
  bad_input([&] { read(std::numeric_limits<double>::infinity()); });
  bad_input([&] { read("3"); });
  bad_input([&] { read(true); });
  bad_input([&] { read(nullptr); });
}

TEST(JsonPlace, ReadsIntegersWithinBounds) {
  const auto read = [](const nlohmann::json& json) { return JsonPlace(json).integer(0, 1000); };
  EXPECT_EQ(read(1000U), 1000U);
  EXPECT_EQ(read(7), 7U);  // signed, as a document built in memory has it
  bad_input([&] { read(1001); });
  bad_input([&] { read(1.0); });
  bad_input([&] { read(UINT64_MAX); });
  bad_input([&] { read(INT64_MIN); });
  const auto read_signed = [](const nlohmann::json& json) { return JsonPlace(json).signed_integer(-5, 5); };
  EXPECT_EQ(read_signed(-5), -5);
  EXPECT_EQ(read_signed(5U), 5);
  bad_input([&] { read_signed(6); });
  bad_input([&] { read_signed(UINT64_MAX); });
}

TEST(JsonPlace, ReadsNamesWithoutControlCharacters) {
  const auto read = [](const nlohmann::json& json) { return JsonPlace(json).name(); };
  EXPECT_EQ(read("layer1.0.conv1.weight"), "layer1.0.conv1.weight");
  bad_input([&] { read(""); });
  bad_input([&] { read("a\nb"); });
  bad_input([&] { read(std::string(256, 'x')); });
  EXPECT_LT(bad_input([&] { read(std::string(100'000, 'x')); }).size(), 300U);
  bad_input([&] { read("\xff\n"); });  // not UTF-8: the message must still be made
  bad_input([&] { JsonPlace(nlohmann::json(std::string(70'000, 'x'))).text(); });
}

TEST(JsonPlace, SaysWhichFormatIsUnderstood) {
  const nlohmann::json json = {{"format", "commtune/plan/2"}};
  EXPECT_EQ(bad_input([&] { JsonPlace(json).expect_format("commtune/plan/1"); }),
            "format: expected \"commtune/plan/1\", which is the only format understood here, got "
            "\"commtune/plan/2\", made by a newer commtune");
  for (const char* other : {"commtune/plan/0", "commtune/cluster/2", "commtune/plan/x", "commtune/plan/"}) {
    const nlohmann::json no_newer = {{"format", other}};
    EXPECT_THAT(bad_input([&] { JsonPlace(no_newer).expect_format("commtune/plan/1"); }),
                Not(HasSubstr("newer")));
  }
}

TEST(JsonPlace, SaysOfAnUnknownKeyThatANewerVersionMayHaveWrittenIt) {
  const nlohmann::json versioned = {{"format", "commtune/plan/1"}, {"part", {{"new", 1}}}};
  const JsonPlace document(versioned);
  const JsonPlace part = document["part"];
  EXPECT_EQ(bad_input([&] { part.expect_keys({"old"}); }),
            "part.new: unknown key; known here: old (or the document was made by a newer commtune)");
  const nlohmann::json request = {{"new", 1}};
  EXPECT_EQ(bad_input([&] { JsonPlace(request).expect_keys({"old"}); }), "new: unknown key; known here: old");
}

TEST(JsonPlace, TakesNullForAbsent) {
  const nlohmann::json json = {{"a", nullptr}, {"b", 1}};
  const JsonPlace place(json);
  EXPECT_FALSE(place.find("a"));
  EXPECT_TRUE(place.find("b"));
  EXPECT_FALSE(place.find("c"));
}

}  // namespace
}  // namespace commtune
