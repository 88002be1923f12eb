#pragma once
// TLS for the service: OpenSSL's objects with their owners.

#include <openssl/ssl.h>

#include <memory>

#include "api/rest/http/options.h"

namespace commtune::api::rest {

struct FreeSsl {
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};
struct FreeSslContext {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSslContext>;

/// With the options' certificate and key; null where they name none. TLS 1.2 at least.
/// Throws Error{kBadInput} naming the flags when the two cannot be used.
SslContext make_ssl_context(const ServeOptions& options);

}  // namespace commtune::api::rest
