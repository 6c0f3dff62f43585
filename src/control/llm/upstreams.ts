/** Reads from the environment where models are reached, and with which key. A runner sees neither. */

export type Vendor = 'openai' | 'anthropic'

/** `baseUrl` ends with the version of the API, without a slash. */
export type Upstream = { readonly vendor: Vendor; readonly baseUrl: string; readonly key: string }

export type Upstreams = { readonly [vendor in Vendor]?: Upstream }

const vendorUrls = { openai: 'https://api.openai.com/v1', anthropic: 'https://api.anthropic.com/v1' } as const

/** An upstream without a key is used only when its URL is set: a model server of one's own often needs none. @throws TypeError for no URL */
export function upstreamsOf(env: { readonly [name: string]: string | undefined }): Upstreams {
  const openai = upstreamOf('openai', env.CONTROLPLANE_OPENAI_URL, env.CONTROLPLANE_OPENAI_KEY ?? env.OPENAI_API_KEY)
  const anthropic = upstreamOf('anthropic', env.CONTROLPLANE_ANTHROPIC_URL, env.CONTROLPLANE_ANTHROPIC_KEY ?? env.ANTHROPIC_API_KEY)
  return { ...(openai ? { openai } : {}), ...(anthropic ? { anthropic } : {}) }
}

function upstreamOf(vendor: Vendor, url = '', key = ''): Upstream | undefined {
  if (url === '' && key === '') return undefined
  return { vendor, baseUrl: versioned(url === '' ? vendorUrls[vendor] : url, vendor), key }
}

/** Vendors' own libraries differ in whether a base URL has the version, so both forms are accepted. */
function versioned(url: string, vendor: Vendor): string {
  const parsed = URL.parse(url)
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol))
    throw new TypeError(`CONTROLPLANE_${vendor.toUpperCase()}_URL: ${JSON.stringify(url)} is no http(s) URL`)
  const base = `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '')
  return /\/v\d+[a-z]*$/.test(base) ? base : `${base}/v1`
}
