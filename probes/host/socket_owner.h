#pragma once
// Whose is the socket that is in the way? A process that only holds a name need not answer, so the kernel is
// asked (sock_diag(7)), which needs no rights.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace commtune::probes {

/// The user who made the UNIX socket of this name in the abstract namespace. nullopt if there is none, or if
/// the kernel does not tell (Linux before 5.3, or a sandbox). Returns within a second or so.
std::optional<uid_t> owner_of_abstract_socket(std::string_view name);

/// "alice (uid 1001)"; "uid 1001" for one without a name here.
std::string user_name(uid_t user);

}  // namespace commtune::probes
