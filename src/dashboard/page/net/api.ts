/** Calls the server that served this page. The session is a cookie that no script can read. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** The server's word for the error; `unreachable` when nothing answered. */
    readonly code: string,
    message: string,
    /** The body, when it is JSON of another shape than an error. */
    readonly answer?: unknown,
  ) {
    super(message)
  }
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Calls `path` and returns the JSON of the answer, as the route's documentation gives it. @throws ApiError */
export async function call<T>(method: Method, path: string, body?: unknown, headers?: HeadersInit): Promise<T> {
  const response = await send(method, path, body, { headers })
  const text = await response.text()
  if (!response.ok) throw errorOf(response.status, text)
  return text === '' ? (undefined as T) : (JSON.parse(text) as T)
}

/** Returns the answer while it still streams. @throws ApiError */
export async function stream(
  method: Method,
  path: string,
  options: { body?: unknown; signal?: AbortSignal; headers?: HeadersInit | undefined },
): Promise<Response> {
  const response = await send(method, path, options.body, options)
  if (response.ok) return response
  throw errorOf(response.status, await response.text())
}

async function send(
  method: Method,
  path: string,
  body: unknown,
  { signal, headers }: { signal?: AbortSignal; headers?: HeadersInit | undefined } = {},
): Promise<Response> {
  try {
    return await fetch(path, {
      method,
      credentials: 'same-origin',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'unreachable', 'The server does not answer. It may be restarting; this page continues by itself.')
  }
}

function errorOf(status: number, text: string): ApiError {
  const unexpected = `The server answered ${status}.`
  try {
    const answer: { readonly error?: { readonly code: string; readonly message: string } } = JSON.parse(text)
    if (answer.error) return new ApiError(status, answer.error.code, sentence(answer.error.message))
    return new ApiError(status, 'unexpected', unexpected, answer)
  } catch {
    return new ApiError(status, 'unexpected', unexpected)
  }
}

/** The server's messages begin like the rest of a sentence, as error messages of programs do. */
function sentence(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1)
}
