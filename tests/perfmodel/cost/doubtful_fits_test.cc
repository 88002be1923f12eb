#include "perfmodel/cost/doubtful_fits.h"

#include <gmock/gmock.h>

namespace commtune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Fit fit(double median, double p90, double r_squared) {
  Fit result;
  result.curve = Curve(Seconds{1e-3}, SecondsPerByte{1e-9});
  result.quality = {6, r_squared, median, p90};
  return result;
}

TEST(DoubtfulFits, NameWhatExplainsItsSamplesBadlyWorstFirst) {
  Cluster cluster;
  cluster.links[LinkClass::kInterHost] = {fit(0.01, 0.02, 0.999), fit(0.02, 0.35, 0.99), {}};
  cluster.operations.push_back(
      {AllReduce{Collective::kRing}, Operation::kAllReduce, 4, fit(0.02, 0.05, 0.99), fit(0.2, 0.6, 0.99)});
  EXPECT_THAT(
      doubtful_fits(cluster),
      ElementsAre("all-reduce, all-to-all ring, 4 workers, streamed: median residual 20.0 %, p90 60.0 %, "
                  "R² 0.990",
                  HasSubstr("link inter-host, streamed: median residual 2.0 %, p90 35.0 %")));
}

TEST(DoubtfulFits, CountWhatIsNotExplainedAtAll) {
  Cluster cluster;
  cluster.links[LinkClass::kInterHost] = {fit(0.05, 0.1, 0.5), {}, {}};
  EXPECT_THAT(doubtful_fits(cluster), ElementsAre(HasSubstr("R² 0.500")));
}

TEST(DoubtfulFits, AreNotThoseOfOneSize) {
  // Nothing differs between sizes, so nothing is explained; its shape is a formula's.
  Cluster cluster;
  Fit one = fit(0, 0, 0);
  one.quality.samples = 1;
  cluster.operations.push_back(
      {AllReduce{Collective::kRing}, Operation::kAllReduce, 4, fit(0.01, 0.05, 0.99), one});
  EXPECT_TRUE(doubtful_fits(cluster).empty());
}

TEST(DoubtfulFits, AreNoneInAnEmptyCluster) { EXPECT_TRUE(doubtful_fits(Cluster{}).empty()); }

TEST(UsableFit, IsAnyThatComesNearItsSamplesOrFollowsThem) {
  EXPECT_TRUE(is_usable(fit(0.2, 0.6, 0.99)));    // doubtful, but it follows the sizes
  EXPECT_TRUE(is_usable(fit(0.01, 0.02, -0.1)));  // all sizes take the same: nothing to explain
  EXPECT_FALSE(is_usable(fit(0.2, 0.6, 0)));
  EXPECT_FALSE(is_usable(Fit{}));
}

TEST(UsableFit, MayHaveNoQualityAtAll) {
  Fit made_up;
  made_up.curve = Curve(Seconds{1e-3}, SecondsPerByte{1e-9});
  EXPECT_TRUE(is_usable(made_up));
  EXPECT_FALSE(is_doubtful(made_up));
}

}  // namespace
}  // namespace commtune
