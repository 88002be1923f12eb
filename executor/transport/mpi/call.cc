#include "executor/transport/mpi/call.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <string_view>

namespace commtune::mpi {

void expect(int code, const char* call, ErrorCode error) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(error,
              fmt::format("{}: {}", call, std::string_view(text.data(), static_cast<std::size_t>(length))));
}

}  // namespace commtune::mpi
