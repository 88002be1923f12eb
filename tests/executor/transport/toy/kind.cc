#include "executor/transport/transport_kind.h"

COMMTUNE_DECLARE_TRANSPORT(toy)

namespace commtune::toy {

const TransportKind kKind{.name = "toy", .one_process = true};

}  // namespace commtune::toy
