import { describe, expect, test } from 'bun:test'
import { bomb, gif, jpeg, png, webp } from '../../test/support/picture.ts'
import { pictureFrom } from './fit-picture.ts'

const bytesOf = async (bytes: Uint8Array) => {
  const fitted = await pictureFrom(bytes)
  if (!fitted.ok) throw new Error(fitted.why)
  return { type: fitted.picture.type, bytes: Buffer.from(fitted.picture.base64, 'base64') }
}

describe('what is refused', () => {
  const cases: readonly (readonly [string, () => Uint8Array, string])[] = [
    ['a text', () => Buffer.from('hello'), 'not a PNG, JPEG, WebP or GIF'],
    ['nothing', () => new Uint8Array(), 'not a PNG'],
    ['an SVG', () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'not a PNG'],
    ['a picture that ends early', () => png({ width: 200, height: 200, noise: true }).subarray(0, 400), 'broken PNG'],
    ['a header alone', () => png().subarray(0, 8), 'broken PNG'],
    ['a WebP that holds something else', () => Buffer.from('RIFF\0\0\0\0WEBPhello'), 'broken WEBP'],
    ['a bomb of 30,000 × 30,000 pixels', () => bomb(30_000), 'more than 100 million pixels'],
    ['a bomb of 11,000 × 11,000 pixels', () => bomb(11_000), 'more than 100 million pixels'],
    ['100 MB', () => Buffer.concat([png(), Buffer.alloc(100 * 1024 * 1024)]), 'it has 101 MiB; at most 64 MiB'],
  ]
  test.each(cases)('%s', async (_, make, why) => {
    expect(await pictureFrom(make())).toMatchObject({ ok: false, why: expect.stringContaining(why) })
  })
})

test('a small picture of each format keeps its bytes, and its type is that of its content', async () => {
  const made = { 'image/png': png(), 'image/jpeg': await jpeg(), 'image/webp': await webp(), 'image/gif': gif() }
  for (const [type, bytes] of Object.entries(made)) expect(await bytesOf(bytes)).toEqual({ type, bytes: Buffer.from(bytes) } as never)
})

test('a picture that is too large is scaled, and keeps its shape', async () => {
  const { type, bytes } = await bytesOf(png({ width: 3_136, height: 784 }))
  expect([type, await new Bun.Image(bytes).metadata()]).toEqual(['image/png', { width: 1_568, height: 392, format: 'png' }])
  const line = await bytesOf(png({ width: 9_000, height: 1 }))
  expect(await new Bun.Image(line.bytes).metadata()).toMatchObject({ width: 1_568, height: 1 })
  expect((await bytesOf(await jpeg({ width: 2_000, height: 10 }))).type).toBe('image/jpeg')
})

test('a picture with too many bytes becomes a JPEG of the same size', async () => {
  const noise = png({ width: 1_000, height: 1_000, noise: true })
  expect(noise.length).toBeGreaterThan(1_572_864)
  const { type, bytes } = await bytesOf(noise)
  expect([type, bytes.length < 1_572_864]).toEqual(['image/jpeg', true])
  expect(await new Bun.Image(bytes).metadata()).toMatchObject({ width: 1_000, height: 1_000 })
})
