#include "executor/transport/mpi/release.h"

#include <mpi.h>

#include <array>
#include <string_view>

namespace commtune {

std::string open_mpi_release() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  // "Open MPI v4.1.4, package: Debian Open MPI, ident: 4.1.4, ..."
  const std::string_view said(text.data(), static_cast<std::size_t>(length));
  constexpr std::string_view kLead = "Open MPI v";
  if (!said.starts_with(kLead)) return std::string(said.substr(0, said.find('\n')));
  const std::string_view release = said.substr(kLead.size());
  return std::string(release.substr(0, release.find_first_of(", \n")));
}

}  // namespace commtune
