#include "executor/collectives/registry/libraries.h"

#include <fmt/format.h>

#include <array>

#include "executor/collectives/registry/declared.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

struct Entry {
  const LibraryKind* kind;
  std::optional<std::string> (*unusable)(const Communicator&);
  std::unique_ptr<CollectiveLibrary> (*make)(const LibraryPlace&, int);
};

constexpr std::array kEntries = {
#define COMMTUNE_LIBRARY(NAME) Entry{&NAME::kKind, &NAME::unusable, &NAME::make},
#include COMMTUNE_LIBRARY_LIST
#undef COMMTUNE_LIBRARY
};

/// "nccl:Ring+LL128"
struct NamedLibrary {
  explicit NamedLibrary(std::string_view text)
      : name(text.substr(0, text.find(':'))),
        options(name.size() == text.size() ? std::string_view{} : text.substr(name.size() + 1)) {}
  std::string_view name, options;
};

std::optional<std::string> wrong_options(const LibraryKind& kind, std::string_view options) {
  if (options.empty()) return std::nullopt;
  if (kind.wrong_options == nullptr) return fmt::format("it has no options, and \"{}\" was given", options);
  return kind.wrong_options(options);
}

const Entry* find_entry(std::string_view name, const Communicator& communicator) {
  for (const Entry& entry : kEntries) {
    const bool fits = entry.kind->on_host == communicator.memory().on_host();
    if (entry.kind->name == name || (name.empty() && fits)) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string library_names() {
  std::string names;
  for (const Entry& entry : kEntries)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.kind->name);
  return names;
}

std::optional<std::string> why_no_library(std::string_view name, const Communicator& communicator) {
  const NamedLibrary named(name);
  const Entry* entry = find_entry(named.name, communicator);
  if (entry == nullptr) {
    return fmt::format("library {}: this commtune does not have it, but {}", named.name, library_names());
  }
  auto why = entry->unusable(communicator);
  if (!why) why = wrong_options(*entry->kind, named.options);
  if (!why) return std::nullopt;
  return fmt::format("library {}: {}", entry->kind->name, *why);
}

std::unique_ptr<CollectiveLibrary> make_library(std::string_view name, const LibraryPlace& place, int ranks) {
  if (const auto why = why_no_library(name, place.communicator)) throw Error(ErrorCode::kUnavailable, *why);
  const NamedLibrary named(name);
  LibraryPlace with_options = place;
  with_options.options = named.options;
  return find_entry(named.name, place.communicator)->make(with_options, ranks);
}

}  // namespace commtune
