#include <limits>

#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::IsError;
using tests::memory_store;
using tests::running_session;
using tests::small_sample;

TEST(Samples, AreReadBackToTheLastBit) {
  Store store = memory_store();
  const RowId session = running_session(store);
  NewSample given = small_sample(123456789);
  given.median = Seconds{0.1 + 0.2};
  given.raw_seconds = {0.1 + 0.2, 5e-324, 1e300};
  const RowId id = store.append_sample(session, given);

  const auto rows = store.all_samples(session);
  ASSERT_EQ(rows.size(), 1U);
  const SampleRow& row = rows[0];
  EXPECT_EQ(row.id, id);
  EXPECT_EQ(row.session, session);
  EXPECT_EQ(row.kind, "operation");
  EXPECT_EQ(row.operation, Operation::kPushPull);
  EXPECT_EQ(row.road, given.road);
  EXPECT_EQ(row.workers, 4);
  EXPECT_EQ(row.servers, 2);
  EXPECT_EQ(row.source_rank, 0);
  EXPECT_EQ(row.destination_rank, 3);
  EXPECT_EQ(row.in_flight, 8);
  EXPECT_EQ(row.detail, given.detail);
  EXPECT_EQ(row.bytes, given.bytes);
  EXPECT_EQ(row.median, given.median);
  EXPECT_EQ(row.half_width, given.half_width);
  EXPECT_EQ(row.repetitions, 3);
  EXPECT_EQ(row.raw_seconds, given.raw_seconds);
  EXPECT_GT(row.at, tests::noon());
}

TEST(Samples, MayLackRoadOperationRanksDetailAndRawTimes) {
  Store store = memory_store();
  const RowId session = running_session(store);
  NewSample plain;
  plain.kind = "reduction";
  store.append_sample(session, plain);
  const SampleRow row = store.all_samples(session).at(0);
  EXPECT_FALSE(row.operation);
  EXPECT_FALSE(row.road);
  EXPECT_FALSE(row.source_rank);
  EXPECT_FALSE(row.destination_rank);
  EXPECT_TRUE(row.detail.is_null());
  EXPECT_TRUE(row.raw_seconds.empty());
}

TEST(Samples, EveryOperationAndRoadIsReadBack) {
  Store store = memory_store();
  const RowId session = running_session(store);
  const std::vector<Operation> operations = {Operation::kAllReduce, Operation::kReduceScatter,
                                             Operation::kAllGather, Operation::kPushPull,
                                             Operation::kPush,      Operation::kPull};
  const std::vector<Road> roads = {AllReduce{Collective::kRing},
                                   AllReduce{Collective::kHalvingDoubling},
                                   AllReduce{Collective::kOneShot},
                                   AllReduce{Collective::kDoubleBinaryTree},
                                   AllReduce{Collective::kLibrary},
                                   ParameterServer{1, Placement::kColocated, Assignment::kEven},
                                   ParameterServer{3, Placement::kDedicated, Assignment::kHashed}};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    NewSample sample = small_sample();
    sample.operation = operations[i];
    sample.road = roads[i];
    store.append_sample(session, sample);
  }
  const auto rows = store.all_samples(session);
  ASSERT_EQ(rows.size(), operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    EXPECT_EQ(rows[i].operation, operations[i]);
    EXPECT_EQ(rows[i].road, roads[i]);
  }
}

TEST(Samples, AppendedTogetherAreAllStoredOrNone) {
  Store store = memory_store();
  const RowId session = running_session(store);
  std::vector<NewSample> samples(3, small_sample());
  samples[2].median = Seconds{-1};
  EXPECT_THAT(error_of([&] { store.append_samples(session, samples); }),
              IsError(ErrorCode::kBadInput, "sample.median = -1"));
  EXPECT_TRUE(store.all_samples(session).empty());
  samples.pop_back();
  store.append_samples(session, samples);
  EXPECT_EQ(store.all_samples(session).size(), 2U);
}

TEST(Samples, AreListedInTheOrderMeasured) {
  Store store = memory_store();
  const RowId session = running_session(store);
  for (std::uint64_t bytes = 1; bytes <= 5; ++bytes) {
    store.append_sample(session, small_sample(bytes));
  }
  const auto first = store.samples(session, {.limit = 3});
  ASSERT_EQ(first.rows.size(), 3U);
  EXPECT_EQ(first.rows[0].bytes, Bytes{1});
  ASSERT_TRUE(first.next);
  const auto rest = store.samples(session, {.limit = 3, .after = *first.next});
  ASSERT_EQ(rest.rows.size(), 2U);
  EXPECT_EQ(rest.rows[0].bytes, Bytes{4});
  EXPECT_FALSE(rest.next);
}

TEST(Samples, NeedARunningSession) {
  Store store = memory_store();
  EXPECT_THAT(error_of([&] { store.append_sample(4, small_sample()); }),
              IsError(ErrorCode::kNotFound, "session 4: there is none"));
  const RowId session = running_session(store);
  store.end_session(session, WorkState::kComplete);
  EXPECT_THAT(error_of([&] { store.append_sample(session, small_sample()); }),
              IsError(ErrorCode::kConflict, "takes no more samples: it is complete"));
}

TEST(Samples, SupplementACompleteSession) {
  Store store = memory_store();
  const RowId session = running_session(store);
  store.append_sample(session, small_sample(1));
  const std::vector<NewSample> later{small_sample(2), small_sample(3)};
  EXPECT_THAT(error_of([&] { store.supplement_samples(session, later); }),
              IsError(ErrorCode::kConflict, "is not complete yet: it is running"));
  store.end_session(session, WorkState::kComplete);
  store.supplement_samples(session, later);
  EXPECT_EQ(store.all_samples(session).size(), 3U);
  EXPECT_EQ(store.find_session(session)->state, WorkState::kComplete);
  EXPECT_THAT(error_of([&] { store.supplement_samples(4, later); }),
              IsError(ErrorCode::kNotFound, "session 4: there is none"));
}

TEST(Samples, RefuseValuesThatCannotHaveBeenMeasured) {
  Store store = memory_store();
  const RowId session = running_session(store);
  const auto refused = [&](const std::function<void(NewSample&)>& spoil, const char* field) {
    NewSample sample = small_sample();
    spoil(sample);
    EXPECT_THAT(error_of([&] { store.append_sample(session, sample); }),
                IsError(ErrorCode::kBadInput, field));
  };
  refused([](NewSample& s) { s.kind.clear(); }, "sample.kind");
  refused([](NewSample& s) { s.in_flight = 0; }, "sample.in_flight = 0");
  refused([](NewSample& s) { s.repetitions = 0; }, "sample.repetitions = 0");
  refused([](NewSample& s) { s.workers = -1; }, "sample.workers = -1");
  refused([](NewSample& s) { s.servers = -1; }, "sample.servers = -1");
  refused([](NewSample& s) { s.median = Seconds{std::numeric_limits<double>::quiet_NaN()}; },
          "sample.median");
  refused([](NewSample& s) { s.half_width = Seconds{std::numeric_limits<double>::infinity()}; },
          "sample.half_width");
  refused([](NewSample& s) { s.bytes = Bytes{std::uint64_t{1} << 63U}; }, "must be less than 2^63");
  EXPECT_TRUE(store.all_samples(session).empty());
}

}  // namespace
}  // namespace commtune
