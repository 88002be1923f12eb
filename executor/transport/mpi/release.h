#pragma once

#include <string>

namespace commtune {

/// Release of the Open MPI that this program runs with: "4.1.4". Also before it was started.
std::string open_mpi_release();

}  // namespace commtune
