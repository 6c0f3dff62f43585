/** Serves the pass-through on loopback in front of a simulated vendor. */

import { createLlmPassThrough } from '../../../src/control/llm/pass-through.ts'
import { createProviderFetch } from '../../../src/workspace/net/provider-fetch.ts'
import { type Asked, type Fake, startFake } from '../../support/vendor-fake.ts'
import { createStubPlane, type StubPlane } from './stub-plane.ts'

export type Metered = {
  readonly plane: StubPlane
  readonly vendor: Fake
  /** Where the API of the pass-through begins, with its version. */
  readonly url: string
  readonly origin: string
  readonly logged: string[]
  post(path: string, body: object, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>
  stop(): void
}

export const vendorKey = 'sk-vendor-key-0123456789'

type Options = {
  readonly limit?: number | null
  readonly vendors?: readonly ('openai' | 'anthropic')[]
  readonly sleep?: (ms: number) => Promise<void>
  /** Another vendor than the simulated one. */
  readonly upstream?: string
}

export function startMetered(
  answer: (asked: Asked, n: number) => Response | Promise<Response>,
  { limit = null, vendors = ['openai', 'anthropic'], sleep = Bun.sleep, upstream }: Options = {},
): Metered {
  const plane = createStubPlane(limit)
  const vendor = startFake(answer, { questions: true })
  const logged: string[] = []
  const passThrough = createLlmPassThrough({
    plane,
    upstreams: Object.fromEntries(vendors.map((name) => [name, { vendor: name, baseUrl: upstream ?? vendor.url, key: vendorKey }])),
    fetchFor: (baseUrl) => createProviderFetch({ baseUrl }),
    sleep,
    now: Date.now,
    log: (_, event, fields) => void logged.push(`${event} ${JSON.stringify(fields)}`),
  })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: 17_825_792,
    fetch: (request) => passThrough.answer(request, { address: '127.0.0.1', stay: () => {}, disconnected: request.signal }),
  })
  const origin = `http://127.0.0.1:${server.port}`
  const url = `${origin}/api/controlplane/llm/v1`
  return {
    ...{ plane, vendor, url, origin, logged },
    post: (path, body, headers = { authorization: 'Bearer cpr_test' }, signal = new AbortController().signal) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        signal,
      }),
    stop() {
      server.stop(true)
      vendor.stop()
    },
  }
}
