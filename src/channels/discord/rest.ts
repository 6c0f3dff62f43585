/** Calls Discord's REST API through a given fetch, and keeps timers and retries out of the library. */

import { API } from '@discordjs/core'
import { REST, type RESTOptions } from '@discordjs/rest'

/** A guarded fetch. */
export type DiscordFetch = (url: string, init: RequestInit) => Promise<Response>

type Settings = { readonly api: string; readonly token: string; readonly fetch: DiscordFetch }

/**
 * The library waits for rate limits and retries in a way that neither a test nor a shutdown can interrupt, and it retries without a pause.
 * These options make it report both as errors.
 */
export function createApi({ api, token, fetch }: Settings): () => API {
  const rest = new REST({
    api,
    retries: 0,
    timeout: 15_000,
    rejectOnRateLimit: () => true,
    makeRequest: requestThrough(fetch),
    // The sweeps only forget idle channels, of which we have few.
    hashSweepInterval: 0,
    handlerSweepInterval: 0,
  })
  // After a 401 the library forgets the token, and would answer every later request only with "no token".
  return () => new API(rest.setToken(token))
}

/** Reads the whole body here, so that the timeout covers it and it is consumed even when the library ignores it. */
function requestThrough(fetch: DiscordFetch): RESTOptions['makeRequest'] {
  return async (url, { method = 'GET', headers, body, signal }) => {
    const answer = await fetch(url, {
      method,
      headers: new Headers(Object.entries(Object(headers)).map(([name, value]): [string, string] => [name, String(value)])),
      body: typeof body === 'string' ? body : null,
      signal: signal ?? null,
    })
    const bytes = await answer.arrayBuffer()
    const { status, statusText } = answer
    return new Response(bytes.byteLength === 0 ? null : bytes, { status, statusText, headers: new Headers(answer.headers) })
  }
}
