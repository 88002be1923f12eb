#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::memory_store;
using tests::small_profile;

TEST(Profiles, AreReadBackAsTheyWere) {
  Store store = memory_store();
  const RowId id = store.put_profile(small_profile());
  const auto row = store.find_profile(id);
  ASSERT_TRUE(row);
  EXPECT_EQ(to_json(row->profile), to_json(small_profile()));
  EXPECT_EQ(row->digest, digest(small_profile()));
  EXPECT_EQ(row->model, "small");
  EXPECT_EQ(row->batch, 8);
  EXPECT_EQ(row->layers, 2);
  EXPECT_EQ(row->tensors, 2);
  EXPECT_EQ(row->gradient_bytes, Bytes{4096 + (1 << 20)});
  EXPECT_NEAR(row->compute.count(), 9e-3, 1e-15);  // forward 1 + 2, backward 2 + 4 milliseconds
  EXPECT_EQ(row->how, "measured");
}

TEST(Profiles, AreKeptOnce) {
  Store store = memory_store();
  const RowId id = store.put_profile(small_profile());
  EXPECT_EQ(store.put_profile(small_profile()), id);
  Profile slower = small_profile();
  slower.layers[0].backward = Seconds{1};
  EXPECT_NE(store.put_profile(slower), id);
  EXPECT_EQ(store.profiles().rows.size(), 2U);
}

TEST(Profiles, OfTwoNamesAreTwo) {
  Store store = memory_store();
  Profile renamed = small_profile();
  renamed.model = "renamed";
  const RowId first = store.put_profile(small_profile());
  const RowId second = store.put_profile(renamed);
  EXPECT_NE(first, second);
  EXPECT_EQ(store.find_profile(second)->model, "renamed");
}

TEST(Profiles, ThatAreTimedAgainAreRowsOfOneLayout) {
  Store store = memory_store();
  const std::string layout = layout_digest(small_profile());
  EXPECT_FALSE(store.find_profile_of_layout(layout));
  const RowId first = store.put_profile(small_profile());
  Profile slower = small_profile();
  slower.layers[0].backward *= 2;
  const RowId second = store.put_profile(slower);
  EXPECT_NE(first, second);
  EXPECT_EQ(store.find_profile(first)->layout, layout);
  EXPECT_EQ(store.find_profile(second)->layout, layout);
  EXPECT_NE(store.find_profile(first)->digest, store.find_profile(second)->digest);
  EXPECT_EQ(store.find_profile_of_layout(layout)->id, second);
  EXPECT_FALSE(store.find_profile_of_layout(digest(small_profile())));
}

TEST(Profiles, TakeTheirLayoutsAlongWhenTheyArePruned) {
  Store store = memory_store();
  store.put_profile(small_profile());
  EXPECT_EQ(store.prune({.keep = 0}).profiles, 1);
  EXPECT_FALSE(store.find_profile_of_layout(layout_digest(small_profile())));
}

TEST(Profiles, AreFoundByDigest) {
  Store store = memory_store();
  const RowId id = store.put_profile(small_profile());
  EXPECT_EQ(store.find_profile(digest(small_profile()))->id, id);
  EXPECT_FALSE(store.find_profile("0000000000000000"));
  EXPECT_FALSE(store.find_profile(RowId{99}));
}

TEST(Profiles, ThatCouldNotBeReadAgainAreRefused) {
  Store store = memory_store();
  Profile hollow = small_profile();
  hollow.layers.clear();
  EXPECT_THAT(tests::error_of([&] { store.put_profile(hollow); }),
              tests::IsError(ErrorCode::kBadInput, "layers"));
  EXPECT_TRUE(store.profiles().rows.empty());
}

}  // namespace
}  // namespace commtune
