#include "executor/transport/transport_kind.h"

COMMTUNE_DECLARE_TRANSPORT(local)

namespace commtune::local {

const TransportKind kKind{.name = "local", .one_process = true};

}  // namespace commtune::local
