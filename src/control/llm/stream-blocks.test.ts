import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readBlocks } from './relay.ts'

const lineEnds = fc.constantFrom('\n', '\r\n', '\r')
const events = fc.array(fc.tuple(fc.array(fc.constantFrom('a', 'é', 'data: x', ': y'), { minLength: 1, maxLength: 3 }), lineEnds), {
  maxLength: 6,
})

test('however a stream is cut, no byte is lost and every event is found', () => {
  fc.assert(
    fc.property(events, fc.array(fc.nat(20), { maxLength: 40 }), (list, cuts) => {
      const text = list.map(([lines, end]) => `${lines.map((line) => `data: ${line}${end}`).join('')}${end}`).join('')
      const bytes = new TextEncoder().encode(text)
      const reader = readBlocks()
      let at = 0
      const blocks = [...cuts, bytes.length].flatMap((length) => {
        const piece = bytes.slice(at, at + length)
        at += length
        return reader.take(piece)
      })
      const rest = reader.rest()
      const all = rest ? [...blocks, rest] : blocks
      expect(new Uint8Array(Buffer.concat(all.map((block) => block.bytes)))).toEqual(bytes)
      expect(all.map(({ data }) => data).filter((data) => data !== '')).toEqual(list.map(([lines]) => lines.join('\n')))
    }),
    { numRuns: 500 },
  )
})
