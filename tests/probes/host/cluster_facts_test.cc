#include "probes/host/cluster_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "executor/base/wire_revision.h"
#include "probes/analysis/fit_cluster.h"
#include "tests/executor/ranks.h"

namespace commtune::probes {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Facts two_hosts() {
  return {{"host.n1.cpu", "a processor"},
          {"host.n1.kernel", "Linux 6.1"},
          {"host.n2.kernel", "Linux 6.1"},
          {"release.n1.open_mpi", "4.1.4"},
          {"setting.OMPI_MCA_btl", "tcp"},
          {"wire_revision", "1"},
          {"host.n3.example.org.kernel", "Linux 6.1"}};
}

std::vector<std::string> differences(const Facts& changes) {
  Facts now = two_hosts();
  for (const auto& [name, value] : changes) now[name] = value;
  return fact_differences(two_hosts(), now);
}

TEST(FactDifferences, AreNoneWhereNothingChanged) { EXPECT_THAT(differences({}), IsEmpty()); }

TEST(FactDifferences, NameWhatItWasAndWhatItIs) {
  EXPECT_THAT(differences({{"host.n1.kernel", "Linux 6.5"}}),
              ElementsAre("kernel of n1: Linux 6.1 when it was fitted, Linux 6.5 now"));
  EXPECT_THAT(differences({{"release.n1.open_mpi", "5.0.3"}}),
              ElementsAre("release of open_mpi on n1: 4.1.4 when it was fitted, 5.0.3 now"));
  EXPECT_THAT(differences({{"setting.OMPI_MCA_btl", "ofi"}}),
              ElementsAre("setting OMPI_MCA_btl: tcp when it was fitted, ofi now"));
  EXPECT_THAT(differences({{"setting.OMPI_MCA_pml", "ob1"}}),
              ElementsAre("setting OMPI_MCA_pml: absent when it was fitted, ob1 now"));
  EXPECT_THAT(differences({{"host.n3.example.org.kernel", "Linux 7"}}),
              ElementsAre("kernel of n3.example.org: Linux 6.1 when it was fitted, Linux 7 now"));
}

TEST(FactDifferences, LeaveOutHostsThatTakeNoPartNow) {
  const Facts now{{"host.n2.kernel", "Linux 6.1"}, {"setting.OMPI_MCA_btl", "tcp"}};
  EXPECT_THAT(fact_differences(two_hosts(), now), IsEmpty());
}

TEST(FactDifferences, TellOfHostsThatWereNotProbed) {
  EXPECT_THAT(differences({{"host.n9.kernel", "Linux 6.1"}}),
              ElementsAre("n9: not among the hosts that were probed"));
}

TEST(FactDifferences, TakeWhatWasNotKeptThenForWhatWasThen) {
  Facts before = two_hosts();
  before.erase("release.n1.open_mpi");
  before.erase("wire_revision");
  EXPECT_THAT(fact_differences(before, two_hosts()), IsEmpty());
  Facts now = two_hosts();
  now["wire_revision"] = "2";
  EXPECT_THAT(fact_differences(before, now), ElementsAre("wire_revision: 1 when it was fitted, 2 now"));
}

TEST(FactDifferences, SeeTheSameHostsOnly) {
  const Facts seen{{"host.n2.kernel", "Linux 7"}, {"release.n9.glibc", "2.36"}, {"wire_revision", "2"}};
  EXPECT_THAT(of_known_hosts(seen, two_hosts()), ElementsAre(std::pair("host.n2.kernel", "Linux 7")));
}

TEST(ClusterFacts, HaveEachHostAndItsReleasesOnce) {
  std::mutex mutex;
  Facts facts;
  commtune::tests::on_ranks(2, [&](Transport& transport) {
    const Facts own = gather_facts(transport, Clock::now() + std::chrono::seconds(60));
    const std::scoped_lock lock(mutex);
    if (transport.peers().rank == 0) {
      facts = own;
    } else {
      EXPECT_THAT(own, IsEmpty());
    }
  });
  EXPECT_EQ(facts.at("wire_revision"), std::to_string(kWireRevision));
  int kernels = 0;
  for (const auto& [name, value] : facts) kernels += name.ends_with(".kernel") ? 1 : 0;
  EXPECT_GE(kernels, 1);
  for (const char* what : {"commtune", "open_mpi", "glibc"}) {
    const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) {
      return fact.first.starts_with("release.") && fact.first.ends_with(what);
    });
    ASSERT_NE(found, facts.end()) << what;
    EXPECT_THAT(found->second, ContainsRegex("^[0-9]+\\.[0-9]+")) << what;
  }
}

/// One rank's end with a card.
class WithCard final : public Transport {
 public:
  std::string_view name() const override { return "with card"; }
  const Peers& peers() const override { return peers_; }
  EndFacts facts() const override {
    return {{{"card_mlx5_0_1", "MTU 4096 B"}}, {{"firmware_mlx5_0", "20.31"}}};
  }
  TransferId send(int, Tag, std::span<const std::byte>) override { return 0; }
  TransferId receive(int, Tag, std::span<std::byte>) override { return 0; }
  std::span<const Completion> wait(Deadline) override { return {}; }
  void wake() noexcept override {}
  void abort(std::string_view) noexcept override {}

 private:
  Peers peers_{1, {"n1.example.org", "n1.example.org"}, {0, 0}};
};

TEST(ClusterFacts, HaveWhatEachRankReachesOthersBy) {
  EXPECT_THAT(end_facts(WithCard()),
              ElementsAre(std::pair("host.n1.example.org.card_mlx5_0_1", "MTU 4096 B"),
                          std::pair("release.n1.example.org.firmware_mlx5_0", "20.31")));
  const Facts fitted = {{"host.n1.kernel", "Linux"}, {"host.n1.card_mlx5_0_1", "MTU 4096 B"}};
  Facts now = fitted;
  now["host.n1.card_mlx5_0_1"] = "MTU 1024 B";
  EXPECT_THAT(fact_differences(fitted, now),
              ElementsAre("card_mlx5_0_1 of n1: MTU 4096 B when it was fitted, MTU 1024 B now"));
}

}  // namespace
}  // namespace commtune::probes
