/** Opens the connection that a request will need while the program is still starting. */

/**
 * The next request to that origin uses the connection. Errors are ignored here, because that request will meet and report them; for
 * example, this version of Bun refuses the default ports. Does nothing where a proxy is configured, because the connection would bypass
 * it.
 */
export function preconnectTo(url: string, env: { readonly [name: string]: string | undefined }): void {
  if (proxies.some((name) => env[name])) return
  try {
    fetch.preconnect(url)
  } catch {}
}

const proxies = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY']
