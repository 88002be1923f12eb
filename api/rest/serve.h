#pragma once
// `tune serve`: from options to a service that runs until it is told to stop.

#include <functional>
#include <string_view>

#include "api/launch/cancellation.h"
#include "api/rest/service.h"

namespace commtune::api::rest {

/// Serves until the cancellation is pressed; then answers what is under way and ends running jobs as
/// interrupted.
///
/// on_ready  called once with the address: "http://127.0.0.1:8080"
/// throws    what Listener and Service throw
void serve(const ServiceParts& parts, Store store, Cancellation& cancellation,
           const std::function<void(std::string_view url)>& on_ready);

}  // namespace commtune::api::rest
