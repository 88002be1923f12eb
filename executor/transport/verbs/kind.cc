#include "executor/transport/transport_kind.h"

COMMTUNE_DECLARE_TRANSPORT(verbs)

namespace commtune::verbs {

const TransportKind kKind{"verbs", true, false, "device, gid-index, connections, relaxed-ordering"};

}  // namespace commtune::verbs
