#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "store/json_text.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::IsError;
using tests::memory_store;
using tests::small_plan;
using tests::small_profile;

TEST(Plans, AreReadBackWithWhereTheyCameFrom) {
  Store store = memory_store();
  const RowId session = tests::running_session(store);
  const RowId fit = store.add_fit({.session = session, .cluster = tests::fitted_cluster()});
  const RowId profile = store.put_profile(small_profile());
  const RowId id = store.add_plan({.plan = small_plan("joint"),
                                   .profile = profile,
                                   .fit = fit,
                                   .ranking = {{"joint", 0.01}},
                                   .predicted = Seconds{0.012},
                                   .half_width = Seconds{0.001},
                                   .bound = Seconds{0.011}});
  const auto row = store.find_plan(id);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->plan, small_plan("joint"));
  EXPECT_EQ(row->digest, digest(small_plan()));
  EXPECT_EQ(row->method, "joint");
  EXPECT_EQ(row->model, "small");
  EXPECT_EQ(row->road, "all-to-all ring");
  EXPECT_EQ(row->workers, 4);
  EXPECT_EQ(row->messages, 1);
  EXPECT_EQ(row->profile, profile);
  EXPECT_EQ(row->fit, fit);
  EXPECT_EQ(row->cluster, store.find_session(session)->cluster);
  EXPECT_EQ(row->cluster_name, "lab");
  EXPECT_EQ(row->ranking, nlohmann::json({{"joint", 0.01}}));
  EXPECT_EQ(row->predicted, Seconds{0.012});
  EXPECT_EQ(row->half_width, Seconds{0.001});
  EXPECT_EQ(row->bound, Seconds{0.011});
}

TEST(Plans, BelongToTheLayoutOfTheirProfile) {
  Store store = memory_store();
  Plan plan = small_plan();
  plan.layout = layout_digest(small_profile());
  const auto of_before = store.find_plan(tests::stored_plan(store));
  EXPECT_EQ(of_before->plan.layout, "");
  EXPECT_EQ(of_before->layout, plan.layout);
  Profile again = small_profile();
  again.layers.front().forward *= 2;
  const auto row = store.find_plan(store.add_plan({.plan = plan, .profile = store.put_profile(again)}));
  EXPECT_EQ(row->plan, plan);
  EXPECT_EQ(row->layout, plan.layout);
  EXPECT_EQ(store.plans().rows.front().layout, plan.layout);
}

TEST(Plans, AreTheSameRowsWhenTheyWereWrittenOutBefore) {
  Store store = memory_store();
  NewPlan plan{.plan = small_plan("joint"),
               .ranking = {{"joint", 0.01}, {"who", "\xff"}},
               .predicted = Seconds{0.012}};
  const PlanTexts texts = write_out(plan, small_profile());  // before its profile has an id
  plan.profile = store.put_profile(small_profile());
  const auto at_once = store.find_plan(store.add_plan(plan));
  const auto written = store.find_plan(store.add_plan(plan, texts));
  EXPECT_EQ(written->plan, at_once->plan);
  EXPECT_EQ(written->digest, at_once->digest);
  EXPECT_EQ(written->ranking, at_once->ranking);
  EXPECT_EQ(written->predicted, at_once->predicted);
  plan.ranking = nullptr;
  EXPECT_FALSE(write_out(plan, small_profile()).ranking);
  EXPECT_EQ(texts.plan, json_text(to_json(plan.plan)));
}

TEST(Plans, AreRefusedBeforeAnyTransaction) {
  Plan torn = small_plan();
  torn.messages[0].pieces.pop_back();
  EXPECT_THROW(write_out({.plan = torn}, small_profile()), Error);
  EXPECT_THAT(error_of([&] { write_out({.plan = small_plan(), .predicted = Seconds{-1}}, small_profile()); }),
              IsError(ErrorCode::kBadInput, "plan.predicted = -1"));
}

TEST(JsonText, OfMembersIsThatOfTheObject) {
  const nlohmann::json object{
      {"b", {1, 2}}, {"a \"quoted\"", nullptr}, {"Z", {{"x", 1.5}}}, {"\u00e4", "\xff"}};
  std::map<std::string, std::string> members;
  for (const auto& [name, value] : object.items()) members[name] = json_text(value);
  EXPECT_EQ(json_text_of_members(members), json_text(object));
  EXPECT_EQ(json_text_of_members({}), "{}");
  const auto one = members.extract(members.begin());
  EXPECT_EQ(json_text(object, {{one.key(), one.mapped()}, {"no member", "1"}}), json_text(object));
}

TEST(Plans, MayComeWithoutAFit) {
  Store store = memory_store();
  const auto row = store.find_plan(tests::stored_plan(store));
  ASSERT_TRUE(row);
  EXPECT_FALSE(row->fit);
  EXPECT_FALSE(row->cluster);
  EXPECT_EQ(row->cluster_name, "");
  EXPECT_TRUE(row->ranking.is_null());
}

TEST(Plans, MustSuitTheProfileThatHasTheIdNow) {
  Store store = memory_store();
  const auto undone = [&] {
    store.atomically([&] {
      store.add_plan({.plan = small_plan(), .profile = store.put_profile(small_profile())});
      throw std::runtime_error("undone");
    });
  };
  EXPECT_THROW(undone(), std::runtime_error);
  Profile other = small_profile();
  other.layers.front().forward *= 2;
  const RowId profile = store.put_profile(other);
  EXPECT_EQ(profile, 1);  // as the one that was undone had
  EXPECT_THROW(store.add_plan({.plan = small_plan(), .profile = profile}), Error);
  Plan plan = small_plan();
  plan.profile = digest(other);
  EXPECT_EQ(store.add_plan({.plan = plan, .profile = profile}), 1);
}

TEST(Plans, AreFoundByAMemberOfTheirRanking) {
  Store store = memory_store();
  const RowId profile = store.put_profile(small_profile());
  const nlohmann::json asked{{"seed", 1}, {"who", "\"me\", \\ and \u00e4"}};
  const auto add = [&](nlohmann::json ranking) {
    return store.add_plan({.plan = small_plan(), .profile = profile, .ranking = std::move(ranking)});
  };
  const auto found = [&](const nlohmann::json& value) {
    return store.find_ranking(digest(small_plan()), "question", value);
  };
  EXPECT_FALSE(found(asked));
  const RowId first = add({{"question", asked}, {"plans", {{"joint", 7}}}});
  ASSERT_TRUE(found(asked));
  EXPECT_EQ(found(asked)->id, first);
  EXPECT_EQ(found(asked)->ranking.at("plans"), nlohmann::json({{"joint", 7}}));
  EXPECT_FALSE(found({{"seed", 2}}));
  EXPECT_FALSE(store.find_ranking("0123456789abcdef", "question", asked));
  add({{"answer", {{"question", asked}}}});  // the newest: it says so, but of something else
  EXPECT_FALSE(found(asked));
  add(nullptr);
  EXPECT_FALSE(found(asked));
}

TEST(Plans, MustSuitTheirProfile) {
  Store store = memory_store();
  const RowId profile = store.put_profile(small_profile());
  Plan torn = small_plan();
  torn.messages[0].pieces.pop_back();
  EXPECT_THROW(store.add_plan({.plan = torn, .profile = profile}), Error);
  EXPECT_THAT(error_of([&] { store.add_plan({.plan = small_plan(), .profile = 9}); }),
              IsError(ErrorCode::kNotFound, "profile 9"));
  EXPECT_THAT(error_of([&] { store.add_plan({.plan = small_plan(), .profile = profile, .fit = 9}); }),
              IsError(ErrorCode::kNotFound, "fit 9"));
  EXPECT_THAT(
      error_of([&] { store.add_plan({.plan = small_plan(), .profile = profile, .predicted = Seconds{-1}}); }),
      IsError(ErrorCode::kBadInput, "plan.predicted = -1"));
  EXPECT_TRUE(store.plans().rows.empty());
}

TEST(Plans, AreFoundByTheStartOfTheirDigest) {
  Store store = memory_store();
  tests::stored_plan(store);
  const RowId newest = tests::stored_plan(store);
  const std::string whole = digest(small_plan());
  EXPECT_EQ(store.find_plan(whole)->id, newest);
  EXPECT_EQ(store.find_plan(whole.substr(0, 4))->id, newest);
  EXPECT_FALSE(store.find_plan(whole.substr(0, 4) + "zzzz"));
  EXPECT_THAT(error_of([&] { store.find_plan("abc"); }), IsError(ErrorCode::kBadInput, "at least 4 digits"));
}

TEST(Plans, AreListedByClusterOrAltogether) {
  Store store = memory_store();
  const RowId session = tests::running_session(store);
  const RowId fit = store.add_fit({.session = session, .cluster = tests::fitted_cluster()});
  const RowId there =
      store.add_plan({.plan = small_plan(), .profile = store.put_profile(small_profile()), .fit = fit});
  const RowId anywhere = tests::stored_plan(store);
  EXPECT_EQ(store.plans().rows.at(0).id, anywhere);
  const auto lab = store.plans(store.find_session(session)->cluster);
  ASSERT_EQ(lab.rows.size(), 1U);
  EXPECT_EQ(lab.rows[0].id, there);
}

}  // namespace
}  // namespace commtune
