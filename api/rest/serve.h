#pragma once
// `tune serve`: from options to a service that runs until it is told to stop.

#include <filesystem>
#include <functional>
#include <string>

#include "api/launch/cancellation.h"
#include "api/rest/service.h"

namespace commtune::api::rest {

/// What a service says at its start.
struct Ready {
  std::string url;                   ///< "http://127.0.0.1:8080", "unix:/run/commtune.socket"
  std::string start_token;           ///< ServiceParts::start_token
  std::filesystem::path token_file;  ///< where that is kept; empty: nowhere
};

/// Serves until the cancellation is pressed; then answers what is under way and ends running jobs as
/// interrupted. A token file that cannot be written is logged, and hinders nothing else.
///
/// on_ready  called once
/// throws    what Listener and Service throw
void serve(const ServiceParts& parts, Store store, Cancellation& cancellation,
           const std::function<void(const Ready&)>& on_ready);

}  // namespace commtune::api::rest
