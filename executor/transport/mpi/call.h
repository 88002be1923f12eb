#pragma once
// Errors of Open MPI's calls as ours. For the sources of this folder and of Open MPI's collectives, which
// include its header.

#include "perfmodel/base/error.h"

namespace commtune::mpi {

/// throws  Error{error} naming the call unless `code` says that it succeeded
void expect(int code, const char* call, ErrorCode error = ErrorCode::kPeerLost);

}  // namespace commtune::mpi
