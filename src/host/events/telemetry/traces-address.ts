/** Says where traces go. The variables are those of the OpenTelemetry specification. */

import { errorText } from '../../../kit/errors.ts'
import { createProviderFetch } from '../../../workspace/net/provider-fetch.ts'
import { otlpBody } from './otlp.ts'

export type Environment = Readonly<Partial<Record<string, string>>>

/** The text may be no URL. @returns undefined when nothing is sent */
export function tracesUrl(env: Environment): string | undefined {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own, OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_SDK_DISABLED: off } = env
  if (off === 'true') return undefined
  return own || (base ? `${base.replace(/\/+$/, '')}/v1/traces` : undefined)
}

/** `name=value,name=value`, each percent-encoded. */
export function headersIn({ OTEL_EXPORTER_OTLP_HEADERS: given = '' }: Environment): { readonly [name: string]: string } {
  const pairs = given.split(',').flatMap((pair): [string, string][] => {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
    return name === undefined || value === undefined ? [] : [[name, decoded(value)]]
  })
  return Object.fromEntries(pairs)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const patienceMs = 3_000

/** Sends an empty list of spans. @returns undefined when traces are off */
export async function tryCollector(env: Environment): Promise<{ readonly url: string; readonly problem?: string } | undefined> {
  const url = tracesUrl(env)
  if (url === undefined) return undefined
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) return { url, problem: `${JSON.stringify(url)} is no URL of HTTP` }
  try {
    const { status, ok } = await createProviderFetch({ baseUrl: url })(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headersIn(env) },
      body: otlpBody([], { version: '0', serviceName: 'braidclaw' }),
      signal: AbortSignal.timeout(patienceMs),
    })
    return ok ? { url } : { url, problem: `what answers at ${url} refuses traces (status ${status})` }
  } catch (error) {
    return { url, problem: `nothing answers at ${url} (${errorText(error)})` }
  }
}
