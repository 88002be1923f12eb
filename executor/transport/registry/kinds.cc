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

bool joins_processes(const TransportKind& kind) { return !kind.one_process; }

std::string transport_names(bool (*test)(const TransportKind&)) {
  std::string names;
  for (const TransportKind* kind : transport_kinds()) {
    if (test != nullptr && !test(*kind)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kind->name);
  }
  return names;
}

std::string unusable_transport(std::string_view name, std::string_view why) {
  return fmt::format("transport {}: {}", name, why);
}

bool tells_of_transport(std::string_view text, std::string_view name) {
  return text.find(unusable_transport(name, "")) != std::string_view::npos;
}

std::optional<std::string> not_between_processes(std::string_view name) {
  const TransportKind* kind = find_transport(name);
  if (kind == nullptr) return no_such_transport(name);
  if (joins_processes(*kind)) return std::nullopt;
  return unusable_transport(name,
                            fmt::format("its ranks are threads of one process, and these are processes: "
                                        "use one of {}",
                                        transport_names(joins_processes)));
}

std::string no_such_transport(std::string_view name) {
  return unusable_transport(
      name, fmt::format("this commtune does not have it, but {}", transport_names(joins_processes)));
}

}  // namespace commtune
