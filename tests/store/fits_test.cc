#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::fitted_cluster;
using tests::IsError;
using tests::memory_store;
using tests::running_session;

TEST(Fits, AreWholeClusterSnapshots) {
  Store store = memory_store();
  const RowId session = running_session(store);
  const RowId id =
      store.add_fit({.session = session, .cluster = fitted_cluster(), .settings = {{"max_pieces", 3}}});
  const auto row = store.find_fit(id);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->session, session);
  EXPECT_EQ(row->cluster_name, "lab");
  EXPECT_EQ(row->settings, nlohmann::json({{"max_pieces", 3}}));
  EXPECT_EQ(to_json(row->snapshot), to_json(fitted_cluster()));
}

TEST(Fits, ANewOneSupersedesTheOneBefore) {
  Store store = memory_store();
  const RowId session = running_session(store);
  const RowId cluster = store.find_session(session)->cluster;
  EXPECT_FALSE(store.current_fit(cluster));
  const RowId first = store.add_fit({.session = session, .cluster = fitted_cluster()});
  const RowId second = store.add_fit({.session = session, .cluster = fitted_cluster()});
  EXPECT_EQ(store.current_fit(cluster)->id, second);
  EXPECT_EQ(store.current_fit("lab")->id, second);
  EXPECT_EQ(store.find_fit(first)->superseded_by, second);
  EXPECT_FALSE(store.find_fit(first)->supersedes);
  EXPECT_EQ(store.find_fit(second)->supersedes, first);
  EXPECT_FALSE(store.find_fit(second)->superseded_by);
}

TEST(Fits, DoNotOutliveTheMachinesTheyDescribe) {
  Store store = memory_store();
  const RowId session = running_session(store);
  store.add_fit({.session = session, .cluster = fitted_cluster()});
  Cluster changed = tests::bare_cluster();
  changed.fingerprint = "fedcba9876543210";
  store.put_cluster(changed);
  EXPECT_FALSE(store.current_fit("lab"));
  EXPECT_TRUE(store.current_fit(store.find_session(session)->cluster));
}

TEST(Fits, KeepARowForEachCurveThatLeadsToItsSession) {
  Store store = memory_store();
  const RowId session = running_session(store);
  const RowId fit = store.add_fit({.session = session, .cluster = fitted_cluster()});
  const auto curves = store.fit_curves(fit);
  ASSERT_EQ(curves.size(), 4U);  // a link alone and streamed (its duplex is empty), an operation likewise
  EXPECT_EQ(curves[0].subject, "link inter-host");
  EXPECT_EQ(curves[0].setting, "alone");
  EXPECT_FALSE(curves[0].road);
  EXPECT_EQ(curves[1].setting, "streamed");
  EXPECT_EQ(curves[2].subject, "all-reduce");
  EXPECT_EQ(curves[2].road, Road(AllReduce{}));
  EXPECT_EQ(curves[2].workers, 4);
  for (const FitCurveRow& curve : curves) {
    EXPECT_EQ(curve.fit, fit);
    EXPECT_EQ(curve.session, session);
    EXPECT_EQ(curve.pieces, 1);
    EXPECT_EQ(curve.quality.samples, 12);
    EXPECT_EQ(curve.quality.p90_relative, 0.03);
    EXPECT_EQ(curve.largest, Bytes{1 << 20});
  }
}

TEST(Fits, MustBeOfWhatTheSessionProbed) {
  Store store = memory_store();
  const RowId session = running_session(store);
  const auto refused = [&](const std::function<void(Cluster&)>& spoil, const char* field) {
    Cluster cluster = fitted_cluster();
    spoil(cluster);
    EXPECT_THAT(error_of([&] { store.add_fit({.session = session, .cluster = cluster}); }),
                IsError(ErrorCode::kBadInput, field));
  };
  refused([](Cluster& c) { c.name = "attic"; }, "fit.cluster.name = attic");
  refused([](Cluster& c) { c.transport = "nccl"; }, "fit.cluster.transport = nccl");
  refused([](Cluster& c) { c.fingerprint = "fedcba9876543210"; }, "fit.cluster.fingerprint");
  refused([](Cluster& c) { c.hosts[0].slots = 1; }, "fit.cluster.hosts");
  EXPECT_THAT(error_of([&] { store.add_fit({.session = 9, .cluster = fitted_cluster()}); }),
              IsError(ErrorCode::kNotFound, "session 9"));
  EXPECT_TRUE(store.fits().rows.empty());
}

TEST(Fits, AreListedByClusterOrAltogether) {
  Store store = memory_store();
  const RowId lab = running_session(store, "lab");
  const RowId attic = running_session(store, "attic");
  store.add_fit({.session = lab, .cluster = fitted_cluster("lab")});
  store.add_fit({.session = attic, .cluster = fitted_cluster("attic")});
  EXPECT_EQ(store.fits().rows.size(), 2U);
  const auto page = store.fits(store.find_session(lab)->cluster);
  ASSERT_EQ(page.rows.size(), 1U);
  EXPECT_EQ(page.rows[0].cluster_name, "lab");
}

}  // namespace
}  // namespace commtune
