#include "executor/collectives/registry/libraries.h"

#include <fmt/format.h>

#include <array>

#include "executor/collectives/registry/declared.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

struct Entry {
  const LibraryKind* kind;
  std::optional<std::string> (*unusable)(const Transport&);
  std::unique_ptr<CollectiveLibrary> (*make)(Transport&, int);
};

constexpr std::array kEntries = {
#define COMMTUNE_LIBRARY(NAME) Entry{&NAME::kKind, &NAME::unusable, &NAME::make},
#include COMMTUNE_LIBRARY_LIST
#undef COMMTUNE_LIBRARY
};

const Entry* find_entry(std::string_view name) {
  if (name.empty()) return &kEntries.front();
  for (const Entry& entry : kEntries)
    if (entry.kind->name == name) return &entry;
  return nullptr;
}

}  // namespace

std::string library_names() {
  std::string names;
  for (const Entry& entry : kEntries)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.kind->name);
  return names;
}

std::optional<std::string> why_no_library(std::string_view name, const Transport& transport) {
  const Entry* entry = find_entry(name);
  if (entry == nullptr) {
    return fmt::format("library {}: this commtune does not have it, but {}", name, library_names());
  }
  const auto why = entry->unusable(transport);
  if (!why) return std::nullopt;
  return fmt::format("library {}: {}", entry->kind->name, *why);
}

std::unique_ptr<CollectiveLibrary> make_library(std::string_view name, Transport& transport, int ranks) {
  if (const auto why = why_no_library(name, transport)) throw Error(ErrorCode::kUnavailable, *why);
  return find_entry(name)->make(transport, ranks);
}

}  // namespace commtune
