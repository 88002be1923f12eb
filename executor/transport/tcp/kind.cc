#include "executor/transport/transport_kind.h"

COMMTUNE_DECLARE_TRANSPORT(tcp)

namespace commtune::tcp {

const TransportKind kKind{"tcp", true, true};

}  // namespace commtune::tcp
