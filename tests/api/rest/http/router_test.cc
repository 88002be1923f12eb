#include "api/rest/http/router.h"

#include <gtest/gtest.h>

#include "api/rest/admission.h"
#include "api/rest/http/problem.h"

namespace commtune::api::rest {
namespace {

Router made() {
  Router router;
  router.add({"GET", "/v1/plans", Scope::kRead, {}});
  router.add({"POST", "/v1/plans", Scope::kPlan, {}});
  router.add({"GET", "/v1/plans/{id}/exports/{target}", Scope::kRead, {}});
  return router;
}

TEST(Router, FindsARouteAndWhatItsArgumentsAre) {
  const auto found = made().find("GET", "/v1/plans/12/exports/ddp");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->index, 2U);
  EXPECT_EQ(found->arguments, (std::vector<std::string>{"12", "ddp"}));
  EXPECT_EQ(made().find("GET", "/v1/plans/a%20b/exports/x")->arguments.front(), "a b");
}

TEST(Router, RefusesWhatIsNotThere) {
  for (const char* path : {"", "/", "/v1", "/v1/plans/", "/v1/plans//exports/ddp", "/v1/plans/1/exports/%zz",
                           "/v1/plans/1/exports/%00", "/v1/plansx"})
    EXPECT_FALSE(made().find("GET", path)) << path;
  EXPECT_FALSE(made().find("DELETE", "/v1/plans"));
  EXPECT_EQ(made().methods_of("/v1/plans"), "GET, POST");
}

TEST(Query, IsDecodedAndTakesNoNameTwice) {
  EXPECT_EQ(parse_query("a=1&b=x+y%2C&c").value(),
            (std::map<std::string, std::string>{{"a", "1"}, {"b", "x y,"}, {"c", ""}}));
  EXPECT_FALSE(parse_query("a=1&a=2"));
  EXPECT_FALSE(parse_query("a=%4"));
  EXPECT_FALSE(parse_query(std::string_view("a=\0", 3)));
}

TEST(Pointer, IsThePathThatAReaderNamed) {
  EXPECT_EQ(pointer_of("layers[12].tensors[0].bytes: expected a positive integer, got -4"),
            "/layers/12/tensors/0/bytes");
  EXPECT_EQ(pointer_of("document: expected an object"), "");
  EXPECT_EQ(pointer_of("cluster \"x\": not registered"), "");
}

TEST(RateLimit, LetsTwoSecondsWorthThroughAtOnceAndThenItsRate) {
  RateLimit limit(5);
  const std::chrono::steady_clock::time_point start{};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.take(1, start), 0);
  EXPECT_NEAR(limit.take(1, start), 0.2, 1e-9);
  EXPECT_EQ(limit.take(2, start), 0) << "another caller has a rate of its own";
  EXPECT_EQ(limit.take(1, start + std::chrono::milliseconds(200)), 0);
  EXPECT_GT(limit.take(1, start + std::chrono::milliseconds(200)), 0);
}

TEST(RateLimit, LetsOneThroughHoweverLowTheRate) {
  RateLimit limit(0.01);
  const std::chrono::steady_clock::time_point start{};
  EXPECT_EQ(limit.take(1, start), 0);
  EXPECT_NEAR(limit.take(1, start), 100, 1e-9);
  EXPECT_EQ(limit.take(1, start + std::chrono::seconds(101)), 0);
}

}  // namespace
}  // namespace commtune::api::rest
