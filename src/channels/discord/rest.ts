/** Discord's REST API through a fetch that is passed in, with nothing left to the library's own clock. */

import { API } from '@discordjs/core'
import { REST, type RESTOptions } from '@discordjs/rest'

/** A way out that somebody guards. */
export type DiscordFetch = (url: string, init: RequestInit) => Promise<Response>

type Settings = { readonly api: string; readonly token: string; readonly fetch: DiscordFetch }

/**
 * The library waits out rate limits and repeats requests in a way that neither a test nor a shutdown can cut short, and repeats without any
 * pause: so it is told to hand both back, as errors.
 */
export function createApi({ api, token, fetch }: Settings): () => API {
  const rest = new REST({
    api,
    retries: 0,
    timeout: 15_000,
    rejectOnRateLimit: () => true,
    makeRequest: requestThrough(fetch),
    // They would only forget idle channels, of which we have few.
    hashSweepInterval: 0,
    handlerSweepInterval: 0,
  })
  // After a 401 it forgets the token, and would say of every later request only that it has none.
  return () => new API(rest.setToken(token))
}

/** The whole body is read here: within the timeout, and also where the library does not care for it. */
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
