#pragma once
// Reads the traces that others record.

#include <string_view>

#include "api/import/trace_event.h"

namespace commtune::api {

/// A Chrome trace of PyTorch's profiler (Kineto), or a Chakra execution trace as JSON with times: what
/// chakra_trace_link makes of PyTorch's two traces.
///
/// what    names the text in errors: a file's name
/// throws  Error{kBadInput} naming the event and the fix: for malformed text, what is compressed or a
/// protobuf,
///         an execution trace without times, a trace of something else
RecordedTrace read_trace(std::string_view text, std::string_view what);

}  // namespace commtune::api
