/** Tests that answers become bounded text and true pictures, whatever they call themselves. */

import { expect, test } from 'bun:test'
import { contentOf } from './content.ts'

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]).toString('base64')
const of = (content: readonly unknown[], more = {}) => contentOf({ answer: { content, ...more }, member: 'content', notes: [] }, 200)

test('what is no picture is left out, whatever it calls itself', () => {
  const lie = { type: 'image', mimeType: 'image/png', data: Buffer.from('<svg onload="x">').toString('base64') }
  expect(of([lie])).toEqual({ text: expect.stringMatching(/^\[\d+ bytes of "image\/png" are left out/), pictures: [], isError: false })
})

test('a picture has the type of its bytes', () => {
  expect(of([{ type: 'image', mimeType: 'image/webp', data: png }]).pictures).toEqual([{ type: 'image/png', base64: png }])
})

test('pictures that are too many or too large are left out', () => {
  const image = { type: 'image', mimeType: 'image/png', data: png }
  expect(of(Array.from({ length: 9 }, () => image)).pictures).toHaveLength(8)
  expect(of([{ ...image, data: png.replace(/=+$/, '') + 'A'.repeat(8 * 1024 * 1024) }]).pictures).toEqual([])
})

test('text keeps within its limit, and so does structure', () => {
  const { text, structured } = of([{ type: 'text', text: 'é'.repeat(1_000) }], { structuredContent: { a: 'x'.repeat(300) } })
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(200)
  expect(structured).toBeUndefined()
  const deep = JSON.parse('['.repeat(70) + ']'.repeat(70))
  expect(of([], { structuredContent: deep })).toEqual({ text: JSON.stringify(deep), pictures: [], isError: false })
  expect(of([], { structuredContent: { a: 1 } })).toMatchObject({ text: '{"a":1}', structured: { a: 1 } })
})

test.each([
  [{ type: 'resource', resource: { uri: 'a://b', text: 'inside' } }, 'inside'],
  [{ type: 'resource_link', uri: 'a://b', name: 'b' }, '[a resource: "a://b"]'],
  [{ role: 'assistant', content: { type: 'text', text: 'hello' } }, 'assistant: hello'],
  [
    { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' },
    '[3 bytes of "audio/wav" are left out: they are no JPEG, PNG, WebP or GIF picture]',
  ],
  [{ type: 'tune' }, '[a block of the unknown type "tune" is left out]'],
  [7, '[a block of the unknown type undefined is left out]'],
])('the block %j reads %s', (block, expected) => expect(of([block]).text).toBe(expected))
