/** Reads the certificate and the key of the gateway, and tells what is wrong with them. */

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { FailureError } from '../../../host/failure.ts'
import { errorText } from '../../../kit/errors.ts'

export type TlsFiles = { readonly cert: string; readonly key: string }
export type TlsSettings = { readonly tlsCert?: string; readonly tlsKey?: string }

/** @throws FailureError when only one of the two files is named, one cannot be read, or they do not belong together */
export function tlsOf({ tlsCert, tlsKey }: TlsSettings): TlsFiles | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined)
    throw new FailureError('error', 'channels.http: tls_cert and tls_key belong together; name both files, or none')
  const files = { cert: readPem('tls_cert', tlsCert), key: readPem('tls_key', tlsKey) }
  const certificate = parsed('tls_cert', tlsCert, () => new X509Certificate(files.cert))
  const key = parsed('tls_key', tlsKey, () => createPrivateKey(files.key))
  if (!certificate.checkPrivateKey(key))
    throw new FailureError(
      'error',
      `channels.http.tls_key: "${tlsKey}" is not the key of the certificate "${tlsCert}"; name the files of one pair`,
    )
  return files
}

/** Returns until when the certificate is valid, in milliseconds since 1970. */
export function certificateEnd({ cert }: TlsFiles): number {
  return Date.parse(new X509Certificate(cert).validTo)
}

function readPem(key: string, path: string): string {
  try {
    const text = readFileSync(path, 'utf8')
    if (text.includes('-----BEGIN ')) return text
  } catch (error) {
    throw new FailureError('error', `channels.http.${key}: "${path}" cannot be read: ${errorText(error)}`)
  }
  throw new FailureError('error', `channels.http.${key}: "${path}" is no PEM file`)
}

function parsed<T>(key: string, path: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new FailureError('error', `channels.http.${key}: "${path}" cannot be used: ${errorText(error)}`)
  }
}
