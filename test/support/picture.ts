/** Makes real pictures of one colour, or of noise, in each format. */

import { deflateSync } from 'node:zlib'

type Shape = { readonly width?: number; readonly height?: number; readonly noise?: true }

/** Returns a PNG; noise does not compress. */
export function png({ width = 4, height = 3, noise }: Shape = {}): Uint8Array {
  const row = 1 + width * 3
  const raw = Buffer.alloc(row * height)
  for (let at = 0, seed = 1; noise && at < raw.length; at++) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    raw[at] = at % row === 0 ? 0 : seed >>> 24
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 2], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', deflateSync(raw)), chunk('IEND', Buffer.alloc(0))])
}

/** Returns a PNG of some hundred bytes whose header claims a huge canvas. */
export function bomb(side: number): Uint8Array {
  const bytes = Buffer.from(png())
  const head = Buffer.from(bytes.subarray(16, 29))
  head.writeUInt32BE(side, 0)
  head.writeUInt32BE(side, 4)
  return Buffer.concat([bytes.subarray(0, 8), chunk('IHDR', head), bytes.subarray(33)])
}

export const jpeg = (shape?: Shape): Promise<Uint8Array> => new Bun.Image(png(shape)).jpeg().bytes()
export const webp = (shape?: Shape): Promise<Uint8Array> => new Bun.Image(png(shape)).webp().bytes()
/** One black pixel; nothing here writes GIF. */
export const gif = (): Uint8Array => Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

function chunk(type: string, data: Uint8Array): Uint8Array {
  const body = Buffer.concat([Buffer.from(type), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(Bun.hash.crc32(body))
  return Buffer.concat([length, body, sum])
}
