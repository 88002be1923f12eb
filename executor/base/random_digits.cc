#include "executor/base/random_digits.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "perfmodel/base/error.h"

namespace commtune {

std::string random_digits() {
  std::array<std::uint64_t, 2> bits{};
  // So few bytes come whole or not at all (getrandom(2)).
  if (getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    throw Error(ErrorCode::kUnavailable,
                std::string("random numbers of the kernel: ") + std::strerror(errno));
  }
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

}  // namespace commtune
