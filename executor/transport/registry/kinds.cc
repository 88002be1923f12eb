#include "executor/transport/registry/kinds.h"

#include <fmt/format.h>

#include <array>

#include "executor/transport/registry/declared.h"

namespace commtune {

std::span<const TransportKind* const> transport_kinds() {
  static constexpr std::array kKinds = {
#define COMMTUNE_TRANSPORT(NAME) &NAME::kKind,
#include COMMTUNE_TRANSPORT_LIST
#undef COMMTUNE_TRANSPORT
  };
  return kKinds;
}

const TransportKind* find_transport(std::string_view name) {
  for (const TransportKind* kind : transport_kinds())
    if (kind->name == name) return kind;
  return nullptr;
}

std::string transport_names(bool (*test)(const TransportKind&)) {
  std::string names;
  for (const TransportKind* kind : transport_kinds()) {
    if (test != nullptr && !test(*kind)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kind->name);
  }
  return names;
}

std::string no_such_transport(std::string_view name) {
  return fmt::format("transport {}: this commtune does not have it, but {}", name, transport_names());
}

}  // namespace commtune
