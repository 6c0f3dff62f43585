/** Sends a request to the vendor, reads its answer no further than a limit, and hides what is the operator's alone: the key, and what the vendor says about it. */

import { HttpError } from '../../http/http-error.ts'
import type { PassThroughDeps } from './pass-through-deps.ts'
import type { Upstream } from './upstreams.ts'
import { vendorHeaders } from './vendor-request.ts'

export type UpstreamRequest = {
  readonly deps: Pick<PassThroughDeps, 'fetchFor'>
  readonly request: Request
  readonly upstream: Upstream
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly body: string
  readonly signal: AbortSignal
}

/** @throws HttpError 502 when the vendor refuses the operator's key; what fetch throws when there is no connection */
export async function askUpstream({ deps, request, upstream, path, method, body, signal }: UpstreamRequest): Promise<Response> {
  const send = deps.fetchFor(upstream.baseUrl)
  const answer = await send(`${upstream.baseUrl}${path}${queryOf(request.url)}`, {
    ...{ method, headers: vendorHeaders(request.headers, upstream), signal },
    ...(method === 'POST' ? { body } : {}),
    // A model may think for a long time before its first word.
    ...{ timeout: false },
  })
  if (answer.status !== 401 && answer.status !== 403) return answer
  await answer.body?.cancel()
  throw new HttpError(
    502,
    'upstream_key',
    `the ${upstream.vendor} API refused the key of the control plane (${answer.status}); its operator must set CONTROLPLANE_${upstream.vendor.toUpperCase()}_KEY`,
  )
}

/** Anthropic's clients ask for their betas in the query. */
function queryOf(url: string): string {
  return new URL(url).searchParams.get('beta') === 'true' ? '?beta=true' : ''
}

/** More than any model answers in one document. */
export const maxDocumentBytes = 67_108_864

export type AnswerText = {
  readonly text: string
  readonly bytes: number
  /** False: there was more, and the connection is closed. */
  readonly isWhole: boolean
}

/** A vendor that never ends, or whose answer unpacks to much more than it sent, takes no memory. */
export async function readText({ body }: Response, most: number): Promise<AnswerText> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body ?? []) {
    pieces.push(piece.subarray(0, most - bytes))
    bytes += piece.byteLength
    if (bytes > most) break
  }
  return { text: new TextDecoder().decode(Buffer.concat(pieces)), bytes, isWhole: bytes <= most }
}

/** A vendor may repeat the key in what it says. */
export function redactorOf({ key }: Upstream): (text: string) => string {
  return (text) => (key.length >= 8 && text.includes(key) ? text.replaceAll(key, '[REDACTED]') : text)
}
