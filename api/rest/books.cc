#include "api/rest/books.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "api/actions/fit_marks.h"
#include "api/actions/models.h"
#include "api/text.h"
#include "perfmodel/error.h"
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

FitBook::Known FitBook::find(const std::string& cluster) {
  const std::uint64_t now = store_.generation();
  {
    const std::lock_guard lock(mutex_);
    if (now != generation_ || by_name_.size() > 4096) {
      generation_ = now;
      by_name_.clear();
    }
    if (const auto found = by_name_.find(cluster); found != by_name_.end()) return found->second;
  }
  const auto reader = store_.reader();
  Known known;
  const auto row = reader->find_cluster(std::string_view(cluster));
  if (!row) return known;  // not remembered, so that nobody fills the memory with names
  known.registered = true;
  const PageOf<FitSummary> newest = reader->fits(row->id, Page{1, 0});
  const std::lock_guard lock(mutex_);
  if (!newest.rows.empty()) {
    const std::string id = std::to_string(newest.rows.front().id);
    if (const FitPointer* parsed = by_id_.find(id)) {
      known.fit = *parsed;
    } else if (auto fit = reader->find_fit(newest.rows.front().id)) {
      known.fit = by_id_.put(id, std::make_shared<const FitRow>(std::move(*fit)));
    }
  }
  if (known.fit) known.differences = stored_differences(known.fit->snapshot, *row);
  if (now == generation_) by_name_[cluster] = known;
  return known;
}

ProfilePointer ProfileBook::find(const std::string& name) {
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

std::optional<TokenRow> TokenBook::find(RowId id) {
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
