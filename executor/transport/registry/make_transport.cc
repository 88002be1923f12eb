#include "executor/transport/registry/make_transport.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "executor/transport/registry/declared.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

struct Entry {
  const TransportKind* kind;
  std::optional<std::string> (*unusable)(const Bootstrap&);
  std::unique_ptr<Transport> (*make)(std::shared_ptr<Bootstrap>, const TransportOptions&, Deadline);
};

constexpr std::array kEntries = {
#define COMMTUNE_TRANSPORT(NAME) Entry{&NAME::kKind, &NAME::unusable, &NAME::make},
#include COMMTUNE_TRANSPORT_LIST
#undef COMMTUNE_TRANSPORT
};

const Entry* find_entry(std::string_view name) {
  for (const Entry& entry : kEntries)
    if (entry.kind->name == name) return &entry;
  return nullptr;
}

/// A rank's reason as ranks tell it each other, cut where it is longer; empty: it has none.
using Reason = std::array<char, 256>;

Reason reason_of(const Entry* entry, std::string_view name, const Bootstrap& bootstrap) {
  std::string why = no_such_transport(name);
  if (entry != nullptr) {
    const auto unusable = entry->unusable(bootstrap);
    why = unusable ? unusable_transport(name, *unusable) : "";
  }
  Reason reason{};
  why.copy(reason.data(), reason.size() - 1);
  return reason;
}

}  // namespace

std::unique_ptr<Transport> make_transport(std::string_view name, std::shared_ptr<Bootstrap> bootstrap,
                                          const TransportOptions& options, Deadline until) {
  const Entry* entry = find_entry(name);
  const std::vector<Reason> reasons = all_gather(*bootstrap, reason_of(entry, name, *bootstrap), until);
  for (std::size_t rank = 0; rank < reasons.size(); ++rank) {
    if (reasons[rank].front() == '\0') continue;
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} cannot use {}", describe(bootstrap->peers(), static_cast<int>(rank)),
                            reasons[rank].data()));
  }
  return entry->make(std::move(bootstrap), options, until);
}

}  // namespace commtune
