/** Passes on what costs no tokens: the list of models, and the counting of a request. */

import { quiet } from '../../http/http-error.ts'
import type { Connection } from '../../http/listen.ts'
import type { PassThroughDeps } from './pass-through-deps.ts'
import { askUpstream, maxDocumentBytes, readText, redactorOf } from './upstream-call.ts'
import type { Upstream, Vendor } from './upstreams.ts'
import { errorAnswer } from './vendor-error.ts'
import { clientHeaders } from './vendor-request.ts'

export type FreeCall = {
  readonly deps: PassThroughDeps
  readonly request: Request
  readonly connection: Connection
  readonly upstream: Upstream
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly vendor: Vendor
  readonly text: string
}

const longestMs = 60_000

export async function freeCall({ deps, request, connection, upstream, path, method, vendor, text }: FreeCall): Promise<Response> {
  const signal = AbortSignal.any([connection.gone, AbortSignal.timeout(longestMs)])
  const answer = await asked().catch((error: unknown) => {
    deps.log('warn', 'llm.upstream', { vendor, error: String(error) })
    return undefined
  })
  if (!answer) return errorAnswer(vendor, { status: 502, code: 'upstream_unreachable', message: `the ${vendor} API cannot be reached` })
  const body = redactorOf(upstream)((await readText(answer, maxDocumentBytes)).text)
  return new Response(body, { status: answer.status, headers: { ...quiet, ...clientHeaders(answer.headers) } })

  async function asked(): Promise<Response> {
    return await askUpstream({ deps, request, upstream, path, method, body: text, signal })
  }
}
