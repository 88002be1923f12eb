#pragma once
// A profile whose times, and where they are recorded whose sizes, are a trace's.

#include <optional>
#include <string_view>

#include "api/import/trace_event.h"
#include "perfmodel/profile.h"

namespace commtune::api {

struct TraceImport {
  std::optional<Profile> model;  ///< lends layers, names and sizes; the trace the times alone
  int batch = 0;                 ///< samples of an iteration; 0: the model's, or 1
};

/// Each layer's median over the trace's iterations. A backward time lasts until the layer's last gradient is
/// there, so that gradients exist when they did in the trace.
///
/// Gradients go to the model's tensors in the order of the forward pass, by their sizes where the trace has
/// them. Where one layer of the trace has gradients of several of the model's layers, its forward time is the
/// first one's. Without a model the layers are the trace's own.
///
/// what    names the trace in errors and in the profile
/// throws  Error{kBadInput} naming the event and the fix: what traced_iterations() throws, iterations that
/// differ,
///         gradients without sizes where no model lends them, numbers or sizes of gradients that are not the
///         model's
Profile profile_from_trace(const RecordedTrace& trace, const TraceImport& options, std::string_view what);

}  // namespace commtune::api
