#include "api/rest/http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {

SslContext make_ssl_context(const ServeOptions& options) {
  if (options.tls_certificate.empty()) return {};
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) throw Error(ErrorCode::kUnavailable, "OpenSSL: no TLS here");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.tls_certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), options.tls_key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    throw Error(ErrorCode::kBadInput,
                fmt::format("--tls-cert {} --tls-key {}: cannot be used together; both must be PEM files",
                            options.tls_certificate.string(), options.tls_key.string()));
  return context;
}

}  // namespace commtune::api::rest
