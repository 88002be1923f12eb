#pragma once
// What one token may hold at a time, so that no client fills the database for all others.

#include <cstdint>
#include <functional>
#include <initializer_list>

#include "api/rest/http/options.h"
#include "api/rest/http/scope.h"
#include "store/quotas.h"

namespace commtune::api::rest {

/// Of one caller. All who have no token share one allowance, and so do the tokens of all starts.
struct Allowance {
  const QuotaLimits& most;
  const Caller& caller;
};

/// Lets `add` add to what the caller holds. Throws HttpRefusal (429, "quota_exceeded") when it holds more of
/// one of these kinds than before, and more than is allowed: the transaction that this is called in is then
/// to be undone, as StoreAccess::write() does.
void within_quotas(Store& store, const Allowance& allowance, std::initializer_list<Held> kinds,
                   const std::function<void()>& add);

}  // namespace commtune::api::rest
