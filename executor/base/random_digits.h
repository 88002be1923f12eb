#pragma once
// Names that nobody can know beforehand, for what others on this host could otherwise take or prepare.

#include <string>

namespace commtune {

/// 128 bits of the kernel's random numbers as 32 hexadecimal digits. Throws Error{kUnavailable}.
std::string random_digits();

}  // namespace commtune
