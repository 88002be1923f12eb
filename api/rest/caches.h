#pragma once
// What many requests look up and seldom changes, kept in memory for as long as the store says the same.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/question/fitted.h"
#include "api/rest/store_access.h"
#include "perfmodel/profile.h"
#include "store/tokens.h"

namespace commtune::api::rest {

/// Least recently filled half goes first: two maps, of which the older is dropped when the younger is full.
/// Not for two threads at once.
template <class Value>
class BoundedMap {
 public:
  explicit BoundedMap(std::size_t most) : half_(most / 2) {}

  const Value* find(const std::string& key) {
    if (const auto found = young_.find(key); found != young_.end()) return &found->second;
    const auto found = old_.find(key);
    if (found == old_.end()) return nullptr;
    Value value = std::move(found->second);
    old_.erase(found);
    return &put(key, std::move(value));
  }
  const Value& put(const std::string& key, Value value) {
    if (young_.size() >= half_) {
      old_ = std::move(young_);
      young_.clear();
    }
    return young_.insert_or_assign(key, std::move(value)).first->second;
  }

 private:
  std::size_t half_;
  std::unordered_map<std::string, Value> young_, old_;
};

/// A cluster's current fit, parsed.
using FitPointer = std::shared_ptr<const FitRow>;

/// Clusters by name. After whatever anybody, in any process, has written to the store, a cluster is read
/// again only if that changed its ClusterState: a plan or a run that was stored did not.
class FitCache {
 public:
  explicit FitCache(StoreAccess& store) : store_(store) {}
  struct Known {
    bool registered = false;                 ///< there is a cluster of this name
    std::vector<TransportFit> fits;          ///< current_fits(); empty: it has none
    std::shared_ptr<const Fitted> all = {};  ///< of all of them, their age aside; null: it has none

    /// What a question rests on, over one transport or all (empty). Throws what joined() throws.
    Fitted fitted(const std::string& transport, const FitAge& age) const;
  };
  Known find(const std::string& cluster);
  /// The same of a cluster that has a fit. Throws Error{kNotFound} for any other.
  Known find_fitted(const std::string& cluster);
  /// How often a cluster was read from the store so far.
  std::uint64_t reads() const { return reads_; }

 private:
  struct Remembered {
    std::uint64_t generation = 0;  ///< of the store, as of which the state was last seen to be this
    ClusterState state;
    Known known;
  };
  std::optional<Known> remembered(const std::string& cluster, std::uint64_t generation);
  std::optional<Known> unchanged(const std::string& cluster, const ClusterState& state,
                                 std::uint64_t generation);
  Known read(const Store& store, const ClusterState& state);
  FitPointer fit_of(const Store& store, RowId id);

  StoreAccess& store_;
  std::atomic<std::uint64_t> reads_ = 0;
  std::mutex mutex_;  // guards the two below
  BoundedMap<Remembered> by_name_{4096};
  BoundedMap<FitPointer> by_id_{64};
};

struct KnownProfile {
  Profile profile;
  std::string digest;
};
using ProfilePointer = std::shared_ptr<const KnownProfile>;

/// Profiles by shipped name, digest, layout digest, or row id.
class ProfileCache {
 public:
  explicit ProfileCache(StoreAccess& store) : store_(store) {}
  /// Throws Error{kNotFound} with the closest name. Never reads a file. A layout digest names its newest
  /// profile, so that is looked up each time; none changes under its other names.
  ProfilePointer find(const std::string& name);
  /// What the command that carries out a job calls it: a shipped name or a digest, never the name of a file.
  /// Throws what find() does.
  std::string command_name(const std::string& name);

 private:
  StoreAccess& store_;
  std::mutex mutex_;  // guards the map
  BoundedMap<ProfilePointer> known_{64};
};

/// Tokens by id.
class TokenCache {
 public:
  explicit TokenCache(StoreAccess& store) : store_(store) {}
  std::optional<TokenRow> find(RowId id);

 private:
  StoreAccess& store_;
  std::mutex mutex_;  // guards the two below
  std::uint64_t generation_ = 0;
  BoundedMap<TokenRow> known_{4096};
};

}  // namespace commtune::api::rest
