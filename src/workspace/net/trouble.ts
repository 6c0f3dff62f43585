/** Explains network errors in words that a person or a model can act on. */

import { errnoOf } from '../../kit/errors.ts'

const meanings: { readonly [code: string]: string } = {
  ECONNREFUSED: 'nothing listens there (connection refused)',
  ECONNRESET: 'the server closed the connection before its answer was complete',
  EPIPE: 'the server closed the connection before the request was complete',
  ENETUNREACH: 'the network cannot be reached',
  EHOSTUNREACH: 'the host cannot be reached',
  ETIMEDOUT: 'the host does not answer',
  HPE_HEADER_OVERFLOW: 'its headers are larger than 32 KiB',
  ERR_INVALID_CHAR: 'a request header holds a character that HTTP does not allow',
  ERR_HTTP_INVALID_HEADER_VALUE: 'a request header has no value',
  ERR_INVALID_HTTP_TOKEN: 'the method or a header name is not an HTTP token',
  Z_DATA_ERROR: 'its compressed body is damaged',
  Z_BUF_ERROR: 'its compressed body is incomplete',
}

export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = errnoOf(error) ?? ''
  if (meanings[code] !== undefined) return meanings[code]
  if (code.startsWith('HPE_')) return `its answer is not HTTP (${error.message})`
  if (/CERT|TLS|SSL|SELF_SIGNED|ALTNAME/.test(code)) return `its TLS certificate or handshake was refused (${code}: ${error.message})`
  return error.message
}
