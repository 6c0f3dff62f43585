/** Describes why a request cannot be answered, as a status, a code for programs and a sentence for people. */

export class HttpError extends Error {
  /** `code`: one lower-case word with underscores. `message`: what, why and what to do. */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
    /** Further fields of the error, for programs that expect them. */
    readonly fields: object = {},
  ) {
    super(message)
  }
}

/** Returns `{"error":{"code","message"}}`; `more` adds fields for clients that expect them. */
export function errorResponse({ status, code, message, headers, fields }: HttpError, more: object = {}): Response {
  return Response.json({ error: { code, message, ...more, ...fields } }, { status, headers: { ...headers, ...quiet } })
}

/** Sent with every answer: nothing is cached, guessed or shown inside another page. */
export const quiet = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
} as const
