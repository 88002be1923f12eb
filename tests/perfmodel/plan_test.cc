#include "perfmodel/plan.h"

#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "perfmodel/base/digest.h"
#include "perfmodel/common_parts.h"
#include "perfmodel/plan_text.h"
#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Tensors of 400, 80 and 4 bytes.
Profile three_tensors() {
  Profile profile;
  profile.model = "tiny";
  profile.layers = {{"conv", Seconds{1e-3}, Seconds{2e-3}, {}, {{"conv.weight", 400_B}}, 0},
                    {"fc", Seconds{3e-3}, Seconds{4e-3}, {}, {{"fc.weight", 80_B}, {"fc.bias", 4_B}}, 0}};
  return profile;
}

/// Message 0 fuses the last two tensors with the end of the first, message 1 is the rest of the first.
Plan fused_and_cut() {
  Plan plan;
  plan.method = "by hand";
  plan.model = "tiny";
  plan.profile = digest(three_tensors());
  plan.workers = 4;
  plan.messages = {{{{2, 0_B, 4_B}, {1, 0_B, 80_B}, {0, 100_B, 300_B}}}, {{{0, 0_B, 100_B}}}};
  plan.priority = {1, 0};
  plan.credit = 4_MiB;
  return plan;
}

template <typename Change>
Plan changed(const Change& change) {
  Plan plan = fused_and_cut();
  change(plan);
  return plan;
}

template <typename Change>
std::string complaint(const Change& change) {
  return bad_input([&] { check(changed(change), three_tensors()); });
}

TEST(Plan, PassesItsCheck) {
  EXPECT_NO_THROW(check(fused_and_cut(), three_tensors()));
  EXPECT_EQ(message_bytes(fused_and_cut().messages[0]), 384_B);
}

TEST(Plan, MessagesOfNeighboursAreOneStretch) {
  // In memory: tensor 2, tensor 1, tensor 0.
  const std::vector<TensorRef> tensors{{0, 8_B}, {0, 16_B}, {1, 24_B}};
  const auto one_stretch = [&](const std::vector<Piece>& pieces) {
    return is_one_stretch({pieces}, tensors);
  };
  EXPECT_TRUE(one_stretch({{1, 4_B, 8_B}}));
  EXPECT_TRUE(one_stretch({{2, 0_B, 24_B}, {1, 0_B, 16_B}, {0, 0_B, 8_B}}));
  EXPECT_TRUE(one_stretch({{2, 20_B, 4_B}, {1, 0_B, 4_B}}));
  EXPECT_TRUE(one_stretch({{1, 0_B, 4_B}, {1, 4_B, 12_B}, {0, 0_B, 4_B}}));
  EXPECT_FALSE(one_stretch({{1, 0_B, 16_B}, {2, 0_B, 24_B}})) << "not in the order in which they appear";
  EXPECT_FALSE(one_stretch({{2, 0_B, 24_B}, {0, 0_B, 8_B}})) << "tensor 1 lies between";
  EXPECT_FALSE(one_stretch({{2, 0_B, 20_B}, {1, 0_B, 16_B}})) << "tensor 2's end lies between";
  EXPECT_FALSE(one_stretch({{2, 0_B, 24_B}, {1, 4_B, 12_B}})) << "tensor 1's start lies between";
  EXPECT_FALSE(one_stretch({{1, 0_B, 4_B}, {1, 8_B, 8_B}}));
}

TEST(Plan, CoversEveryByteOnce) {
  EXPECT_EQ(complaint([](Plan& p) {
              p.messages[0].pieces[2].offset = 96_B;
              p.messages[0].pieces[2].length = 304_B;
            }),
            "messages[0].pieces[2]: tensor 0 travels twice from byte 96");
  EXPECT_EQ(complaint([](Plan& p) { p.messages[1].pieces[0].length = 96_B; }),
            "messages: no message carries tensor 0 from byte 96 of 400");
  EXPECT_EQ(complaint([](Plan& p) { p.messages[0].pieces.erase(p.messages[0].pieces.begin()); }),
            "messages: no message carries tensor 2 from byte 0 of 4");
  EXPECT_THAT(complaint([](Plan& p) { p.messages[0].pieces[2].length = 304_B; }), HasSubstr("ends at 400"));
  EXPECT_THAT(complaint([](Plan& p) { p.messages[0].pieces[2].length = Bytes{UINT64_MAX - 50}; }),
              HasSubstr("ends at 400"));
  EXPECT_THAT(complaint([](Plan& p) { p.messages[0].pieces[0].tensor = 3; }),
              HasSubstr("tensor 3 does not exist"));
  EXPECT_THAT(complaint([](Plan& p) {
                p.messages.push_back({});
                p.priority.push_back(9);
              }),
              HasSubstr("has no pieces"));
  EXPECT_THAT(complaint([](Plan& p) { p.messages[0].pieces[0].length = 0_B; }),
              HasSubstr("at least one element"));
}

TEST(Plan, CutsBetweenElements) {
  EXPECT_THAT(complaint([](Plan& p) {
                p.messages[0].pieces[2] = {0, 98_B, 302_B};
                p.messages[1].pieces[0].length = 98_B;
              }),
              HasSubstr("whole elements of 4 B"));
}

TEST(Plan, HasOnePriorityAMessage) {
  EXPECT_THAT(complaint([](Plan& p) { p.priority = {1}; }), HasSubstr("one per message"));
  EXPECT_THAT(complaint([](Plan& p) { p.priority = {5, 5}; }), HasSubstr("value 5 appears twice"));
}

/// Colocated servers, the first beside this worker.
ParameterServer beside(int servers, int first) {
  return {servers, Placement::kColocated, Assignment::kEven, LocalSum::kNone, first};
}

TEST(Plan, SuitsItsRoad) {
  EXPECT_THAT(complaint([](Plan& p) { p.order = Order::kPriority; }), HasSubstr("same order on every rank"));
  EXPECT_NO_THROW(check(changed([](Plan& p) {
                          p.road = ParameterServer{4};
                          p.order = Order::kPriority;
                        }),
                        three_tensors()));
  // Behind a local sum two workers of a host that started different messages would wait for each other.
  EXPECT_THAT(complaint([](Plan& p) {
                p.road = ParameterServer{4, Placement::kColocated, Assignment::kEven, LocalSum::kFirst};
                p.order = Order::kPriority;
              }),
              HasSubstr("same order on every rank"));
  EXPECT_THAT(complaint([](Plan& p) { p.road = ParameterServer{5}; }), HasSubstr("only 4"));
  EXPECT_NO_THROW(check(changed([](Plan& p) {
                          p.road = ParameterServer{5, Placement::kDedicated};
                        }),
                        three_tensors()));
  EXPECT_THAT(complaint([](Plan& p) { p.road = ParameterServer{0}; }), StartsWith("road.servers = 0"));
  EXPECT_THAT(complaint([](Plan& p) { p.road = beside(3, 4); }),
              StartsWith("road.first = 4: must be a worker"));
  EXPECT_THAT(complaint([](Plan& p) {
                p.road = ParameterServer{3, Placement::kDedicated, Assignment::kEven, LocalSum::kNone, 1};
              }),
              StartsWith("road.first = 1: dedicated servers are no workers"));
  EXPECT_THAT(complaint([](Plan& p) { p.workers = 0; }), StartsWith("workers = 0"));
}

TEST(Plan, BelongsToItsProfile) {
  EXPECT_THAT(complaint([](Plan& p) { p.profile = "0000000000000000"; }),
              HasSubstr("digest 0000000000000000"));
}

Profile timed_again() {
  Profile profile = three_tensors();
  profile.layers[1].backward *= 1.5;
  return profile;
}

TEST(Plan, SuitsAProfileThatWasTimedAgainByItsLayout) {
  EXPECT_THAT(bad_input([] { check(fused_and_cut(), timed_again()); }),
              StartsWith("profile: the plan was made"));
  const Plan plan = changed([](Plan& p) { p.layout = layout_digest(three_tensors()); });
  EXPECT_NO_THROW(check(plan, three_tensors()));
  EXPECT_NO_THROW(check(plan, timed_again()));
  Profile other = timed_again();
  other.layers[1].tensors[1].name = "fc.offset";
  EXPECT_THAT(bad_input([&] { check(plan, other); }),
              StartsWith("layout: the plan carries tensors with layout " + plan.layout));
}

TEST(Plan, WithoutALayoutKeepsTheDigestOfBeforeThereWasOne) {
  // As version 0.1.0 printed it.
  EXPECT_EQ(digest(fused_and_cut()), "378a11b2b22cc55e");
  EXPECT_FALSE(to_json(fused_and_cut()).contains("layout"));
  const Plan plan = changed([](Plan& p) { p.layout = layout_digest(three_tensors()); });
  EXPECT_NE(digest(plan), digest(fused_and_cut()));
  EXPECT_EQ(plan_from_json(to_json(plan)), plan);
}

TEST(Plan, KeepsThePaceOfItsLinksWhichMakesItNoOther) {
  const Plan plan = changed([](Plan& p) { p.pace = 1.25e8; });
  EXPECT_EQ(plan_from_json(to_json(plan)), plan);
  EXPECT_EQ(digest(plan), digest(fused_and_cut()));
  EXPECT_FALSE(to_json(fused_and_cut()).contains("pace_bytes_per_second"));
}

TEST(Plan, NamesALibraryOnlyWhereItSumsByOne) {
  const Plan unnamed = changed([](Plan& p) { p.road = AllReduce{Collective::kLibrary}; });
  EXPECT_FALSE(to_json(unnamed).contains("library"));
  Plan named = unnamed;
  named.library = "nccl";
  EXPECT_NE(digest(named), digest(unnamed));
  EXPECT_EQ(plan_from_json(to_json(named)), named);
  check(named, three_tensors());
  EXPECT_EQ(complaint([](Plan& p) { p.library = "nccl"; }),
            "library = nccl: all-to-all ring sums by no library: leave it out");
}

TEST(Plan, CastsGradientsOfFloat32Only) {
  const Plan plain = fused_and_cut();
  EXPECT_FALSE(to_json(plain).contains("wire"));
  const Plan cast = changed([](Plan& p) { p.wire = WireFormat::kBfloat16; });
  EXPECT_NE(digest(cast), digest(plain));
  EXPECT_EQ(to_json(cast).at("wire"), "bf16");
  EXPECT_EQ(plan_from_json(to_json(cast)), cast);
  EXPECT_NO_THROW(check(cast, three_tensors()));
  EXPECT_EQ(wire_bytes(cast, cast.messages[0]).count, message_bytes(cast.messages[0]).count / 2);
  EXPECT_EQ(wire_bytes(plain, cast.messages[0]), message_bytes(cast.messages[0]));
  TensorLayout halves = layout_of(three_tensors());
  halves.type = DataType::kFloat16;
  EXPECT_EQ(bad_input([&] { check(cast, halves); }),
            "wire = bf16: gradients are of float16, and only those of float32 are cast: leave it out");
}

TEST(Plan, IsWrittenOutAsItsJsonWouldBe) {
  Plan plan = fused_and_cut();
  EXPECT_EQ(json_text(plan), to_json(plan).dump());
  EXPECT_EQ(json_text(Plan{}), to_json(Plan{}).dump());
  plan.road = ParameterServer{2, Placement::kDedicated, Assignment::kHashed, LocalSum::kFirst, 1};
  plan.layout = "0123456789abcdef";
  plan.pace = 1.25e8;
  plan.server = {1, 0};
  plan.window = {4_KiB, 8_KiB};
  plan.pulls = plan.messages;
  plan.priority = {-1, 0};
  plan.sequence = {{1, Stage::kDistribute}, {0, Stage::kReduce}};  // not valid, but written
  EXPECT_EQ(json_text(plan), to_json(plan).dump());
}

// The byte string that digests are made of, written out: what was stored under one must be found again.
TEST(Plan, DigestIsMadeOfTheseFieldsInThisOrder) {
  Plan plan = fused_and_cut();
  plan.road = ParameterServer{2, Placement::kDedicated, Assignment::kHashed, LocalSum::kFirst, 1};
  plan.layout = "0123456789abcdef";
  plan.sequence = {{1, Stage::kDistribute}};  // not valid, but digested
  Digest expected;
  expected.add("commtune/plan/1").add("tiny").add(plan.profile).add(4);
  expected.add("parameter-server").add(2).add("dedicated").add("hashed");
  expected.add("local-sum").add("first").add("first").add(1);
  expected.add("gradient").add("list").add("full").add((4_MiB).count);
  expected.add(2).add(3);
  for (const int piece : {2, 0, 4, 1, 0, 80, 0, 100, 300}) expected.add(piece);
  expected.add(1);
  for (const int piece : {0, 0, 100}) expected.add(piece);
  expected.add(2).add(1).add(0);
  expected.add(1).add(1).add("distribute");
  expected.add("layout").add("0123456789abcdef");
  EXPECT_EQ(digest(plan), expected.hex());
}

/// Two servers that take messages whole.
Plan dealt_out(const std::vector<std::uint32_t>& server) {
  return changed([&](Plan& p) {
    p.road = ParameterServer{2, Placement::kDedicated, Assignment::kHashed};
    p.server = server;
  });
}

TEST(Plan, SaysWhichServerTakesAMessage) {
  const Plan plan = dealt_out({1, 1});
  EXPECT_NO_THROW(check(plan, three_tensors()));
  EXPECT_EQ(plan_from_json(nlohmann::json::parse(to_json(plan).dump())), plan);
  EXPECT_NE(digest(plan), digest(dealt_out({1, 0})));
  EXPECT_FALSE(to_json(dealt_out({})).contains("server"))
      << "in turn, as in plans from before there was a choice";
  const auto complaint_of = [](const Plan& p) { return bad_input([&] { check(p, three_tensors()); }); };
  EXPECT_EQ(complaint_of(dealt_out({1})), "server: 1 values for 2 messages: must be one per message");
  EXPECT_EQ(complaint_of(dealt_out({0, 2})), "server[1] = 2: must be one of the 2 servers, 0 to 1");
  EXPECT_EQ(complaint([](Plan& p) {
              p.road = ParameterServer{2};
              p.server = {0, 1};
            }),
            "server: 2 colocated servers gives no message to one server: leave it out");
  EXPECT_THAT(complaint([](Plan& p) { p.server = {0, 0}; }), StartsWith("server: all-to-all ring"));
}

TEST(Plan, SaysHowMuchEachServerSums) {
  // Messages of 384 B and 100 B.
  EXPECT_THAT(server_loads(dealt_out({})), testing::ElementsAre(384, 100));
  EXPECT_THAT(server_loads(dealt_out({1, 1})), testing::ElementsAre(0, 484));
  EXPECT_DOUBLE_EQ(server_imbalance(dealt_out({1, 1})), 2);
  EXPECT_DOUBLE_EQ(server_imbalance(changed([](Plan& p) { p.road = ParameterServer{2}; })), 1);
  EXPECT_DOUBLE_EQ(server_imbalance(fused_and_cut()), 1);
  EXPECT_TRUE(server_loads(fused_and_cut()).empty());
}

constexpr Step reduce(std::uint32_t m) { return {m, Stage::kReduce}; }
constexpr Step distribute(std::uint32_t m) { return {m, Stage::kDistribute}; }

TEST(Plan, DecouplesEachStageOnce) {
  const auto with = [](const std::vector<Step>& sequence) {
    return [sequence](Plan& p) { p.sequence = sequence; };
  };
  EXPECT_NO_THROW(
      check(changed(with({reduce(0), reduce(1), distribute(1), distribute(0)})), three_tensors()));
  EXPECT_THAT(complaint(with({reduce(0), distribute(1), reduce(1), distribute(0)})),
              HasSubstr("before its reduce"));
  EXPECT_THAT(complaint(with({reduce(0), distribute(0), reduce(0), reduce(1)})), HasSubstr("appears twice"));
  EXPECT_THAT(complaint(with({reduce(0), distribute(0), reduce(1)})),
              HasSubstr("lacks a stage of message 1"));
  EXPECT_THAT(complaint(with({reduce(0), distribute(0)})), HasSubstr("lacks a stage of message 1"));
  EXPECT_THAT(complaint(with({reduce(2)})), HasSubstr("message 2 does not exist"));
  const std::vector<Step> good{reduce(0), distribute(0), reduce(1), distribute(1)};
  for (const Road& road : {Road{AllReduce{Collective::kRecursiveDoubling}},
                           Road{AllReduce{Collective::kOneShot}}, Road{ParameterServer{2}}}) {
    EXPECT_THAT(complaint([&](Plan& p) {
                  p.sequence = good;
                  p.road = road;
                }),
                HasSubstr("cannot be decoupled"));
  }
  EXPECT_NO_THROW(check(changed([&](Plan& p) {
                          p.sequence = good;
                          p.road = AllReduce{Collective::kLibrary};
                        }),
                        three_tensors()));
}

/// fused_and_cut() over two servers, all of it back in one pull for each of its tensors.
Plan pulled_apart(const std::function<void(Plan&)>& change = {}) {
  return changed([&](Plan& p) {
    p.road = ParameterServer{2};
    const std::vector<TensorRef> tensors = tensors_of(three_tensors());
    for (TensorId t = 0; t < tensors.size(); ++t) p.pulls.push_back({{{t, Bytes{0}, tensors[t].bytes}}});
    p.sequence = {reduce(0), reduce(1), distribute(0), distribute(1), distribute(2)};
    if (change) change(p);
  });
}

TEST(Plan, MayPullWhatWasNotPushedAsOne) {
  EXPECT_NO_THROW(check(pulled_apart(), three_tensors()));
  const auto refused = [](const std::function<void(Plan&)>& change) {
    try {
      check(pulled_apart(change), three_tensors());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused([](Plan& p) { p.pulls.pop_back(); }), HasSubstr("pulls: no message carries tensor 2"));
  EXPECT_THAT(refused([](Plan& p) { p.pulls[1] = p.pulls[0]; }), HasSubstr("travels twice"));
  EXPECT_THAT(refused([](Plan& p) { p.pulls[1].pieces.clear(); }), HasSubstr("pulls[1]: has no pieces"));
  EXPECT_THAT(refused([](Plan& p) { p.sequence.clear(); }), HasSubstr("sequence: is empty"));
  EXPECT_THAT(refused([](Plan& p) { p.sequence.pop_back(); }), HasSubstr("lacks a stage of pull 2"));
  EXPECT_THAT(refused([](Plan& p) { p.sequence.erase(p.sequence.begin()); }), HasSubstr("before its reduce"));
  EXPECT_THAT(refused([](Plan& p) { p.sequence.push_back(distribute(3)); }),
              HasSubstr("pull 3 does not exist"));
  EXPECT_THAT(refused([](Plan& p) { p.order = Order::kPriority; }), HasSubstr("order = priority"));
  for (const Road& road :
       {Road{AllReduce{}}, Road{ParameterServer{2, Placement::kColocated, Assignment::kHashed}},
        Road{ParameterServer{2, Placement::kColocated, Assignment::kEven, LocalSum::kFirst}}})
    EXPECT_THAT(refused([&](Plan& p) { p.road = road; }), HasSubstr("what was not pushed as one"));
}

TEST(CommonParts, AreWhatIsPushedAndComesBackTogether) {
  Plan plan;
  // Tensor 0 has 100 bytes, tensor 1 has 40; pushed in halves of the first and the second whole.
  plan.messages = {{{{1, 0_B, 40_B}, {0, 0_B, 50_B}}}, {{{0, 50_B, 50_B}}}};
  plan.pulls = {{{{0, 0_B, 80_B}}}, {{{0, 80_B, 20_B}, {1, 0_B, 40_B}}}};
  const CommonParts common = common_parts(plan);
  ASSERT_EQ(common.parts.size(), 4U);
  const auto is = [&](std::size_t i, std::uint32_t message, std::uint32_t pull, const Piece& piece) {
    EXPECT_EQ(common.parts[i].message, message) << i;
    EXPECT_EQ(common.parts[i].pull, pull) << i;
    EXPECT_EQ(common.parts[i].pieces, (Message{{piece}})) << i;
  };
  is(0, 0, 1, {1, 0_B, 40_B});
  is(1, 0, 0, {0, 0_B, 50_B});
  is(2, 1, 0, {0, 50_B, 30_B});
  is(3, 1, 1, {0, 80_B, 20_B});
  EXPECT_EQ(common.of_message, (std::vector<std::vector<std::uint32_t>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(common.of_pull, (std::vector<std::vector<std::uint32_t>>{{1, 2}, {3, 0}}));
  plan.pulls.clear();
  EXPECT_TRUE(common_parts(plan).parts.empty());
}

TEST(Plan, CountsDedicatedServersAsRanks) {
  EXPECT_EQ(ranks_of(fused_and_cut()), 4);
  EXPECT_EQ(ranks_of(changed([](Plan& p) { p.road = ParameterServer{3}; })), 4);
  EXPECT_EQ(ranks_of(changed([](Plan& p) { p.road = ParameterServer{3, Placement::kDedicated}; })), 7);
}

TEST(Plan, SurvivesJson) {
  for (const Plan& plan :
       {fused_and_cut(), changed([](Plan& p) {
          p.road = ParameterServer{3, Placement::kDedicated, Assignment::kHashed};
          p.order = Order::kPriority;
          p.barrier = Barrier::kPerLayer;
          p.release = Release::kBackward;
          p.priority = {-7, INT32_MAX};
        }),
        changed([](Plan& p) {
          p.road = ParameterServer{3, Placement::kColocated, Assignment::kEven, LocalSum::kFirst};
        }),
        pulled_apart(), changed([](Plan& p) { p.road = beside(3, 2); }), changed([](Plan& p) {
          p.road = AllReduce{Collective::kHalvingDoubling};
          p.sequence = {reduce(0), reduce(1), distribute(1), distribute(0)};
        })}) {
    const Plan again = plan_from_json(nlohmann::json::parse(to_json(plan).dump(2)));
    EXPECT_EQ(again, plan);
    EXPECT_EQ(digest(again), digest(plan));
  }
}

TEST(Plan, DigestSeesEverythingButTheMethod) {
  const std::string original = digest(fused_and_cut());
  const auto of = [](auto change) { return digest(changed(change)); };
  EXPECT_EQ(of([](Plan& p) { p.method = "another"; }), original);
  EXPECT_NE(of([](Plan& p) { p.model = "another"; }), original);
  EXPECT_NE(of([](Plan& p) { p.profile = "another"; }), original);
  EXPECT_NE(of([](Plan& p) { p.workers = 5; }), original);
  EXPECT_NE(of([](Plan& p) { p.road = AllReduce{Collective::kLibrary}; }), original);
  EXPECT_NE(of([](Plan& p) { p.road = ParameterServer{1}; }),
            of([](Plan& p) { p.road = ParameterServer{2}; }));
  EXPECT_NE(of([](Plan& p) { p.road = ParameterServer{2}; }), of([](Plan& p) {
              p.road = ParameterServer{2, Placement::kColocated, Assignment::kEven, LocalSum::kFirst};
            }));
  EXPECT_NE(of([](Plan& p) { p.road = beside(2, 0); }), of([](Plan& p) { p.road = beside(2, 1); }));
  EXPECT_NE(of([](Plan& p) { std::swap(p.messages[0], p.messages[1]); }), original);
  EXPECT_NE(of([](Plan& p) { std::swap(p.messages[0].pieces[0], p.messages[0].pieces[1]); }), original);
  EXPECT_NE(of([](Plan& p) { p.priority = {0, 1}; }), original);
  EXPECT_NE(of([](Plan& p) { p.release = Release::kBackward; }), original);
  EXPECT_NE(of([](Plan& p) { p.order = Order::kPriority; }), original);
  EXPECT_NE(of([](Plan& p) { p.barrier = Barrier::kPerLayer; }), original);
  EXPECT_NE(of([](Plan& p) { p.credit = 0_B; }), original);
  EXPECT_NE(of([](Plan& p) { p.sequence = {reduce(0)}; }), of([](Plan& p) { p.sequence = {distribute(0)}; }));
}

template <typename Change>
std::string reading_complaint(const Change& change) {
  nlohmann::json json = to_json(fused_and_cut());
  change(json);
  return bad_input([&] { plan_from_json(json); });
}

TEST(PlanFromJson, NamesThePathTheRuleAndTheValue) {
  using json = nlohmann::json;
  EXPECT_EQ(reading_complaint([](json& j) { j["messages"][0]["pieces"][1]["length_bytes"] = 0; }),
            "messages[0].pieces[1].length_bytes: expected a positive integer, got 0");
  EXPECT_EQ(reading_complaint([](json& j) { j["messages"][0]["pieces"] = json::array(); }),
            "messages[0].pieces: expected at least 1 elements, got 0");
  EXPECT_THAT(reading_complaint([](json& j) {
                j["road"] = {{"kind", "pigeon"}};
              }),
              StartsWith("road.kind: expected one of \"all-to-all\", \"parameter-server\", got \"pigeon\""));
  EXPECT_THAT(reading_complaint([](json& j) { j["road"]["servers"] = 3; }),
              StartsWith("road.servers: unknown key"));
  EXPECT_THAT(reading_complaint([](json& j) { j["road"]["algorithm"] = "star"; }),
              StartsWith("road.algorithm: expected one of \"ring\", \"halving-doubling\""));
  EXPECT_THAT(reading_complaint([](json& j) {
                j["road"] = {{"kind", "parameter-server"},
                             {"servers", 1},
                             {"placement", "colocated"},
                             {"assignment", "even"},
                             {"local_sum", "twice"}};
              }),
              StartsWith("road.local_sum: expected one of \"none\", \"first\", got \"twice\""));
  // Files from before there was a local sum or a first server.
  EXPECT_NO_THROW(plan_from_json([] {
    json j = to_json(changed([](Plan& p) { p.road = ParameterServer{2}; }));
    EXPECT_FALSE(j["road"].contains("local_sum") || j["road"].contains("first"));
    return j;
  }()));
  EXPECT_THAT(reading_complaint([](json& j) { j["workers"] = 1e3; }),
              StartsWith("workers: expected a positive integer"));
  EXPECT_THAT(reading_complaint([](json& j) { j["priority"][1] = 2147483648U; }),
              StartsWith("priority[1]: expected an integer from"));
  EXPECT_THAT(reading_complaint([](json& j) {
                j["sequence"] = {{{"message", 2}, {"stage", "reduce"}}};
              }),
              StartsWith("sequence[0].message: expected an integer of at most 1"));
  EXPECT_THAT(reading_complaint([](json& j) { j["pace_bytes_per_second"] = -1; }),
              HasSubstr("pace_bytes_per_second"));
  EXPECT_THAT(reading_complaint([](json& j) { j["credit_bytes"] = "4M"; }),
              StartsWith("credit_bytes: expected an integer"));
  EXPECT_THAT(reading_complaint([](json& j) { j["colour"] = "red"; }), StartsWith("colour: unknown key"));
}

TEST(Road, DescribesItself) {
  EXPECT_EQ(describe(AllReduce{Collective::kRing}), "all-to-all ring");
  EXPECT_EQ(describe(ParameterServer{4}), "4 colocated servers");
  EXPECT_EQ(describe(ParameterServer{1, Placement::kDedicated}), "1 dedicated server");
  EXPECT_EQ(describe(ParameterServer{2, Placement::kDedicated, Assignment::kHashed}),
            "2 dedicated servers, hashed");
  EXPECT_EQ(describe(ParameterServer{2, Placement::kDedicated, Assignment::kEven, LocalSum::kFirst}),
            "2 dedicated servers, local sum first");
  EXPECT_EQ(describe(beside(3, 1)), "3 colocated servers from worker 1 on");
}

}  // namespace
}  // namespace commtune
