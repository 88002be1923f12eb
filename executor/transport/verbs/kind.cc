#include "executor/transport/transport_kind.h"

COMMTUNE_DECLARE_TRANSPORT(verbs)

namespace commtune::verbs {

const TransportKind kKind{"verbs", true, false};

}  // namespace commtune::verbs
