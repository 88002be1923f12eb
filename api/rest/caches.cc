#include "api/rest/caches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "api/question/fit_marks.h"
#include "api/question/models.h"
#include "api/text.h"
#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"

namespace commtune::api::rest {
namespace {

std::optional<RowId> row_id(const std::string& text) {
  RowId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  // Sixteen digits could be a digest.
  if (error != std::errc{} || end != text.data() + text.size() || text.size() > 12) return {};
  return id;
}

}  // namespace

/// The state is asked for before the rows: should somebody write in between, they are newer than it says, and
/// read again the next time.
FitCache::Known FitCache::find(const std::string& cluster) {
  const std::uint64_t now = store_.generation();
  if (auto known = remembered(cluster, now)) return std::move(*known);
  const auto reader = store_.reader();
  const auto state = reader->cluster_state(cluster);
  if (!state) return {};  // not remembered, so that nobody fills the memory with names
  if (auto known = unchanged(cluster, *state, now)) return std::move(*known);
  Known known = read(*reader, *state);
  const std::lock_guard lock(mutex_);
  by_name_.put(cluster, {now, *state, known});
  return known;
}

std::optional<FitCache::Known> FitCache::remembered(const std::string& cluster, std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  const Remembered* const found = by_name_.find(cluster);
  if (found == nullptr || found->generation != generation) return {};
  return found->known;
}

std::optional<FitCache::Known> FitCache::unchanged(const std::string& cluster, const ClusterState& state,
                                                   std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  const Remembered* const found = by_name_.find(cluster);
  if (found == nullptr || found->state != state) return {};
  return by_name_.put(cluster, {generation, state, found->known}).known;
}

FitCache::Known FitCache::read(const Store& store, const ClusterState& state) {
  ++reads_;
  Known known;
  const auto row = store.find_cluster(state.cluster);
  if (!row) return known;  // pruned since
  known.registered = true;
  known.fits = current_fits(store, *row, [&](RowId id) { return fit_of(store, id); });
  if (!known.fits.empty())
    known.all = std::make_shared<const Fitted>(joined(known.fits, {}, FitAge{Seconds::max(), {}}));
  return known;
}

Fitted FitCache::Known::fitted(const std::string& transport, const FitAge& age) const {
  if (!transport.empty()) return joined(fits, transport, age);
  Fitted fitted = *all;
  fitted.marks.stale =
      std::ranges::any_of(fits, [&](const TransportFit& each) { return is_stale(*each.fit, age); });
  return fitted;
}

FitCache::Known FitCache::find_fitted(const std::string& cluster) {
  Known known = find(cluster);
  if (known.all) return known;
  const std::string name = cluster.substr(0, 255);
  throw Error(ErrorCode::kNotFound,
              known.registered
                  ? fmt::format("cluster \"{}\" has no fit yet: its probe has not ended", name)
                  : fmt::format("cluster \"{}\": not registered; register it with: tune probe --cluster {} "
                                "--hosts FILE",
                                name, name));
}

FitPointer FitCache::fit_of(const Store& store, RowId id) {
  const std::string key = std::to_string(id);
  {
    const std::lock_guard lock(mutex_);
    if (const FitPointer* parsed = by_id_.find(key)) return *parsed;
  }
  auto fit = store.find_fit(id);
  if (!fit) return nullptr;
  auto parsed = std::make_shared<const FitRow>(std::move(*fit));
  const std::lock_guard lock(mutex_);
  return by_id_.put(key, std::move(parsed));
}

ProfilePointer ProfileCache::find(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    if (const ProfilePointer* known = known_.find(name)) return *known;
  }
  std::optional<Profile> profile = shipped_profile(name);
  bool by_layout = false;
  if (!profile) {
    const auto reader = store_.reader();
    const auto id = row_id(name);
    auto row = id ? reader->find_profile(*id) : reader->find_profile(std::string_view(name));
    by_layout = !row;
    if (by_layout) row = reader->find_profile_of_layout(name);
    if (row) profile = std::move(row->profile);
  }
  if (!profile) {
    const std::vector<std::string> names = shipped_profile_names();
    throw Error(ErrorCode::kNotFound,
                fmt::format("model \"{}\": no such profile{}; shipped are {}, or POST one to /v1/profiles",
                            name, did_you_mean(name, names), fmt::join(names, ", ")));
  }
  auto known = std::make_shared<const KnownProfile>(KnownProfile{*profile, digest(*profile)});
  if (by_layout) return known;
  const std::lock_guard lock(mutex_);
  return known_.put(name, std::move(known));
}

std::string ProfileCache::command_name(const std::string& name) {
  return shipped_profile(name) ? name : find(name)->digest;
}

std::optional<TokenRow> TokenCache::find(RowId id) {
  const std::uint64_t now = store_.generation();
  const std::string key = std::to_string(id);
  {
    const std::lock_guard lock(mutex_);
    if (now != generation_) {
      generation_ = now;
      known_ = BoundedMap<TokenRow>{4096};
    }
    if (const TokenRow* known = known_.find(key)) return *known;
  }
  const auto reader = store_.reader();
  auto row = Tokens(*reader).find(id);
  const std::lock_guard lock(mutex_);
  if (row && now == generation_) known_.put(key, *row);
  return row;
}

}  // namespace commtune::api::rest
