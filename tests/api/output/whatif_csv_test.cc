#include "api/output/whatif_csv.h"

#include <gtest/gtest.h>

namespace commtune::api {
namespace {

TEST(WhatIfCsv, HasALineAPoint) {
  tuner::ScalePoint point;
  point.workers = 16;
  point.iteration = Seconds{0.5};
  point.low = Seconds{0.25};
  point.high = Seconds{1};
  point.samples_per_second = 128;
  point.speedup = 8;
  point.efficiency = 0.5;
  const std::vector<tuner::ScaleCurve> curves{{"joint", "joint search", {point, point}}};
  EXPECT_EQ(to_csv(curves),
            "method,workers,iteration_seconds,low_seconds,high_seconds,samples_per_second,speedup,"
            "efficiency_ratio,road,basis\n"
            "joint,16,0.5,0.25,1,128,8,0.5,all-to-all ring,measured\n"
            "joint,16,0.5,0.25,1,128,8,0.5,all-to-all ring,measured\n");
}

TEST(WhatIfCsv, QuotesACellWithACommaOrAQuoteAndLeavesOneEmptyWhereNothingIsKnown) {
  tuner::ServerPoint point;
  point.servers = 2;
  point.title = "a \"title\"";
  point.road = ParameterServer{2, Placement::kDedicated, Assignment::kHashed};
  EXPECT_EQ(to_csv(std::vector<tuner::ServerPoint>{point}),
            "servers,title,road,iteration_seconds,samples_per_second,marginal_gain_ratio\n"
            "2,\"a \"\"title\"\"\",\"2 dedicated servers, hashed\",0,,0\n");
}

}  // namespace
}  // namespace commtune::api
