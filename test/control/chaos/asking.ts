/** Asks any of several daemons, which may be dead at the moment. */

export type Answered = { readonly status: number; readonly body: ReturnType<typeof JSON.parse> }

export type Asking = (
  token: string,
  path: string,
  request?: { readonly method?: string; readonly body?: unknown; readonly headers?: Record<string, string> },
) => Promise<Answered>

/** Status 0: no answer. 503: the daemon has no database. Nobody knows then whether the request did something. */
export function askOf(urls: readonly string[], dice: (end: number) => number): Asking {
  return async (token, path, { method, body, headers = {} } = {}) => {
    try {
      const response = await fetch(`${urls[dice(urls.length)]}/api/controlplane/${path}`, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        signal: AbortSignal.timeout(8_000),
      })
      const text = await response.text()
      return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : undefined }
    } catch {
      return { status: 0, body: undefined }
    }
  }
}

/** For requests that may be sent again: asks until there is an answer, for as long as `isOver` permits. */
export async function untilAnswered(ask: () => Promise<Answered>, isOver: () => boolean = () => false): Promise<Answered> {
  for (;;) {
    const answer = await ask()
    if ((answer.status !== 0 && answer.status !== 503) || isOver()) return answer
    await Bun.sleep(50)
  }
}
