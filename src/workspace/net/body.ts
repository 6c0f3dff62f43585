/** Reads a response body: decompresses it, limits its bytes before and after decompression, and decodes it as text. */

import type { IncomingMessage } from 'node:http'
import type { Transform } from 'node:stream'

/** `bytes` counts the decompressed bytes in `text`; `truncated` when the limit cut the body. */
export type Body = { readonly text: string; readonly bytes: number; readonly truncated: boolean }

/** @throws on a broken connection, broken compression, an unknown content encoding, or abort */
export async function readBody(answer: IncomingMessage, maxBytes: number, signal: AbortSignal): Promise<Body> {
  const stop = () => answer.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    const { bytes, truncated } = await collect(await decompressed(answer, maxBytes), maxBytes)
    return { text: decoder(answer.headers['content-type']).decode(bytes, { stream: truncated }), bytes: bytes.length, truncated }
  } finally {
    signal.removeEventListener('abort', stop)
    answer.destroy()
  }
}

async function collect(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<{ bytes: Uint8Array; truncated: boolean }> {
  const parts: Uint8Array[] = []
  let room = maxBytes
  for await (const chunk of source) {
    parts.push(chunk.subarray(0, room))
    if (chunk.length > room) return { bytes: Buffer.concat(parts), truncated: true }
    room -= chunk.length
  }
  return { bytes: Buffer.concat(parts), truncated: false }
}

async function decompressed(answer: IncomingMessage, maxBytes: number): Promise<AsyncIterable<Uint8Array>> {
  const encoding = answer.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return answer
  const unpack = await unpacker(encoding)
  let wire = 0
  answer.on('data', (chunk: Uint8Array) => {
    wire += chunk.length
    // Endless input that decompresses to nothing would never reach the limit on the decompressed side.
    if (wire > maxBytes + 65_536) answer.destroy(new Error(`more than ${maxBytes} compressed bytes`))
  })
  answer.on('error', (error) => unpack.destroy(error))
  return answer.pipe(unpack)
}

async function unpacker(encoding: string): Promise<Transform> {
  const { createBrotliDecompress, createGunzip, createInflate } = await import('node:zlib')
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip()
  if (encoding === 'deflate') return createInflate()
  if (encoding === 'br') return createBrotliDecompress()
  throw new Error(`the content encoding ${JSON.stringify(encoding.slice(0, 40))} is not supported`)
}

/** Any other label, or none, means UTF-8; invalid bytes show as U+FFFD. */
const charsets: { readonly [label: string]: Bun.Encoding } = {
  'us-ascii': 'windows-1252',
  'iso-8859-1': 'windows-1252',
  latin1: 'windows-1252',
  'windows-1252': 'windows-1252',
  'windows-1251': 'windows-1251',
  'iso-8859-2': 'iso-8859-2',
  'iso-8859-15': 'iso-8859-15',
  'koi8-r': 'koi8-r',
  'utf-16': 'utf-16le',
  'utf-16le': 'utf-16le',
  'utf-16be': 'utf-16be',
  shift_jis: 'shift_jis',
  'euc-jp': 'euc-jp',
  'euc-kr': 'euc-kr',
  gb2312: 'gbk',
  gbk: 'gbk',
  gb18030: 'gb18030',
  big5: 'big5',
}

function decoder(contentType: string | undefined): TextDecoder {
  const label = /charset\s*=\s*"?([\w-]+)/i.exec(contentType ?? '')?.[1]?.toLowerCase() ?? ''
  return new TextDecoder(Object.hasOwn(charsets, label) ? charsets[label] : 'utf-8')
}
