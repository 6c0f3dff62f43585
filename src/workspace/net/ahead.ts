/** Opens the connection that a request will need, while the program is still busy setting itself up. */

/**
 * The next request to that origin takes it over. Whatever goes wrong here is left to that request to meet and to tell; this version of Bun
 * refuses the default ports, for one. Not where a proxy is configured: the connection would go past it.
 */
export function preconnectTo(url: string, env: { readonly [name: string]: string | undefined }): void {
  if (proxies.some((name) => env[name])) return
  try {
    fetch.preconnect(url)
  } catch {}
}

const proxies = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY']
