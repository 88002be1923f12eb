#pragma once

#include <string>

namespace commtune {

/// Release of the NCCL that this program runs with: "2.29.7"; empty where it finds none.
std::string nccl_release();

}  // namespace commtune
