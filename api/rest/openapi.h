#pragma once

#include <string_view>

namespace commtune::api::rest {

/// api/openapi.yaml, compiled in.
std::string_view openapi_text();

}  // namespace commtune::api::rest
