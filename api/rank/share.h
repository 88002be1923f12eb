#pragma once
// Hands rank 0's order to all ranks: no shared file system is assumed.

#include <string>

#include "executor/transport/transport.h"

namespace commtune::api {

/// Collective. On rank 0 `text` is sent, elsewhere it is replaced by what rank 0 has. Over a binary tree:
/// log2 N steps. Throws Error{kTimeout} naming the rank that did not answer within 60 s.
void share(Transport& transport, std::string& text);

}  // namespace commtune::api
